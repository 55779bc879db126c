"""Categories that the runs of a benchmark disagree about."""

import pandas as pd

from auditlib.partition import agreed_partition


def facts(**owners: dict[int, str]) -> pd.DataFrame:
    rows = [{"item": str(i), "stratum": c, "model": m} for m, known in owners.items() for i, c in known.items()]
    return pd.DataFrame(rows)


def test_no_disagreement_is_none():
    assert agreed_partition(facts(a={1: "x", 2: "y"}, b={1: "x", 3: "z"}), "stratum", "model") is None


def test_the_majority_stands_as_a_whole_and_the_deviant_gives_nothing():
    table = facts(a={1: "x", 2: "y"}, b={1: "x", 2: "y"}, c={1: "p", 2: "y", 3: "q"})
    agreed = agreed_partition(table, "stratum", "model")
    assert agreed.values == {"1": "x", "2": "y"}  # c alone knows item 3, under names of another partition
    assert agreed.deviants == ("c",) and agreed.items == 1


def test_without_a_majority_nothing_is_agreed():
    agreed = agreed_partition(facts(a={1: "x"}, b={1: "y"}), "stratum", "model")
    assert agreed.values == {} and agreed.deviants == ("a", "b")


def test_one_owner_against_itself_is_no_majority():
    table = pd.DataFrame({"item": ["1", "1"], "stratum": ["x", "y"], "model": ["m", "m"]})
    agreed = agreed_partition(table, "stratum", "model")
    assert agreed.values == {} and agreed.deviants == ("m",)


def test_agreement_must_hold_between_all_members():
    # a and b share no disputed item with c except through each other: a-b clash on 1, b-c clash on 2
    table = facts(a={1: "x", 2: "u"}, b={1: "y", 2: "u"}, c={1: "x", 2: "u"}, d={1: "x"}, e={1: "x", 2: "v"})
    agreed = agreed_partition(table, "stratum", "model")
    assert agreed.values == {"1": "x", "2": "u"} and agreed.deviants == ("b", "e")


def test_order_of_rows_plays_no_part():
    table = facts(a={1: "x", 2: "y"}, b={1: "x", 2: "y"}, c={1: "p", 2: "y", 3: "q"})
    expected = agreed_partition(table, "stratum", "model")
    for seed in range(5):
        assert agreed_partition(table.sample(frac=1, random_state=seed), "stratum", "model") == expected
