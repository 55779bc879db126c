"""Params files: what is refused, and how it is said."""

from __future__ import annotations

import pytest

from auditlib.errors import AuditError
from auditlib.params import load_params

GOOD = "pool: p\nbenchmark: B\ndata: {embedded: tinysee}\n"


def _load(tmp_path, text, **overrides):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    return load_params(path, overrides)


def test_defaults_are_the_papers(tmp_path):
    p = _load(tmp_path, GOOD)
    assert (p.audit.exact, p.audit.failed, p.audit.permutations) == (["letters"], "missing", 999)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "audit: {permutation: 99}\n", "unknown key 'audit.permutation'. Mend: did you mean 'permutations'?"),
        (GOOD + "judg: x\n", "did you mean 'judge'?"),
        (GOOD.replace("embedded", "embeded"), "did you mean 'embedded'?"),
        (GOOD + "models: [{name: a, famly: b}]\n", "did you mean 'family'?"),
        ("pool: p\ndata: {embedded: tinysee}\n", "key 'benchmark' is missing"),
        (GOOD + "audit: {permutations: many}\n", "audit.permutations"),
        (GOOD.replace("{embedded: tinysee}", "{embedded: tinysee, table: x.csv}"), "exactly one of"),
        (GOOD.replace("pool: p", "pool: ../p"), "pool"),
        ("[1, 2]", "a params file is a mapping"),
        ("pool: [", "not readable as YAML"),
        ("[" * 2000, "not readable as YAML"),
        (GOOD + "seed: 1\nseed: 2\n", "key 'seed' stands twice"),
        (GOOD + "seed: -1\n", "seed"),
        (GOOD + "notebooks: []\n", "notebooks"),
        (GOOD + "models: [{name: m}, {name: m}]\n", "models lists 'm' twice"),
        (GOOD + "audit: {options_by_stratum: {x: 100}}\n", "options_by_stratum"),
        (GOOD.replace("{embedded: tinysee}", "{folder: x, sheet: s}"), "data.sheet has no effect with data.folder"),
        (GOOD.replace("{embedded: tinysee}", "{matrix: m.csv, dataset: d.tsv}"), "data.dataset has no effect"),
    ],
)
def test_mistakes_are_one_line_that_names_the_file(tmp_path, text, said):
    with pytest.raises(AuditError) as e:
        _load(tmp_path, text)
    line = str(e.value)
    assert said in line and "p.yaml" in line and "\n" not in line


def test_missing_file(tmp_path):
    with pytest.raises(AuditError, match="no such params file"):
        load_params(tmp_path / "none.yaml")


def test_overrides_by_dotted_name(tmp_path):
    assert _load(tmp_path, GOOD, **{"audit.permutations": 1999}).audit.permutations == 1999
    with pytest.raises(AuditError, match="did you mean 'permutations'"):
        _load(tmp_path, GOOD, **{"audit.permutatons": 1999})


def test_paths_are_relative_to_the_file(tmp_path):
    p = _load(tmp_path, "pool: p\nbenchmark: B\ndata: {table: sub/x.csv}\n")
    assert p.data.table == (tmp_path / "sub/x.csv").resolve()
