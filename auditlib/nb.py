"""What notebooks call beside the library proper: the first step, and readable views of frames and saved files."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib import numerals
from auditlib.errors import AuditError
from auditlib.params import Params, load_params
from auditlib.paths import RunPaths, project_root, resolve
from auditlib.stages import refuse_foreign

if TYPE_CHECKING:
    import pandas as pd
    from IPython.display import HTML

    from auditlib.auditing import Audit
    from auditlib.pool import Pool


#: pixels per inch of the saved figures, and those at which a notebook shows them
FILE_DPI, SCREEN_DPI = 220, 130
#: classes that keep JupyterLab from reading "$ ... $" in foreign text as a formula
LITERAL = "mathjax_ignore tex2jax_ignore"


@dataclass(frozen=True)
class Start:
    """What a notebook works on; iterates as ``params, paths, limit``."""

    params: Params
    paths: RunPaths
    limit: int | None = None

    def __iter__(self):
        return iter((self.params, self.paths, self.limit))


def start(
    params: str | Path,
    outputs: str | Path = "outputs",
    overrides: Mapping[str, Any] | str | None = None,
    *,
    replace: bool = False,
) -> Start:
    """Check the parameters of a notebook and say where its files go.

    Parameters
    ----------
    params : path of a params file, as it is or relative to the project.
    outputs : folder for results, likewise.
    overrides : dotted names to values. ``{"limit": 50}`` is a quick look at the first 50 items: its results go to
        ``<pool>.limit50`` and never mix with those of the full run. JSON text is read as such: that is how
        papermill's ``-p overrides '{"limit": 50}'`` arrives.
    replace : whether results of another params file under the same pool name may be replaced.

    Raises
    ------
    AuditError
        The params file is missing, a key or value in it or in ``overrides`` is wrong, or the pool's results belong to
        another params file.
    """
    others = _mapping(overrides)
    limit = others.pop("limit", None)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise AuditError(f"overrides: limit is {limit!r}", mend="give a whole number of at least 1")
    checked = load_params(resolve(params), others)
    if limit is not None:
        checked = checked.model_copy(update={"pool": f"{checked.pool}.limit{limit}"})
    paths = RunPaths(resolve(outputs), checked.pool)
    if not replace:
        refuse_foreign(resolve(params), paths, project_root())
    return Start(checked, paths, limit)


def _mapping(overrides: Mapping[str, Any] | str | None) -> dict[str, Any]:
    given = overrides
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except ValueError:
            given = None
    elif given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise AuditError(f"overrides: {overrides!r} is no mapping of dotted names to values",
                         mend="""write -p overrides '{"audit.permutations": 999}', double quotes inside""")  # fmt: skip
    return dict(given)


def reading(pool: Pool) -> pd.DataFrame:
    """Per model: items with a scored answer, by condition and arm."""
    table = pool.models.dropna(axis="columns", how="all").reset_index(drop=True)
    for name in pool.arm_names:
        arm = pool.arms[name]
        for condition in arm.hits:
            seen = arm.observed(condition)
            table[f"{condition}, {name}"] = len(pool.items) if seen is None else seen.sum(axis=0)
    return table


def left_out(coverage: pd.DataFrame, most: int = 25) -> pd.DataFrame:
    """Coverage rows other than plain reading; equal reasons of several runs or items are one row with their sum."""
    table = coverage[coverage["what"] != "read"].fillna("")
    table = table.groupby(["what", "reason"], sort=False, as_index=False).agg(n=("n", "sum"), places=("n", "size"))
    return table[["what", "n", "places", "reason"]].head(most)


def readable(statistics: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Rows of the statistics frame: shares in percent, differences in points, columns without content left out.

    Parameters
    ----------
    statistics : rows of the statistics frame.
    keys : columns that tell the rows apart, shown first.
    """
    import pandas as pd

    out = pd.DataFrame({k: statistics[k].astype(object).fillna("") for k in keys})
    out["items"] = statistics["n"].map(numerals.count)
    out["share"] = statistics["estimate"].map(numerals.percent)
    out["95% interval (%)"] = _intervals(statistics, "low", "high", numerals.pct)
    out["by chance"] = statistics["null"].map(numerals.percent)
    out["excess"] = statistics["excess"].map(numerals.points)
    out["95% interval (pp)"] = _intervals(statistics, "excess_low", "excess_high", numerals.pp)
    out["p"] = statistics["p"].map(numerals.p_value)
    out["p from"] = statistics["p_method"].astype(object).fillna("")
    filled = [c for c in out if c in keys or (~out[c].isin(["", numerals.NONE])).any()]
    return out[filled].reset_index(drop=True)


def escape(text: object) -> str:
    """Text for HTML; imported late, since every command of the runner passes through :func:`start`."""
    from auditlib.escape import html

    return html(text)


def _intervals(table: pd.DataFrame, low: str, high: str, show: Callable[[float], str]) -> list[str]:
    return [numerals.interval(a, b, show) for a, b in zip(table[low], table[high])]


def show(table: pd.DataFrame) -> HTML:
    """A frame as a plain table: whole texts, words to the left, numbers to the right, everything escaped."""
    from IPython.display import HTML
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if any(name is not None for name in table.index.names):
        table = table.rename_axis(columns=None).reset_index()
    right = [is_numeric_dtype(table[c]) and not is_bool_dtype(table[c]) for c in table]
    sides = ["right" if r else "left" for r in right]
    head = "".join(f"<th style='text-align:{s}'>{escape(str(c))}</th>" for c, s in zip(table, sides))
    rows = "".join(
        "<tr>" + "".join(f"<td style='text-align:{s}'>{_cell(v)}</td>" for v, s in zip(row, sides)) + "</tr>"
        for row in table.itertuples(index=False)
    )
    body = rows or f"<tr><td colspan='{len(sides)}'>none</td></tr>"
    return HTML(f"<table class='dataframe {LITERAL}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) or value is None:
        return escape(numerals.general(value))
    return escape(str(value))


def findings(table: pd.DataFrame, detector: str | None = None, most: int = 15) -> pd.DataFrame:
    """The flagged items, most severe and most suspicious first."""
    import pandas as pd

    from auditlib.frames import SEVERITIES

    flagged = table[table["flag"]]
    if detector:
        flagged = flagged[flagged["detector"] == detector]
    rank = pd.Categorical(flagged["severity"], SEVERITIES, ordered=True)
    order = flagged.assign(rank=rank).sort_values(["rank", "score"], ascending=[True, False], kind="stable")
    return order[["item", "detector", "arm", "severity", "score", "message"]].head(most).reset_index(drop=True)


def picture(paths: RunPaths, name: str) -> HTML:
    """A saved figure with its caption, or the reason why this pool has none."""
    import pandas as pd
    from IPython.display import HTML

    listing = paths.figures / "index.csv"
    if not listing.exists():
        raise AuditError("no figures have been saved", file=paths.figures.name, mend="call save_figures first")
    rows = pd.read_csv(listing, dtype=str, keep_default_na=False).set_index("name")
    if name not in rows.index:
        raise AuditError(f"no figure {name!r}", mend=f"figures: {', '.join(rows.index)}")
    row = rows.loc[name]
    if row["state"] != "drawn":
        return HTML(f"<p><b>{escape(row['title'])}</b>: not drawn, {escape(row['reason'])}.</p>")
    data = (paths.figures / f"{name}.png").read_bytes()
    width = int.from_bytes(data[16:20], "big") * SCREEN_DPI // FILE_DPI  # the header of a PNG holds its width
    caption, content = escape(row["caption"]), base64.b64encode(data).decode()
    image = f'<img src="data:image/png;base64,{content}" alt="{caption}" style="width:{width}px;max-width:100%">'
    return HTML(f"<figure class='{LITERAL}' style='margin:0'>{image}<figcaption>{caption}</figcaption></figure>")


def figure(result: Any, paths: RunPaths, name: str) -> HTML:
    """Draw and save one figure of a study, and show it with its caption."""
    from auditlib.figures.save import save_study_figures

    save_study_figures(result, paths, [name])
    return picture(paths, name)


def further(audit: Audit, kind: str) -> list[str]:
    """Names of the figures or tables of the studies that were made of this pool."""
    from auditlib.studies import STUDIES

    return [x.name for s in STUDIES.values() if audit.study(s.name) is not None for x in getattr(s, kind)]


def table(audit: Any, name: str) -> HTML:
    """A table of the report as its HTML file shows it, or the reason why this pool has none.

    ``audit`` may also be the result of a study, for the study's own tables.
    """
    from IPython.display import HTML

    from auditlib import table_formats
    from auditlib.lookup import Lacking
    from auditlib.studies import all_tables, study_of

    known = all_tables()
    if name not in known:
        raise AuditError(f"no table {name!r}", mend=f"tables: {', '.join(known)}")
    this, study = known[name], study_of(name)
    subject = audit if study is None or getattr(audit, "name", None) == study.name else audit.study(study.name)
    try:
        if subject is None:
            raise Lacking("the notebook that makes it has not been run")
        frame = this.build(subject)
    except Lacking as why:
        return HTML(f"<p><b>{escape(this.title)}</b>: not made, {escape(str(why))}.</p>")
    columns = this.columns_of(frame)
    rows = table_formats.html_rows(columns, table_formats.cells(frame, columns))
    for side, word in (("l", "left"), ("r", "right")):  # foreign text holds no bare quote, so only attributes match
        rows = rows.replace(f'class="{side}"', f'style="text-align:{word}"')
    caption = f"<caption style='text-align:left'>{escape(this.title)}</caption>"
    note = f"<p><small>{escape(this.note)}</small></p>" if this.note else ""
    return HTML(f"<div class='{LITERAL}'><table class='dataframe'>{caption}{rows}</table>{note}</div>")


def files(folder: Path) -> pd.DataFrame:
    """Names and sizes of the files in a folder of results."""
    import pandas as pd

    found = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    return pd.DataFrame({"file": [p.name for p in found], "kB": [round(p.stat().st_size / 1000, 1) for p in found]})
