"""Simulated judges and readers of the synthetic pool: votes of two rounds, and what three people would say."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.synth.curated_draws import KINDS_OF_DEFECT

#: judge -> how often it names a defect rightly, passes an item that is in order, follows the others' majority
JUDGES = {
    "Model A1": (0.84, 0.93, 0.45), "Model B1": (0.81, 0.92, 0.50), "Model C1": (0.78, 0.90, 0.35),
    "Model D1": (0.72, 0.88, 0.60), "Model E1": (0.69, 0.86, 0.55),
}  # fmt: skip
READERS = ("reader_1", "reader_2", "reader_3")
_LABELS = np.array(["no_issue", *KINDS_OF_DEFECT[1:]], dtype=object)
_UNREAD = 0.008
_READER = 0.93
_REASONS = {
    "no_issue": "the key follows from the picture",
    "key_error": "the picture shows another answer than the key",
    "ambiguous": "a second answer can be defended",
    "scorer_risk": "a right answer may be written in another way",
    "": "",
}


def votes(items: np.ndarray, defect: np.ndarray, confirmed: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Labels of five judges in two rounds.

    Parameters
    ----------
    items : ids of the candidates, shape (items,). defect : what is wrong, places in KINDS_OF_DEFECT.
    confirmed : whether at least three judges are to agree on the defect in round 2; of the other items with a defect
        they do not, and of items in order they do where chance has it.

    Returns
    -------
    frame : item, round, judge, label ("" where a reply could not be read), reason, source, shown_order. In round 2
        ``shown_order`` names the judges in the order in which their first labels were shown.
    """
    n, names = len(items), list(JUDGES)
    right, clean, herd = (np.array([JUDGES[j][i] for j in names]) for i in range(3))
    # some items in order look wrong to all judges alike
    doubt = rng.beta(0.25, 2.5, n)[:, None] + (1 - clean) * 0.3
    look = rng.integers(1, 4, n)[:, None]
    sure = rng.random((n, 5)) < np.where(defect[:, None] > 0, right, 1 - np.minimum(doubt, 0.9))
    slip = np.where(rng.random((n, 5)) < 0.6, 0, rng.integers(1, 4, (n, 5)))
    wrong = np.where(defect[:, None] > 0, slip, np.where(rng.random((n, 5)) < 0.75, look, rng.integers(1, 4, (n, 5))))
    first = np.where(sure, defect[:, None], wrong)
    tally = np.stack([(first == c).sum(axis=1) for c in range(4)], axis=1)
    lead = tally.argmax(axis=1)[:, None]
    follows = (first != lead) & (rng.random((n, 5)) < herd)
    second = np.where(follows, lead, first)
    strays = ~follows & (rng.random((n, 5)) < 0.02)
    second = np.where(strays, rng.integers(0, 4, (n, 5)), second)
    unread = _one_of_five(n, 2, rng)
    second = _settled(second, defect, confirmed, unread[1])
    order = np.argsort(rng.random((n, 5, 5)), axis=2)
    place = np.array(names, dtype=object)[order]
    shown = place[..., 0] + "; " + place[..., 1] + "; " + place[..., 2] + "; " + place[..., 3] + "; " + place[..., 4]
    parts = []
    for number, label, gap in ((1, first, unread[0]), (2, second, unread[1])):
        text = np.where(gap, "", _LABELS[label])
        parts.append(pd.DataFrame({
            "item": np.repeat(items, 5), "round": number, "judge": np.tile(np.array(names, dtype=object), n),
            "label": text.ravel(), "reason": pd.Series(text.ravel()).map(_REASONS).to_numpy(),
            "source": "simulated", "shown_order": shown.ravel() if number == 2 else "",
        }))  # fmt: skip
    table = pd.concat(parts, ignore_index=True)
    return table.sort_values(["item", "round", "judge"], kind="stable").reset_index(drop=True)


def _one_of_five(n: int, rounds: int, rng: np.random.Generator) -> np.ndarray:
    """Votes that could not be read, at most one of an item in a round, shape (rounds, n, 5)."""
    judge = rng.integers(0, 5, (rounds, n))
    gap = rng.random((rounds, n)) < 5 * _UNREAD
    return gap[:, :, None] & (np.arange(5) == judge[:, :, None])


def _settled(second: np.ndarray, defect: np.ndarray, confirmed: np.ndarray, unread: np.ndarray) -> np.ndarray:
    """Round 2 with three equal labels where an item is to be confirmed, and not where its defect is to be missed."""
    second = second.copy()
    for j in range(5):
        same = ((second == defect[:, None]) & ~unread).sum(axis=1)
        short = confirmed & (same < 3) & (second[:, j] != defect) & ~unread[:, j]
        second[short, j] = defect[short]
    for c in (1, 2, 3):
        for j in range(5):
            many = ((second == c) & ~unread).sum(axis=1) >= 3
            second[(defect > 0) & many & ~((defect == c) & confirmed) & (second[:, j] == c), j] = 0
    # a defect that is to be missed has no three votes for defects of any kind either: people would read it
    for j in range(5):
        many = ((second > 0) & ~unread).sum(axis=1) >= 3
        second[(defect > 0) & ~confirmed & many & (second[:, j] > 0), j] = 0
    return second


def readings(items: np.ndarray, defect: np.ndarray, settled: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """What three readers say of every item.

    Parameters
    ----------
    settled : items where two of three must name the truth; of the others a reader errs now and then.

    Returns
    -------
    frame : item, and a column of labels for each of READERS. Two readers see an item, the third on conflict.
    """
    n = len(items)
    truth = _LABELS[defect]
    right = rng.random((n, 3)) < _READER
    # the first two agree on the truth, or one of them errs and the third decides
    erring = rng.integers(0, 2, n)
    both = right[:, 0] & right[:, 1]
    fixed = np.stack([both | (erring != 0), both | (erring != 1), both | True], axis=1)
    right = np.where(settled[:, None], fixed, right)
    other = np.where(defect[:, None] > 0, 0, rng.integers(1, 4, (n, 3)))
    said = np.where(right, truth[:, None], np.where(rng.random((n, 3)) < 0.3, "cannot_tell", _LABELS[other]))
    return pd.DataFrame({"item": items} | {r: said[:, i] for i, r in enumerate(READERS)})
