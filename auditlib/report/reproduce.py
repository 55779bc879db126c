"""How to get this report again: settings, inputs, versions, and the command behind each figure and table."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from auditlib.extensions import extensions_of
from auditlib.figures.pipeline import plural
from auditlib.freshness import PACKAGES, flat
from auditlib.params import STAGES
from auditlib.paths import RunPaths
from auditlib.report import again
from auditlib.report.blocks import Block, Run, Section, b, code, h3, link, p, pre, section, table
from auditlib.report.exhibits import not_shown, saved_figures
from auditlib.studies import all_tables
from auditlib.tables import TABLES


def read_manifest(paths: RunPaths) -> dict[str, Any]:
    """The pool's manifest; empty where there is none."""
    try:
        return json.loads(paths.manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def run_command(audit: Any, paths: RunPaths) -> str:
    """The command that runs this pool, from its status or manifest, else with its likely params file."""
    stated = read_manifest(paths).get("command")
    if stated:
        return str(stated)
    try:
        file = json.loads(paths.status.read_text(encoding="utf-8")).get("params")
    except (OSError, ValueError):
        file = None
    limit = f" --limit {audit.steps['limit']}" if audit.steps["limit"] else ""
    name = audit.pool_name.removesuffix(f".limit{audit.steps['limit']}")
    return f"auditlib run {file or f'params/{name}.yaml'}{limit}"


def reproduce(audit: Any, built: dict[str, Any], paths: RunPaths) -> Section:
    """The section ``reproduce``."""
    manifest, command = read_manifest(paths), run_command(audit, paths)
    return section(
        "reproduce",
        "How to get this again",
        p("Everything, from the saved runs to this report; what is fresh is skipped:"),
        pre(command),
        p(
            *_stages(audit),
            ". One figure or table again, from the saved audit:",
        ),
        _commands(audit, paths),
        _missing(built, paths),
        *_manifest(manifest),
        _settings(audit),
    )


def _stages(audit: Any) -> list[Run]:
    """Which notebooks made this, in order."""
    names = audit.params.notebooks if audit.params else STAGES
    runs: list[Run] = ["Everything here is made by the notebooks "]
    for place, name in enumerate(names):
        runs += [", " if 0 < place < len(names) - 1 else " and " if place else "", code(name)]
    return runs


def _commands(audit: Any, paths: RunPaths) -> Block:
    folder = f"{paths.outputs.name}/{paths.pool}"
    drawn = saved_figures(paths)
    rows = [
        [f"figures/{r.name_}", r.title, again.command("figures", folder, r.name_)]
        for r in drawn[drawn["state"].eq("drawn")].rename(columns={"name": "name_"}).itertuples()
    ]
    known = all_tables() | extensions_of(audit.params).tables
    there = {n for n in known if (paths.tables / f"{n}.csv").exists()}
    rows += [
        [f"tables/{n}", t.title, again.command("tables", folder, n)]
        for n, t in known.items()
        if n in there or (n in TABLES and not paths.tables.is_dir())
    ]
    return table(
        "",
        "The command behind each figure and table",
        ["File", "Title", "Command"],
        [True] * 3,
        rows,
        note="Run in the project’s folder. Beside a figure lie its numbers (.csv).",
        widths=[0, 2, 3],
    )


def _missing(built: dict[str, Any], paths: RunPaths) -> Block | None:
    rows = not_shown(built, paths)
    return (
        table("", "What this pool does not have", ["Name", "Title", "Why"], [True] * 3, rows, widths=[0, 1, 1])
        if rows
        else None
    )


def _manifest(m: dict[str, Any]) -> list[Block]:
    if not m:
        return [p("No manifest lies beside this report, so versions, commit and input hashes are not known.")]
    git = m.get("git") or {}
    commit = git.get("commit", "not known") + (" with local changes" if git.get("dirty") else "")
    versions = m.get("versions", {})
    named = [f"{n} {versions[n]}" for n in ("python", *PACKAGES) if n in versions]
    inputs = m.get("inputs", {})
    facts = [
        ["inputs", f"{plural(len(inputs), 'file')}, each with its SHA-256 in manifest.json"],
        ["judge", str(m.get("judge") or "none named")],
        ["seed", f"{m.get('seeds', {}).get('run', '')}; {m.get('seeds', {}).get('rule', '')}"],
        ["commit", commit],
        ["auditlib", str(m.get("auditlib", ""))],
        ["versions", ", ".join(dict.fromkeys(named))],
        ["platform", str(m.get("platform", ""))],
    ]
    how = {k: v for k, v in flat(m.get("provenance", {})).items() if k and v not in (None, "", {}, [])}
    facts += [[f"runs: {k}", str(v)] for k, v in list(how.items())[:20]]
    return [
        h3("Manifest"),
        table(
            "",
            "What the results were made from",
            ["Fact", "Value"],
            [True, True],
            facts,
            note="The whole manifest: manifest.json.",
            widths=[0, 1],
        ),
    ]


def _settings(audit: Any) -> Block:
    if audit.params is None:
        return p(b("Settings. "), "The pool was made in memory, with default settings.")
    plain = flat(audit.params.model_dump(mode="python"))
    rows = [[k, _value(v)] for k, v in plain.items() if v not in (None, {}, []) and not k.startswith("models")]
    return table(
        "",
        "Settings",
        ["Name", "Value"],
        [True, True],
        rows,
        note="Every value, defaults included; params.resolved.yaml can be run as it is.",
        widths=[0, 1],
    )


def _value(value: Any) -> str:
    """A setting as text; of a path the name alone: a report says nothing about the machine."""
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return value.name if isinstance(value, PurePath) else str(value)


def footer() -> list[Block]:
    """Responsible use."""
    return [
        p(
            "This report is auxiliary evidence. Candidates are candidates: agreement of models, a tie, or a similar "
            "pair of "
            "options is a reason to look, not proof. People review an item, with its image, before it is corrected or "
            "dropped, and changes are reported with the version of the benchmark. Do not rank models by numbers of "
            "this "
            "report, and do not quote a share without its null, interval and model pool."
        ),
        p("The list to send to maintainers: ", link("flagged.md"), "."),
    ]
