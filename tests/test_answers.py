"""``auditlib answers``: a store to one file, into another store; the run there asks only what is missing."""

from __future__ import annotations

import base64
import sqlite3
from pathlib import Path

import pytest
from fault_server import FaultServer

from auditlib.__main__ import main
from auditlib.calls import Reply
from auditlib.errors import AuditError
from auditlib.inference import transfer
from auditlib.inference.canary import solid
from auditlib.inference.stage import ask, plan_run, requests_of
from auditlib.inference.store import Store
from auditlib.params import load_params
from auditlib.paths import RunPaths

#: three items, each with and without its picture
N = 6


def toy(folder: Path, address: str) -> Path:
    rows = ["index\timage\tquestion\tA\tB\tanswer\tcategory"]
    for i in range(N // 2):
        image = base64.b64encode(solid((i, 0, 0)).load()).decode()
        rows.append(f"{i}\t{image}\tquestion {i}\tred\tblue\tA\tcolour")
    folder.mkdir(exist_ok=True)
    (folder / "Toy.tsv").write_text("\n".join(rows) + "\n")
    file = folder / "toy.yaml"
    file.write_text(
        f"pool: toy\nbenchmark: Toy\ndata:\n  dataset: Toy.tsv\ninference:\n  base_url: {address}\n"
        "  models:\n    - {name: m}\n  conditions: [full, blind]\n"
    )
    return file


def planned(file: Path):
    return plan_run(load_params(file), RunPaths(file.parent / "outputs", "toy"))


def asked(plan) -> list:
    return [r for s in plan.settings.values() for r in requests_of(plan.items, s)]


def test_two_machines_ask_a_part_each_and_a_third_only_the_rest(tmp_path, capsys):
    with FaultServer() as server:
        a, b, c = (toy(tmp_path / n, server.url) for n in "abc")
        every = asked(planned(a))
        assert [r.key for r in every] == [r.key for r in asked(planned(c))] and len(every) == N
        for file, part in ((a, every[:3]), (b, every[2:5])):
            with Store(planned(file).paths.answers) as store:
                for request in part:
                    store.put(request, Reply(request.key, "ok", text=f"A of {file.parent.name}"))
                store.put(every[5], Reply(every[5].key, "failed", error="down"))
            out = file.parent / "answers.sqlite"
            words = ["answers", "export", str(file), "--to", str(out), "--outputs", str(file.parent / "outputs")]
            assert main(words) == 0
            assert [p.name for p in out.parent.glob("*answers.sqlite*")] == ["answers.sqlite"], "one file"
        files = [str(tmp_path / n / "answers.sqlite") for n in "ab"]
        assert main(["answers", "import", str(c), *files, "--outputs", str(tmp_path / "c/outputs")]) == 0
        said = capsys.readouterr().out.splitlines()
        assert said[-2].endswith(": 3 new answers, 0 known")
        assert said[-1].endswith(": 2 new answers, 0 known, 1 with another text (the first stays)")
        done = ask(planned(c), say=lambda line: None)
        assert (done.summaries["m"].known, done.summaries["m"].asked, len(server.times)) == (5, 1, 1)
    with Store(planned(c).paths.answers) as store:
        texts = [store.get(r.key).text for r in every]
        assert texts == ["A of a"] * 3 + ["A of b"] * 2 + ["B"]
        kept = store.rows()
        with Store(planned(a).paths.answers) as first:  # every column came over, times too
            mine = {row["key"]: row for row in kept}
            assert all(mine[row["key"]] == row for row in first.rows())
    assert main(["answers", "import", str(c), files[0], "--outputs", str(tmp_path / "c/outputs")]) == 0
    assert capsys.readouterr().out.endswith(": 0 new answers, 3 known\n")


def test_what_is_no_export_is_said_and_changes_nothing(tmp_path):
    store, good = tmp_path / "s.sqlite", tmp_path / "good.sqlite"
    plan = planned(toy(tmp_path / "a", "http://127.0.0.1:9/v1"))
    with Store(tmp_path / "from.sqlite") as opened:
        for request in asked(plan):
            opened.put(request, Reply(request.key, "ok", text="A" * 3000))
    assert transfer.export_answers(tmp_path / "from.sqlite", good) == N
    with pytest.raises(AuditError, match="exists already"):
        transfer.export_answers(tmp_path / "from.sqlite", good)
    with pytest.raises(AuditError, match="no answer store to export"):
        transfer.export_answers(tmp_path / "none.sqlite", tmp_path / "x")
    (tmp_path / "text").write_text("key,text\n")
    (tmp_path / "cut").write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE t (a)")
    (tmp_path / "later").write_bytes(good.read_bytes())
    with sqlite3.connect(tmp_path / "later") as db:
        db.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    for name, words in (("text", "no export"), ("cut", "damaged"), ("other.db", "holds no answers"),
                        ("later", "version 99"), ("gone", "no such file")):  # fmt: skip
        with pytest.raises(AuditError, match=words):
            transfer.import_answers([tmp_path / name], store)
        with Store(store) as opened:
            assert len(opened) == 0
    with pytest.raises(AuditError, match="the store itself"):
        transfer.import_answers([store], store)
    assert transfer.import_answers([good], store)[0].new == N


def test_a_file_that_is_no_export_leaves_no_store(tmp_path):
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(AuditError, match="no export of answers"):
        transfer.import_answers([tmp_path / "junk"], tmp_path / "pool" / "answers.sqlite")
    assert not (tmp_path / "pool").exists()
