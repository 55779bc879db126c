"""LaTeX for a paper: values as in statistics.csv, legal names, files that TeX takes, a check for stale numbers."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from functools import cache

import pytest
import yaml
from builders import scratch
from demo_audit import bare, demo
from latex_reader import all_files, definitions, printed, problems
from report_pages import saved

from auditlib import latex, numerals
from auditlib.__main__ import main
from auditlib.errors import AuditError
from auditlib.figures import save_figures
from auditlib.latex import names
from auditlib.latex.files import Pool, write_folder
from auditlib.latex.merge import refuse_clashes
from auditlib.latex.numbers import all_numbers, short_names
from auditlib.latex.words import p_said, text, value
from auditlib.lookup import pool_range
from auditlib.outputs import load_audit, read_statistics
from auditlib.paths import RunPaths
from auditlib.summary import headline_row

AUDITS = {"full": demo, "noblind": lambda: demo(blind=False), "one": lambda: demo(models=1, blind=False),
          "bare": bare, "hostile": lambda: demo(hostile=True)}  # fmt: skip


@cache
def written(name: str) -> RunPaths:
    paths = saved(AUDITS[name](), scratch() / f"latex-{name}")
    audit = load_audit(paths)
    if name == "full":
        save_figures(audit, paths, ["fig2b_null"])
    latex.save_latex(audit, paths)
    return paths


def numbers(name: str) -> tuple[dict[str, str], dict[str, str]]:
    return definitions((written(name).latex / "numbers.tex").read_text(encoding="utf-8"))


# --- names and values ---


def test_names_hold_letters_only_and_keys_what_csname_takes():
    assert names.macro("mmgist_18", "excess", "p says") == "auditMmgistOneEightExcessPSays"
    assert names.macro("a.b-c_d", "zero gain") == "auditABCDZeroGain"
    for text_ in ("été", "InternVL3-8B", "<i>& $_ {x}", "שלום", "", "%\\"):
        assert re.fullmatch(r"[a-z0-9-]+", names.slug(text_))
    assert names.unique(["a", "b", "a", "a"]) == ["a", "b", "a-2", "a-3"]


@pytest.mark.parametrize(
    ("shown", "tex"),
    [("20.2%", r"20.2\%"), ("−1.8", r"\ensuremath{-}1.8"), (".043", ".043"), ("12,345", "12,345"),
     ("1.3e−4", r"\ensuremath{1.3\times10^{-4}}"), ("< 1e−15", r"\ensuremath{<10^{-15}}"),
     ("[18.2, 22.3]", "{[}18.2, 22.3{]}")],
)  # fmt: skip
def test_printed_numbers_become_latex(shown, tex):
    assert value(shown) == tex and printed(tex) == shown


def test_p_values_are_said_with_their_relation():
    assert p_said(0.043) == r"\ensuremath{p = .043}" and p_said(0.0) == r"\ensuremath{p <10^{-15}}"
    assert p_said(1.3e-4) == r"\ensuremath{p = 1.3\times10^{-4}}"


def test_words_cannot_act():
    assert text(r"\input{x} 5% a_b $y$ ~^#&") == (
        r"\textbackslash{}input\{x\} 5\% a\_b \$y\$ \textasciitilde{}\textasciicircum{}\#\&"
    )
    assert "\u202e" not in text("a\u202eb")


# --- numbers.tex against statistics.csv ---


@pytest.mark.parametrize("name", list(AUDITS))
def test_every_value_is_the_one_of_its_row(name):
    paths = written(name)
    table = read_statistics(paths.statistics)
    lines = re.findall(r"^\\auditset\{([^{}]*)\}\{(.*)\}% statistics\.csv line (\d+), (\w+)$",
                       (paths.latex / "numbers.tex").read_text(encoding="utf-8"), re.MULTILINE)  # fmt: skip
    assert len(lines) > 50
    columns = {c: table[c].tolist() for c in table.columns}
    for key, tex, line, column in lines:
        number = columns[column][int(line) - 2]
        form = printed(tex)
        if key.endswith(".p-says"):
            assert numerals.p_value(number) in form
        elif column == "n":
            assert form == numerals.count(number)
        elif column in ("p", "q"):
            assert form == numerals.p_value(number)
        elif column.startswith("excess"):
            assert form == numerals.pp(number)
        else:
            shows = (numerals.percent, numerals.pp, numerals.number, numerals.general)
            assert form in {show(number) for show in shows}


def test_short_names_are_the_headline():
    audit = demo()
    values, short = numbers("full")
    r = headline_row(audit)
    said = {name: values[key] for name, key in short.items()}
    assert said["auditDemoZeroGain"] == value(numerals.percent(r["estimate"]))
    assert said["auditDemoExcess"] == value(numerals.pp(r["excess"]))
    assert said["auditDemoExcessInterval"] == value(numerals.interval(r["excess_low"], r["excess_high"], numerals.pp))
    assert said["auditDemoZeroGainCount"] == f"{r['estimate'] * r['n']:.0f}"
    low, high = pool_range(audit.statistics, "zero_gain_share", "excess", arm=audit.arm, policy="wrong",
                           null_kind="within")  # fmt: skip
    assert said["auditDemoExcessRange"] == f"{value(numerals.pp(low))} to {value(numerals.pp(high))}"
    assert (said["auditDemoItems"], said["auditDemoModels"]) == ("120", "3")


def test_percent_numbers_and_points_have_their_own_rule():
    values, _ = numbers("full")
    kappa = next(v for k, v in values.items() if k.endswith("fleiss-kappa.exact.estimate"))
    gain = next(v for k, v in values.items() if ".multimodal-gain." in k and k.endswith("estimate"))
    share = next(v for k, v in values.items() if k.endswith("unanimous-share.exact.estimate"))
    assert re.fullmatch(r"0\.\d{3}", kappa) and r"\%" in share
    assert re.fullmatch(r"\\ensuremath\{[+-]\}\d+\.\d", gain)


@pytest.mark.parametrize("name", list(AUDITS))
def test_keys_and_macros_are_unique_and_defined(name):
    audit = load_audit(written(name))
    found = all_numbers(audit, audit.pool_name)
    keys = [n.key for n in found]
    assert len(set(keys)) == len(keys) and all(re.fullmatch(r"[a-z0-9.-]+", k) for k in keys)
    short = short_names(audit, audit.pool_name, found)
    assert set(short.values()) <= set(keys)
    values, macros = numbers(name)
    assert set(values) == set(keys) and set(macros.values()) == set(short.values())


def test_a_pool_without_blind_run_has_no_gain():
    values, short = numbers("noblind")
    assert not [k for k in values if ".zero-gain-share." in k] and not [m for m in short if "Excess" in m]
    assert [m for m in short if m.endswith("Unanimous")] and [m for m in short if m.endswith("AccuracyRange")]


def test_one_model_has_neither_votes_nor_ranges():
    values, short = numbers("one")
    assert not [k for k in values if ".without-one." in k or ".unanimous-share." in k]
    assert {m.removeprefix("auditDemo") for m in short} >= {"Items", "Models", "AccuracyRange"}


# --- files ---


@pytest.mark.parametrize("name", list(AUDITS))
def test_files_are_sound_and_use_only_what_is_defined(name):
    paths = written(name)
    files = all_files(paths.latex)
    assert {f: p for f, t in files.items() if (p := problems(t))} == {}
    values, short = numbers(name)
    used = set(re.findall(r"\\(audit[A-Z]\w*)", files["example.tex"]))
    assert used == set(short)
    keys = set(re.findall(r"\\auditnum\{([^}#]*)\}", files["example.tex"] + files["audit.tex"]))
    assert keys <= set(values)
    named = set(re.findall(r"\\input\{\\auditroot/([^}]*)\}", files["audit.tex"]))
    assert named == {f.removesuffix(".tex") for f in files} - {"audit", "example"}


def test_the_reader_finds_what_tex_would_stop_at():
    assert problems("\\auditset{a}{20.2\\%}% x\n") == []
    assert problems("a_b") and problems("{") and problems("}") and problems("5 $ 3") and problems("#1")
    assert problems("\\begin{figure}") and problems("\\ifdefined\\x")


def test_figures_lie_beside_with_their_captions():
    paths = written("full")
    file = (paths.latex / "figures" / "fig2b_null.tex").read_text(encoding="utf-8")
    assert (paths.latex / "figures" / "fig2b_null.pdf").read_bytes() == (paths.figures / "fig2b_null.pdf").read_bytes()
    assert "{\\auditroot/figures/fig2b_null.pdf}" in file and "\\label{fig:demo-fig2b-null}" in file
    assert "DemoBench: Observed share against its null." in file


def test_bytes_repeat_and_old_files_go():
    paths = written("full")
    before = {f: f.read_bytes() for f in sorted(paths.latex.rglob("*")) if f.is_file()}
    (paths.latex / "tables" / "gone.tex").write_text("x")
    with (paths.latex / "files.txt").open("a") as listing:
        listing.write("tables/gone.tex\n")
    table = latex.save_latex(load_audit(paths), paths)
    assert {f: f.read_bytes() for f in sorted(paths.latex.rglob("*")) if f.is_file()} == before
    assert {*table["file"], "files.txt"} == {f.relative_to(paths.latex).as_posix() for f in before}


def test_the_folder_belongs_to_the_stage_of_tables():
    from auditlib import stages

    paths = written("full")
    assert paths.latex / "numbers.tex" in stages.expected("90_tables", paths)
    assert paths.latex / "audit.tex" in stages.belonging("90_tables", paths)


def tex(folder, *, again: int = 1) -> str:
    """What pdfTeX says of the example; it stops at the first error."""
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex here")
    for _ in range(again):
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "example.tex"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=120)
        assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def test_tex_sets_the_example(tmp_path):
    from pypdf import PdfReader

    shutil.copytree(written("full").latex, tmp_path / "latex")
    said = tex(tmp_path / "latex")
    assert "Undefined control sequence" not in said and "Overfull" not in said
    plain = "".join(p.extract_text() for p in PdfReader(tmp_path / "latex" / "example.pdf").pages)
    r = headline_row(demo())
    assert numerals.percent(r["estimate"]) in plain and "??" not in plain
    (tmp_path / "example.tex").write_text((tmp_path / "latex" / "example.tex").read_text())
    assert "Output written" in tex(tmp_path)  # from the folder above, as a paper would


def test_tex_sets_hostile_names(tmp_path):
    shutil.copytree(written("hostile").latex, tmp_path / "latex")
    assert "Output written" in tex(tmp_path / "latex")


# --- several pools ---


def test_several_pools_share_a_folder(tmp_path):
    first, second = demo(), demo(blind=False)
    other = dataclasses.replace(second, pool_name="demo_2")
    pools = [Pool(first, RunPaths(tmp_path, "demo")), Pool(other, RunPaths(tmp_path, "demo_2"))]
    write_folder(pools, tmp_path / "paper")
    values, short = definitions((tmp_path / "paper" / "numbers.tex").read_text(encoding="utf-8"))
    assert values["demo.items"] == values["demo-2.items"] == "120"
    assert {"auditDemoItems", "auditDemoTwoItems"} <= set(short)
    files = all_files(tmp_path / "paper")
    assert {f: p for f, t in files.items() if (p := problems(t))} == {}
    labels = re.findall(r"\\label\{([^}]*)\}", "".join(files.values()))
    assert len(set(labels)) == len(labels) > 5


def test_pools_of_one_name_in_latex_are_refused():
    with pytest.raises(AuditError, match="would both be called"):
        refuse_clashes({n: [names.slug(n), names.macro(n)] for n in ("a_b", "a-b")})
    refuse_clashes({n: [names.slug(n), names.macro(n)] for n in ("a1", "a2")})


# --- the command ---


@pytest.fixture
def project(tmp_path):
    """A params file of a pool whose audit is saved."""
    paths = saved(demo(), tmp_path / "outputs")
    file = tmp_path / "demo.yaml"
    file.write_text(yaml.safe_dump({"pool": "demo", "benchmark": "DemoBench", "data": {"embedded": "tinysee"}}))
    return file, paths


def test_write_and_check(project, tmp_path, capsys):
    file, paths = project
    outputs = ["--outputs", str(paths.outputs)]
    assert main(["latex", "write", str(file), "--to", str(tmp_path / "latex"), *outputs]) == 0
    assert "numbers" in capsys.readouterr().out
    paper = tmp_path / "paper.tex"
    paper.write_text("\\input{latex/audit}\n\\auditDemoExcess and \\auditnum{demo.items}\n% \\auditDemoNothing\n")
    check = ["latex", "check", str(paper), "--params", str(file), *outputs]
    assert main(check) == 0 and "up to date" in capsys.readouterr().out
    paper.write_text(paper.read_text() + "\\auditDemoExces \\auditnum{demo.itmes}\n")
    assert main(check) == 1
    said = capsys.readouterr().out
    assert "paper.tex:4: \\auditDemoExces: no pool has this number" in said and "demo.itmes" in said


def test_check_names_numbers_that_changed(project, tmp_path, capsys):
    file, paths = project
    outputs = ["--outputs", str(paths.outputs)]
    main(["latex", "write", str(file), "--to", str(tmp_path / "latex"), *outputs])
    s = demo().statistics.copy()
    mine = s["metric"].eq("unanimous_share") & s["models"].eq("all") & s["stratum"].eq("all") & s["level"].eq("")
    s.loc[mine, "estimate"] = 0.5
    saved(demo(), paths.outputs, statistics=s)
    paper = tmp_path / "paper.tex"
    paper.write_text("\\input{latex/numbers}\n\\auditDemoItems, \\auditDemoUnanimousShare\n")
    capsys.readouterr()
    assert main(["latex", "check", str(paper), "--params", str(file), *outputs]) == 1
    said = capsys.readouterr().out
    assert "\\auditDemoUnanimousShare: was" in said and "is 50.0\\%" in said and "auditDemoItems" not in said


@pytest.fixture
def stale(project, tmp_path):
    """A paper with its numbers in ``audit``, one of them changed since; a function that checks it."""
    file, paths = project
    outputs = ["--outputs", str(paths.outputs)]
    main(["latex", "write", str(file), "--to", str(tmp_path / "audit"), *outputs])
    s = demo().statistics.copy()
    mine = s["metric"].eq("unanimous_share") & s["models"].eq("all") & s["stratum"].eq("all") & s["level"].eq("")
    s.loc[mine, "estimate"] = 0.5
    saved(demo(), paths.outputs, statistics=s)
    paper = tmp_path / "paper.tex"

    def check(text: str) -> int:
        paper.write_text(text)
        return main(["latex", "check", str(paper), "--params", str(file), *outputs])

    return check


USED = "\\auditDemoItems, \\auditDemoUnanimousShare\n"


@pytest.mark.parametrize(
    "text",
    ["\\newcommand{\\auditroot}{audit}\n\\input{\\auditroot/audit}\n",
     "\\def\\auditroot{audit}\\input\\auditroot/numbers\n",
     "\\input audit/numbers\n", "\\newcommand*\\auditroot{audit} \\input{audit/audit}\n"],
)  # fmt: skip
def test_check_reads_the_numbers_wherever_the_paper_keeps_them(stale, capsys, text):
    capsys.readouterr()
    assert stale(text + USED) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and "\\auditDemoUnanimousShare: was" in said[0] and said[1] == "1 to mend"


def test_check_says_that_the_folder_of_the_numbers_is_not_said(stale, capsys):
    capsys.readouterr()
    assert stale("\\input{audit/audit}\n" + USED) == 1
    said = capsys.readouterr().out
    assert "audit/audit.tex:3: \\input{\\auditroot/numbers}: no such file: latex/numbers" in said
    assert "\\auditDemoUnanimousShare: was" in said, "the numbers beside it are compared all the same"
    assert stale(USED) == 1 and "takes in no numbers.tex" in capsys.readouterr().out


def test_check_reads_files_of_any_name_and_says_what_it_cannot(stale, tmp_path, capsys):
    (tmp_path / "sections").mkdir()
    (tmp_path / "sections" / "numbers.tex").write_text("\\auditDemoNone\n")
    (tmp_path / "own.tex").write_text("\\auditset{demo.items}{1\\%{}2} % mine\n\\auditDemoAbsent \\auditDemoItems\n")
    capsys.readouterr()
    assert stale("\\def\\auditroot{audit}\\input{audit/audit}\\input sections/numbers\n\\input{own}\\input gone\n") == 1
    said = capsys.readouterr().out
    assert "sections/numbers.tex:1: \\auditDemoNone: no pool has this number" in said
    assert "own.tex:2: \\auditDemoAbsent: no pool" in said and "\\auditDemoItems: was 1\\%{}2, is" in said
    assert "note: paper.tex:2: \\input gone is not found here, so not checked" in said and "3 to mend" in said


def test_mistakes_are_one_line(project, tmp_path, capsys):
    file, paths = project
    outputs = ["--outputs", str(paths.outputs)]
    assert main(["latex", "write", str(file), str(file), *outputs]) == 2
    assert "is named twice" in capsys.readouterr().err
    assert main(["latex", "check", str(tmp_path / "none.tex"), "--params", str(file), *outputs]) == 2
    assert main(["latex", "write", str(file), "--outputs", str(tmp_path / "empty")]) == 2
    assert "has not been audited" in capsys.readouterr().err


def test_statistics_file_is_named_with_its_hash():
    from auditlib.freshness import file_hash

    paths = written("full")
    first = (paths.latex / "numbers.tex").read_text(encoding="utf-8").splitlines()[:2]
    assert file_hash(paths.statistics)[:16] in first[1]


def test_only_files_of_its_own_are_replaced_or_removed(tmp_path):
    paths, folder = written("one"), tmp_path / "paper"
    pool = Pool(load_audit(paths), paths)
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "mine.tex").write_text("mine")
    with pytest.raises(AuditError, match="did not make"):
        write_folder([pool], folder)
    assert [p.name for p in folder.rglob("*") if p.is_file()] == ["mine.tex"]
    own = folder / "audit"
    made = set(write_folder([pool], own)["file"])
    (own / "tables" / "mine.tex").write_text("mine")
    (own / "tables" / "gone.tex").write_text("of an earlier run")
    with (own / "files.txt").open("a") as listing:
        listing.write("tables/gone.tex\n../tables/mine.tex\n")
    assert set(write_folder([pool], own)["file"]) == made
    assert (own / "tables" / "mine.tex").exists() and (folder / "tables" / "mine.tex").exists()
    assert not (own / "tables" / "gone.tex").exists()
