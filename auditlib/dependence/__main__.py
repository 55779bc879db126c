"""What each part of a diagnosis is worth on one pool, and what smaller pools of models keep of it.

    python -m auditlib.dependence params/POOL.yaml [--labels labels.csv] [--sizes 4 6] [--draws 20]

Prints two tables and writes them as ``ablations.csv`` and ``smaller_pools.csv`` into ``--save``.  Labels are people's
own where the pool has decisions of readers, or those of ``--labels`` (columns item and label: R, V, T, S).  Without
either, every reduction is compared with the labels of the whole diagnosis, which says how much a part moves and not
whether it helps.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from auditlib.dependence.study import Dependence


def main(argv: list[str] | None = None) -> int:
    """Run the command; 1 where the input is not fit for it."""
    parser = argparse.ArgumentParser(
        prog="python -m auditlib.dependence", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("params", type=Path, help="the pool, with a block dependence")
    parser.add_argument("--outputs", type=Path, default=Path("outputs"), help="where results lie (default outputs)")
    parser.add_argument("--labels", type=Path, help="csv of known labels: item, label")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 6], help="models in a smaller pool (default 4 6)")
    parser.add_argument("--draws", type=int, default=20, help="smaller pools of each size (default 20)")
    parser.add_argument("--save", type=Path, help="folder for the tables as csv")
    a = parser.parse_args(argv)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from auditlib.errors import AuditError

    try:
        made = tables(a.params, a.outputs, labels=a.labels, sizes=a.sizes, draws=a.draws)
    except AuditError as e:
        print(e, file=sys.stderr)
        return 1
    for name, (title, table) in made.items():
        print(f"\n{title}\n{table.round(4).to_string(index=False)}")
        if a.save:
            from auditlib.paths import atomic

            a.save.mkdir(parents=True, exist_ok=True)
            with atomic(a.save / f"{name}.csv") as target:
                table.to_csv(target, index=False)
    return 0


def tables(
    params: Path, outputs: Path, *, labels: Path | None, sizes: list[int], draws: int
) -> dict[str, tuple[str, pd.DataFrame]]:
    """Both tables by name, each with a title; the first only where the pool has a structural prior.

    Raises
    ------
    AuditError
        The pool lacks a condition or cannot be read, sizes that it does not have, labels of other items.
    """
    from auditlib import nb
    from auditlib.dependence import study
    from auditlib.dependence.ablations import subsample_pool
    from auditlib.dependence.annotation import read_annotation
    from auditlib.errors import AuditError
    from auditlib.reading import read_pool

    settings, paths, _ = nb.start(params, outputs)
    d = study.with_prior(study.read(read_pool(settings, outputs=outputs)), outputs)
    if d.responses is None or d.prior is None:
        raise AuditError(f"the pool has no run under {', '.join(d.missing)}", mend="run all four conditions")
    items = list(d.responses.items)
    people = read_annotation(settings, paths)
    known = _known(labels, items) if labels else None if people is None else people.table
    rng = d.source.rng("dependence", "ablations")
    out = {}
    if d.prior.informative:
        out["ablations"] = _ablations(d, known, rng)
    else:
        print("there is no structural prior, so nothing but responses to leave out", file=sys.stderr)
    truth = None if known is None else known.set_index("item")["label"].reindex(items).fillna("").to_numpy(object)
    small = subsample_pool(d.responses, d.prior, truth, rng=rng, sizes=sizes, draws=draws, method=d.params.method)
    what = "agreement with the labels of all models" if truth is None else "known labels recovered"
    out["smaller_pools"] = (f"Smaller pools of models: {what}", small)
    return out


def _known(path: Path, items: list[str]) -> pd.DataFrame:
    """Labels of a file as a frame item, label, state."""
    import pandas as pd

    from auditlib.dependence.profile import LABELS
    from auditlib.errors import AuditError

    form = "give a csv with columns item and label (R, V, T, S)"
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as e:
        raise AuditError(f"no table of labels ({type(e).__name__})", file=path, mend=form) from None
    lacking = [c for c in ("item", "label") if c not in table]
    if lacking:
        raise AuditError(f"there is no column {lacking[0]!r}", file=path, mend=form)
    bad = ~table["label"].isin([*LABELS, ""]) | table["item"].duplicated()
    if bad.any():
        row = int(bad.to_numpy().argmax())
        item, label = table.iloc[row][["item", "label"]]
        raise AuditError(f"item {item} is there twice, or its label {label!r} is unknown", file=path, row=row + 2,
                         mend=form)  # fmt: skip
    table = table[table["item"].isin(items) & table["label"].ne("")]
    if not len(table):
        raise AuditError("no label is of an item of the pool", file=path, mend=f"ids look like {', '.join(items[:3])}")
    return table[["item", "label"]].assign(state="labelled")


def _ablations(d: Dependence, known: pd.DataFrame | None, rng: np.random.Generator) -> tuple[str, pd.DataFrame]:
    import numpy as np
    import pandas as pd

    from auditlib.dependence.ablations import ablate
    from auditlib.dependence.annotation import score_methods
    from auditlib.dependence.profile import LABELS
    from auditlib.dependence.study import settings_of

    made = ablate(d.responses, d.prior, settings=settings_of(d.params), iterations=d.params.fit.iterations)
    whole = made["stacked"].argmax(1)
    same = pd.DataFrame({"method": list(made), "as whole": [(p.argmax(1) == whole).mean() for p in made.values()]})
    if known is None:
        return "Parts left out: share of labels as by the whole diagnosis", same
    items = list(d.responses.items)
    named = {n: pd.Series(np.array(LABELS)[p.argmax(1)], items) for n, p in made.items()}
    scores, compared = score_methods(known, named, rng=rng)
    metric = compared[compared["metric"].eq("accuracy")].set_index("against")
    shown = [c for c in ("difference", "low", "high", "p_holm") if c in metric]
    table = scores[["method", "n", "accuracy", "macro_f1"]].merge(same, on="method")
    return ("Parts left out, against known labels; the whole less each, with 95% interval and p after Holm",
            table.merge(metric[shown], left_on="method", right_index=True, how="left"))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
