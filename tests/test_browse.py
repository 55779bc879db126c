"""Looking at items: filters, votes, neighbours and notes against the pool; the page's content, limits and escaping."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import re
from collections import Counter
from functools import cache
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from builders import embedded_audit, scratch, tiny_pool
from demo_audit import HOSTILE, HOSTILE_MODEL, bare, demo
from PIL import Image
from report_pages import Page, is_local, saved

import auditlib
from auditlib.browse import pictures, static
from auditlib.browse.cases import Cases
from auditlib.browse.filters import FLAGGED, SORTS, UNFLAGGED, Filter, choices, select
from auditlib.browse.neighbours import LONG, NEAR, Neighbours, numbers
from auditlib.browse.note import note
from auditlib.browse.panel import open_browser
from auditlib.browse.session import open_session
from auditlib.browse.static import Limits, page_content, page_text, write_items
from auditlib.browse.view import case_html
from auditlib.errors import AuditError
from auditlib.escape import visible
from auditlib.flagged_rows import flagged_findings
from auditlib.frames import SEVERITIES
from auditlib.integrity.facts import loose
from auditlib.paths import RunPaths
from auditlib.report import flags
from auditlib.report.blocks import numbered, section
from auditlib.report.findings import first_to_review
from auditlib.report.flagged import write_flagged
from auditlib.report.html import write_html

AUDITS = {"tinysee": lambda: embedded_audit("tinysee"), "demo": demo, "bare": bare,
          "hostile": lambda: demo(hostile=True)}  # fmt: skip


@cache
def cases(name: str) -> Cases:
    return Cases(AUDITS[name]())


@cache
def content(name: str) -> dict:
    return page_content(AUDITS[name]())


# ---------------------------------------------------------------------------------------------- facts and filters


@pytest.mark.parametrize("name", AUDITS)
def test_facts_of_every_item_are_those_of_the_audit(name):
    audit, table = AUDITS[name](), cases(name).table
    assert table["item"].tolist() == audit.items["item"].astype(str).tolist()
    worst: dict[str, tuple[int, float]] = {}
    for f in flagged_findings(audit).itertuples():
        mine = (SEVERITIES.index(f.severity), -f.score)
        worst[f.item] = min(mine, worst.get(f.item, mine))
    for row in table.itertuples():
        rank, score = worst.get(row.item, (len(SEVERITIES), 0.0))
        assert (row.rank, row.score) == (rank, -score if score else 0.0)
        assert row.severity == (SEVERITIES[rank] if row.item in worst else "")
    counts = audit.counts[audit.counts["arm"] == audit.arm].set_index("item")
    assert table.set_index("item")["F"].dropna().to_dict() == counts["F"].astype(float).to_dict()


@pytest.mark.parametrize("name", ["tinysee", "demo"])
def test_votes_are_the_replies_of_the_pool(name):
    audit, c = AUDITS[name](), cases(name)
    said = audit.responses[audit.responses["condition"].isin(["full", "blind"])]
    wanted = Counter()
    for r in said.itertuples():
        wanted[r.item, r.condition, "" if r.letter == "Z" else r.letter, r.model] += 1
    found = Counter()
    for item in audit.items["item"]:
        case = c.case(item, neighbours=False)
        assert [name for name, _ in case.votes][: len(case.options)] == [a for a, _ in case.options]
        for answer, by in case.votes:
            for condition, models in by.items():
                found.update((item, condition, answer, m) for m in models)
    assert found == wanted


def test_answers_of_yes_or_no_items_are_votes_with_the_key_among_them():
    replies = {("a", "full"): ["Yes.", "no"], ("b", "full"): ["No", "no"], ("a", "blind"): ["hm", "no"]}
    pool = tiny_pool(
        replies, ["Yes", "Yes"], options=[[], []], answer_type=["yesno"] * 2, settings={"exact": ["yesno"]}
    )
    c = Cases(auditlib.audit(pool))
    assert c.case("0").votes == (("yes", {"full": ("a",)}), ("no", {"full": ("b",)}), ("", {"blind": ("a",)}))
    assert c.case("1").votes == (("yes", {}), ("no", {"full": ("a", "b"), "blind": ("a",)}))
    assert c.case("1").named_key == "yes" and c.case("0").conditions == ("full", "blind")


def test_verdicts_are_those_of_the_judge():
    audit, c = AUDITS["tinysee"](), cases("tinysee")
    wanted = audit.judgements.set_index(["item", "model", "condition"])["hit"]
    for item in c.flagged:
        for r in c.case(item, neighbours=False).replies:
            hit = wanted.get((item, r.model, r.condition))
            assert r.verdict == ({1.0: "right", 0.0: "wrong"}[hit] if hit == hit else "")


@pytest.mark.parametrize("name", ["tinysee", "demo"])
def test_filters_count_as_the_audit_does(name):
    audit, c = AUDITS[name](), cases(name)
    states = audit.detectors.set_index("detector")["flagged"]
    for detector, n in states.items():
        assert len(select(c, Filter(detector=detector))) == n
    for severity, n in flags.severities(audit).items():
        assert len(select(c, Filter(severity=severity))) == n
    shown = choices(c)
    assert {v: n for v, _, n in shown["detector"] if v != "integrity"} == {d: n for d, n in states.items() if n}
    everything = set(audit.items["item"])
    flagged, rest = (set(select(c, Filter(severity=s))) for s in (FLAGGED, UNFLAGGED))
    assert flagged | rest == everything and not flagged & rest and flagged == set(flagged_findings(audit)["item"])
    for name_, field in (("stratum", "stratum"), ("category", "category"), ("answer_type", "answer_type")):
        for value, _, n in shown[name_]:
            assert len(select(c, Filter(severity="", **{field: value}))) == n == (c.table[field] == value).sum()


def test_detector_and_severity_meet_in_one_finding():
    audit, c = AUDITS["tinysee"](), cases("tinysee")
    table = flagged_findings(audit)
    for d in table["detector"].unique():
        for s in SEVERITIES:
            wanted = set(table.loc[table["detector"].eq(d) & table["severity"].eq(s), "item"])
            assert set(select(c, Filter(detector=d, severity=s))) == wanted
    assert len(select(c, Filter("consensus_error", "medium"))) == 8


@pytest.mark.parametrize("words", ["what color", "COLOR what", "circle", "17", "no such words", "  "])
def test_a_search_finds_every_item_that_holds_all_words(words):
    c = cases("tinysee")
    wanted = []
    for item in c.table["item"]:
        case = c.case(item, neighbours=False)
        text = " ".join([item, case.question, *(t for _, t in case.options), case.stratum,
                         *(f.message for f in case.findings)]).lower()  # fmt: skip
        if all(w in text for w in words.lower().split()):
            wanted.append(item)
    assert select(c, Filter(severity="", text=words), "benchmark") == wanted


def test_states_of_replies():
    c = cases("tinysee")
    z = c.audit.responses.groupby("item")["letter"].agg(lambda s: (s == "Z").any())
    assert set(select(c, Filter(severity="", state="unread"))) == set(z.index[z])
    assert set(select(c, Filter(severity="", state="read"))) == set(z.index[~z])
    audit = c.audit
    lost = audit.responses.assign(status=np.where(audit.responses["item"].eq("5"), "failed", "ok"))
    again = Cases(dataclasses.replace(audit, texts={"responses": lost}.get))
    assert select(again, Filter(severity="", state="failed")) == ["5"]


@pytest.mark.parametrize("sort", SORTS)
def test_orders(sort):
    c = cases("tinysee")
    ids = select(c, Filter(), sort)
    rows = c.table.set_index("item").loc[ids]
    keys = {"suspicion": zip(rows["rank"], -rows["score"]), "benchmark": [ids.index(i) for i in ids],
            "stratum": rows["stratum"], "right": rows["F"] / (rows["n"] * rows["R"])}[sort]  # fmt: skip
    keys = list(keys)
    assert keys == sorted(keys) and sorted(ids) == sorted(c.flagged)
    if sort == "benchmark":
        assert ids == [i for i in c.table["item"] if i in set(ids)]


def test_an_unknown_order_or_filter_is_said():
    with pytest.raises(AuditError, match="no order 'x'"):
        select(cases("tinysee"), Filter(), "x")
    with pytest.raises(AuditError, match="no filter 'detectors'"):
        open_session(AUDITS["tinysee"](), detectors="x")
    with pytest.raises(AuditError, match="no item '9999'"):
        cases("tinysee").case("9999")


# ------------------------------------------------------------------------------------------------------ neighbours


@cache
def similarity(a: str, b: str) -> float:
    """2 LCS / (len a + len b), by the textbook table: what Indel similarity is."""
    row = [0] * (len(b) + 1)
    for x in a:
        before, row = row, [0]
        for j, y in enumerate(b):
            row.append(before[j] + 1 if x == y else max(before[j + 1], row[j]))
    return 2 * row[-1] / (len(a) + len(b))


def similar(a: str, b: str) -> bool:
    long = a != b and min(len(a), len(b)) >= LONG
    return long and re.findall(r"\d+", a) == re.findall(r"\d+", b) and similarity(min(a, b), max(a, b)) >= NEAR


def test_neighbours_by_brute_force(rng):
    n = 70
    words = ["what", "colour", "shape", "of the", "large", "car", "boat", "shown", "in this", "picture", "near", "left"]
    stems = [" ".join(rng.choice(words, 6)) for _ in range(9)]
    questions = []
    for i in range(n):
        text = str(rng.choice(stems))
        if rng.random() < 0.5:
            cut = rng.integers(len(text))
            text = text[:cut] + rng.choice(list("xyz")) + text[cut + int(rng.integers(0, 3)) :]
        questions.append(text + rng.choice(["", "", "?", " 3"]) if i % 9 else "short one")
    options = [[f"a rather long choice {rng.integers(2)}", "yes", "another"] for _ in range(n)]
    table = pd.DataFrame({"item": [f"i{i}" for i in range(n)], "question": questions,
                          "options": [tuple(zip("ABC", rng.permutation(o))) for o in options],
                          "stratum": rng.choice(["s", "t"], n), "image_key": rng.choice(["", "p", "q", "r"], n),
                          "cluster": ""})  # fmt: skip
    found = pd.DataFrame({"item": table["item"], "kind": rng.choice(["d", "e:x", "e:y"], n)})[: n - 20]
    near = Neighbours(table, found)
    q = [loose(t) for t in questions]
    picture, stratum = table["image_key"].tolist(), table["stratum"].tolist()
    kind = dict(zip(found["item"].str[1:].astype(int), found["kind"]))
    alike = {
        "picture": lambda i, j: picture[i] != "" and picture[i] == picture[j],
        "question": lambda i, j: q[i] == q[j],
        "similar": lambda i, j: similar(q[i], q[j]),
        "options": lambda i, j: options[i] == options[j],
        "finding": lambda i, j: i in kind and (stratum[i], kind[i]) == (stratum[j], kind.get(j)),
    }
    total = Counter()
    for i in range(n):
        groups = {g.kind: g for g in near.of(f"i{i}", most=1000)}
        wanted = {k: [f"i{j}" for j in range(n) if j != i and same(i, j)] for k, same in alike.items()}
        assert {k: list(g.items) for k, g in groups.items()} == {k: v for k, v in wanted.items() if v}
        assert all(g.total == len(g.items) for g in groups.values())
        total.update({k: len(v) for k, v in wanted.items()})
    assert min(total[k] for k in alike) > 20, "every kind of neighbour occurs"


def test_many_at_once_find_the_same_neighbours_as_one_at_a_time():
    c = cases("tinysee")
    ids = c.table["item"].tolist()
    one, many = (Neighbours(c.table, c.findings) for _ in range(2))
    many.look_at(ids)
    assert [one.of(i) for i in ids] == [many.of(i) for i in ids]


def test_numbers_keep_questions_apart():
    assert numbers("plot 3 of 12.5 and 1,000") == ("3", "12.5", "1,000") and numbers("none") == ()


# -------------------------------------------------------------------------------------------------------- the page


@pytest.mark.parametrize("name", ["tinysee", "demo", "hostile"])
def test_the_page_holds_every_flagged_item_worst_first(name):
    audit, got = AUDITS[name](), content(name)
    table = flags.flagged(audit).drop_duplicates("item")
    assert [e["id"] for e in got["items"]] == [visible(i) for i in table["item"]]
    assert [e["severity"] for e in got["items"]] == table["severity"].tolist()
    for entry, item in zip(got["items"], table["item"]):
        case = cases(name).case(item)
        assert entry["question"] == visible(case.question)
        assert entry["options"] == [[a, visible(t)] for a, t in case.options]
        assert [f[3] for f in entry["findings"]] == [visible(f.message) for f in case.findings]
        votes = {n: {c[0]: len(m) for c, m in zip(got["conditions"], said) if m} for n, said in entry["votes"]}
        assert votes == {n: {c: len(m) for c, m in said.items()} for n, said in case.votes}
        assert [[k, n] for k, n, _ in entry["neighbours"]] == [[g.kind, g.total] for g in case.neighbours]
        assert [r[6] for r in entry["replies"]] == [visible(r.text) for r in case.replies]
    assert got["remarks"][0].startswith(f"{len(table)} of {len(audit.items)} items are flagged")
    assert len(got["remarks"]) == 1


def test_pictures_are_those_of_the_dataset_each_once():
    from auditlib.readers.dataset import read_images

    audit, got = AUDITS["tinysee"](), content("tinysee")
    data = read_images(audit.params.data.dataset, [e["id"] for e in got["items"]])
    assert len(data) == len(got["items"]) == 51
    for entry in got["items"]:
        address = got["pictures"][entry["picture"]]
        kind, _, body = address.partition(";base64,")
        assert base64.b64decode(body) == data[entry["id"]] and kind == "data:image/png"
    assert len(got["pictures"]) == len({bytes(d) for d in data.values()})


@pytest.mark.parametrize(
    ("limits", "items", "remark"),
    [
        ({"items": 7}, 7, "holds the first 7"),
        ({"content": 20_000}, None, "holds the first"),
        ({"replies": 4000}, 51, "texts of the replies of"),
        ({"pictures": 9000}, 51, "pictures of"),
        ({"picture": 90}, 51, "pictures of 51 items are left out"),
    ],
)
def test_what_a_limit_leaves_out_is_said(limits, items, remark):
    whole, got = content("tinysee"), page_content(AUDITS["tinysee"](), Limits(**limits))
    ids = [e["id"] for e in got["items"]]
    assert ids == [e["id"] for e in whole["items"]][: len(ids)] and (items is None or len(ids) == items)
    assert any(remark in r for r in got["remarks"])
    if "content" in limits:
        kept = [{k: v for k, v in e.items() if k != "replies"} for e in got["items"]]
        assert 5 < len(ids) < 51 and len(json.dumps(kept)) < 1.5 * limits["content"]
    if "replies" in limits:
        silent = [e["replies"] is None for e in got["items"]]
        assert 0 < sum(silent) < 51 and f"replies of {sum(silent)} items" in got["remarks"][1]
        assert len(json.dumps([e["replies"] for e in got["items"] if e["replies"]])) < 4200
        assert all(e["votes"] for e in got["items"])
    if "pictures" in limits:
        without = sum(not e["picture"] for e in got["items"])
        assert 0 < without < 51 and f"pictures of {without} items" in got["remarks"][-1]
        assert sum(map(len, got["pictures"].values())) <= 9000
    named = [n for e in got["items"] for _, _, near in e["neighbours"] for n in near]
    assert all((question is None) == (i in set(ids)) for i, question in named)


def _picture(size, mode="RGB", kind="PNG", **more) -> bytes:
    rng, out = np.random.default_rng(3), io.BytesIO()
    bands = {"L": 1, "RGB": 3, "RGBA": 4}[mode]
    noise = rng.integers(0, 256, (size[1], size[0], bands), dtype=np.uint8).squeeze()
    Image.fromarray(noise, mode).save(out, kind, **more)
    return out.getvalue()


@pytest.mark.parametrize("data", [_picture((2000, 1500), kind="JPEG"), _picture((900, 700)), _picture((800, 800), "L"),
                                  _picture((700, 30), "RGBA")])  # fmt: skip
def test_large_pictures_become_small(data):
    kind, out = pictures.small(data, 400, 60_000)
    with Image.open(io.BytesIO(data)) as before, Image.open(io.BytesIO(out)) as after:
        assert kind == "image/jpeg" and len(out) <= 60_000 and max(after.size) == 400
        assert after.size[0] / after.size[1] == pytest.approx(before.size[0] / before.size[1], rel=0.06)


def test_small_pictures_stay_and_others_are_none():
    data = _picture((20, 10))
    assert pictures.small(data, 400, 60_000) == ("image/png", data)
    assert pictures.small(b"<svg onload='alert(1)'/>", 400, 60_000) is None
    assert pictures.small(data[:100], 400, 60_000) is None
    assert pictures.small(_picture((600, 600)), 512, 2000) is None


def test_transparency_is_shown_on_white_and_the_camera_s_turn_is_made():
    out = io.BytesIO()
    Image.new("RGBA", (600, 600), (0, 0, 0, 0)).save(out, "PNG")
    with Image.open(io.BytesIO(pictures.small(out.getvalue(), 100, 60_000)[1])) as image:
        assert image.getpixel((50, 50)) == (255, 255, 255)
    exif = Image.Exif()
    exif[0x0112] = 6
    data = _picture((800, 400), kind="JPEG", exif=exif)
    with Image.open(io.BytesIO(pictures.small(data, 200, 60_000)[1])) as image:
        assert image.size == (100, 200)


@pytest.mark.parametrize("name", ["bare", "demo"])
def test_pools_that_lack_something_have_a_page_too(name, tmp_path):
    file = write_items(AUDITS[name](), RunPaths(tmp_path, "demo"))
    got = content(name)
    assert file.stat().st_size > 20_000 and got["pictures"] == {}
    if name == "bare":
        assert got["conditions"] == [] and all(e["votes"] == [] and not e["replies"] for e in got["items"])
        assert any(e["tally"] for e in got["items"])


def test_the_same_bytes_twice(tmp_path):
    first = write_items(demo(), RunPaths(tmp_path, "a")).read_bytes()
    assert write_items(demo(), RunPaths(tmp_path, "b")).read_bytes() == first
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["items.html"]


# -------------------------------------------------------------------------------------------------------- escaping


def test_hostile_text_stays_data():
    got = content("hostile")
    text = page_text(got, [("report.html", "report")])
    parts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    assert [a for a, _ in parts] == [' type="application/json" id="content"', ""]
    assert json.loads(parts[0][1]) == json.loads(json.dumps(got))
    assert parts[0][1].isascii() and not set("<>&") & set(parts[0][1])
    page = Page(text)
    assert page.handlers == [] and not {"img", "iframe", "object", "link", "base", "b", "i"} & set(page.tags)
    assert [a for a in page.addresses if not is_local(a[2])] == []
    digest = base64.b64encode(hashlib.sha256(parts[1][1].encode()).digest()).decode()
    [policy] = re.findall(r'Security-Policy" content="([^"]*)"', text)
    assert f"script-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy
    assert not re.search(r"\beval\b|innerHTML|new Function|document\.write|fetch\(|XMLHttp|import\(", parts[1][1])
    first = next(e for e in got["items"] if e["id"] == "0")
    assert first["question"] == visible(HOSTILE["question"]) and "\u202e" not in json.dumps(got, ensure_ascii=False)
    assert HOSTILE["reply"] in [r[6] for r in first["replies"]] and HOSTILE_MODEL in got["models"]


def test_the_view_of_a_notebook_is_escaped():
    c = cases("hostile")
    page = Page(case_html(c.case("0"), None, "1 of 9"))
    assert not {"script", "img", "i", "m"} & set(page.tags) and page.handlers == []
    for wanted in (visible(HOSTILE["question"]), *HOSTILE["options"], HOSTILE["reply"], HOSTILE_MODEL, "<i>& $_ {x}"):
        assert wanted in page.text
    assert "mathjax_ignore" in case_html(c.case("1"))


def test_a_note_is_markdown_that_shows_what_the_item_holds():
    text = note(cases("hostile").case("0"), "<B>")
    assert r"\<script\>alert(1)\</script\>" in text and not re.search(r"(?<!\\)<", text)
    assert "\u202e" not in text and r"**\<B\>, item 0**" in text
    lines = text.splitlines()
    assert sum(line.startswith("- ") and "**(key)**" in line for line in lines) == 1
    assert any(line.startswith("- C: ") and "3 with image" in line for line in lines)


# --------------------------------------------------------------------------------------------- session and selection


def test_moving_filtering_and_going_to_an_item():
    s = open_session(AUDITS["tinysee"]())
    assert s.ids == cases("tinysee").flagged and s.item == "17"
    s.move(-1)
    assert s.item == "17"
    s.move(3)
    assert s.item == s.ids[3]
    here = s.item
    s.change(severity="high")
    assert s.item == here and len(s.ids) == 5
    s.change(severity="low")
    assert s.item == s.ids[0] != here
    s.move(1000)
    assert s.item == s.ids[-1]
    s.change(text="no such words")
    assert s.ids == [] and s.item == "" and s.case is None and s.note == ""
    s.toggle()
    s.move(1)
    assert not s.chosen
    unflagged = select(s.cases, Filter(severity=UNFLAGGED))[4]
    s.go(unflagged)
    assert s.item == unflagged and s.wanted == Filter(severity="")


def test_a_selection_is_on_disk_and_comes_back(tmp_path):
    audit, file = AUDITS["tinysee"](), tmp_path / "selection.csv"
    s = open_session(audit, file)
    for step in (0, 2, 1, -1):
        s.move(step)
        s.toggle()
    picked = [s.cases.flagged[i] for i in (0, 3)]
    assert s.chosen == set(picked) and [p.name for p in tmp_path.iterdir()] == ["selection.csv"]
    again = open_session(audit, file)
    assert again.chosen == set(picked)
    again.change(only_chosen=True)
    assert again.ids == picked
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    assert set(table["item"]) == set(picked) and table["item"].tolist() == [
        i for i in audit.items["item"] if i in picked
    ]
    assert table.set_index("item").loc["17", "question"] == "What color is the car?"


def test_a_selection_is_safe_in_a_spreadsheet(tmp_path):
    audit = demo(hostile=True)
    ids = {i: f"={i}" for i in audit.items["item"]}
    audit = dataclasses.replace(audit, items=audit.items.assign(item=audit.items["item"].map(ids)),
                                findings=audit.findings.assign(item=audit.findings["item"].map(ids)))  # fmt: skip
    s = open_session(audit, tmp_path / "selection.csv")
    s.toggle()
    assert f"'{s.item}" in (tmp_path / "selection.csv").read_text()
    assert open_session(audit, tmp_path / "selection.csv").chosen == {s.item}


@pytest.mark.parametrize(("text", "what"), [("item\nnope\n", "names item 'nope'"), ("id\n3\n", "no column 'item'"),
                                            ("", "cannot be read"), ("item\n\x00\"", "names item")])  # fmt: skip
def test_a_selection_that_does_not_fit_is_one_clear_error(tmp_path, text, what):
    (tmp_path / "selection.csv").write_text(text)
    with pytest.raises(AuditError, match=what):
        open_session(AUDITS["tinysee"](), tmp_path / "selection.csv")


def test_a_selection_that_cannot_be_written_is_not_taken(tmp_path):
    (tmp_path / "folder").write_text("a file")
    s = open_session(AUDITS["tinysee"](), tmp_path / "folder" / "selection.csv")
    with pytest.raises(AuditError, match="was not saved"):
        s.toggle()
    assert not s.chosen


# ----------------------------------------------------------------------------------------------------------- panel


def test_widgets_follow_the_session(tmp_path):
    browser = open_browser(AUDITS["tinysee"](), tmp_path / "selection.csv")
    s = browser.session
    assert "Item 17" in browser._item.value and "data:image/png" in browser._item.value
    assert browser._buttons["previous"].disabled and len(browser._list.options) == 51
    browser._buttons["next"].click()
    assert s.place == 1 and browser._list.value == s.item and f"Item {s.item}" in browser._item.value
    assert browser._note.value == visible(note(s.case, "TinySee"))
    browser._filters["severity"].value = "high"
    assert len(browser._list.options) == 5 and s.item == "32"
    browser._list.value = "182"
    assert s.item == "182" and browser._buttons["next"].disabled
    browser._buttons["select"].click()
    assert (
        s.chosen == {"182"}
        and (tmp_path / "selection.csv").exists()
        and "Selected" in browser._buttons["select"].description
    )
    browser._text.value = "no such words"
    assert "No item is like this" in browser._item.value and browser._list.options == ()
    browser._text.value = ""
    browser._filters["severity"].value = ""
    assert len(s.ids) == 300 and len(browser._list.options) == 200
    s.place = 250
    browser._show()
    assert len(browser._list.options) == 100 and browser._list.value == s.item


def test_a_notebook_without_widgets_shows_the_first_item():
    browser = open_browser(AUDITS["tinysee"](), detector="distractor_similarity")
    shown = browser._repr_mimebundle_()
    assert "Item 139" in shown["text/html"] and "<table" in shown["text/html"] and "<script" not in shown["text/html"]
    assert shown["text/plain"].startswith("items of tinysee: 1 of 9 items shown, of 300")


def test_hostile_text_is_text_in_the_panel():
    browser = open_browser(demo(hostile=True), severity="")
    browser._do(lambda: browser.session.go("0"))
    page = Page(browser._item.value)
    assert "script" not in page.tags and visible(HOSTILE["question"]) in page.text
    assert "<script>alert(1)</script>" in browser._note.value.replace("\\", "")


# ----------------------------------------------------------------------------------------------------------- links


def _short_report(audit) -> dict:
    """A report of one table."""
    parts = numbered([section("next", "What to do next", first_to_review(audit, 30))])
    return {"title": "t", "benchmark": audit.benchmark, "pool": audit.pool_name, "sections": parts}


def test_report_and_list_lead_to_items_that_are_on_the_page():
    audit = embedded_audit("tinysee")
    paths = saved(audit, scratch() / "browse-links")
    write_items(audit, paths)
    write_flagged(audit, paths)
    write_html(_short_report(audit), paths)
    shown = {e["id"] for e in content("tinysee")["items"]}
    html = paths.report_html.read_text(encoding="utf-8")
    links = re.findall(r'href="items\.html#item=([^"]*)">([^<]*)</a>', html)
    assert len(links) == 30 and all(unquote(a) == b and b in shown for a, b in links)
    assert 'href="items.html">' in html
    listed = re.findall(r"^#### Item (\S+).*\(items\.html#item=(\S+)\)$", paths.flagged.read_text(), re.MULTILINE)
    serious = flags.flagged(audit)
    assert {a for a, _ in listed} == set(serious.loc[serious["severity"] != "info", "item"])
    assert all(unquote(b) == a for a, b in listed)
    assert flags.address("a (b)/c#1\u202e") == "items.html#item=a%20%28b%29%2Fc%231%E2%9F%A8U%2B202E%E2%9F%A9"


def test_a_report_without_the_page_has_no_links_to_it():
    audit = demo()
    paths = saved(audit, scratch() / "browse-alone")
    write_html(_short_report(audit), paths)
    assert "items.html" not in paths.report_html.read_text(encoding="utf-8")


def test_limits_of_the_page_are_stated_once():
    assert Limits().items == 3000 and static.ANSWER < Limits().reply < Limits().option < Limits().question
