"""Files of invented judges with planted habits, as the ordinary readers read them; no model was run."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from auditlib.synth import decision_judges as decide
from auditlib.synth import perturbation_judges as perturb
from auditlib.synth.extraction_readings import planted_readings

#: what is written
NAMES = ("scores", "pairs", "choices", "candidates", "ratings", "perturbations", "readings")
#: "keen" notices most, "reader" reads the text only, "grump" dislikes whatever was changed
JUDGES = (
    perturb.PerturbationJudge("keen", weight=0.8, weights={"i2t_cause": 0.05, "i2t_count_one": 0.15, "i2t_depth": 0.25},
                              noise=0.45),
    perturb.PerturbationJudge("reader", weight=0.45, weights={"i2t_contradiction": 1.0, "i2t_left_right": 0.05},
                              noise=0.5, length=0.5, blind=1.0, silent=0.03),
    perturb.PerturbationJudge("grump", habit="always_negative"),
)  # fmt: skip
#: "first" likes the first slot
PAIR_JUDGES = (
    perturb.PerturbationJudge("keen", weight=0.8, weights={"i2t_cause": 0.05, "i2t_count_one": 0.15, "i2t_depth": 0.25},
                              noise=0.45),
    perturb.PerturbationJudge("first", weight=0.4, slot=0.8, noise=0.5),
)  # fmt: skip
DECIDERS = (decide.LOCKED, decide.GOOD, *decide.SHARED)
#: "kin" decides well, but takes an output of its own family with this chance whatever it is worth
KIN, OWN = decide.PlantedJudge("kin", sharpness=1.5), 0.35
#: authors of the candidates and families of authors and judges
AUTHORS = ("kite-1", "wren-1", "tern-1")
FAMILIES = {"kite-1": "kite", "wren-1": "wren", "tern-1": "tern", "kin": "kite", "good": "wren", "locked": "tern"}


@dataclass(frozen=True)
class SyntheticJudges:
    """The tables, one per name of :data:`NAMES`."""

    tables: dict[str, pd.DataFrame]


def synthetic_judges(clusters: Sequence[str], *, per_dimension: int = 14, prompts: int = 100, seed: int = 11
                     ) -> SyntheticJudges:  # fmt: skip
    """Calls of the judges, candidates with ratings, the sheet of planted changes, and readings of an extraction judge.

    Parameters
    ----------
    clusters : ids of the items whose answers are damaged.
    """
    instances = perturb.planted_instances(per_dimension, seed=seed, neutral=20, clusters=clusters)
    shown = perturb.planted_scores(instances, JUDGES, seed=seed, repeats=2, whole=True)
    blind = perturb.planted_scores(instances, JUDGES[:2], seed=seed, image="withheld", whole=True)
    pairs = perturb.planted_scores(instances, PAIR_JUDGES, seed=seed, paradigm="pairwise")
    candidates = decide.planted_candidates(prompts, seed=seed)
    candidates = candidates.assign(author=[AUTHORS[i % 3] for i in range(len(candidates))])
    calls = decide.planted_calls(candidates, DECIDERS, seed=seed, repeats=2)
    calls = pd.concat([calls, own_first(decide.planted_calls(candidates, [KIN], seed=seed + 1, repeats=2), candidates,
                                        seed=seed)], ignore_index=True)  # fmt: skip
    shared = ["judge", "instance", "cluster", "dimension", "effect", "severity", "style", "image", "repeat"]
    scores = pd.concat([shown, blind], ignore_index=True)
    scored = scores[shared].assign(candidate=scores["shown"].map(lambda s: s[0]), score=scores["score"])
    voted = pairs[shared].assign(first=pairs["shown"].map(lambda s: s[0]), second=pairs["shown"].map(lambda s: s[1]),
                                 verdict=pairs["choice"])  # fmt: skip
    chosen = calls[["judge", "instance", "repeat"]].assign(shown=calls["shown"].map(" | ".join), choice=calls["choice"])
    sheet = instances.assign(valid="yes")
    sheet.loc[sheet.index[:: len(sheet) // 6], "valid"] = "no"  # a few that people found to be no damage
    return SyntheticJudges({
        "scores": scored.rename(columns={"instance": "prompt"}),
        "pairs": voted.rename(columns={"instance": "prompt"}),
        "choices": chosen.rename(columns={"instance": "prompt"}),
        "candidates": candidates,
        "ratings": decide.planted_ratings(candidates, 4, 0.6, seed=seed),
        "perturbations": sheet,
        "readings": planted_readings(clusters, seed=seed),
    })  # fmt: skip


def own_first(calls: pd.DataFrame, candidates: pd.DataFrame, *, share: float = OWN, seed: int = 0) -> pd.DataFrame:
    """Calls of :data:`KIN` with its liking: with chance ``share`` it takes any output of its own family."""
    rng = np.random.default_rng([seed, 0x6B696E])
    by = {(r.prompt, r.candidate): FAMILIES[r.author] for r in candidates.itertuples()}
    slots = []
    for r in calls.itertuples():
        own = [i for i, c in enumerate(r.shown) if by[r.instance, c] == FAMILIES[KIN.name]]
        slots.append(int(rng.choice(own)) if own and rng.random() < share else r.slot)
    return calls.assign(slot=slots, choice=[s[i] for s, i in zip(calls["shown"], slots)])


def judge_files(outputs: str | Path, clusters: Sequence[str]) -> dict[str, Path]:
    """The tables as CSV in ``.embedded/judges/<content hash>/`` of the outputs folder, written on the first call.

    The folder appears at once, so that two processes may ask for it at the same time.
    """
    here = Path(__file__).resolve().parent
    made = [here / n for n in ("judge_files.py", "perturbation_judges.py", "decision_judges.py",
                                  "extraction_readings.py")]  # fmt: skip
    packed = b"".join(p.read_bytes() for p in made) + "\n".join(map(str, clusters)).encode()
    target = Path(outputs) / ".embedded" / "judges" / hashlib.sha256(packed).hexdigest()[:16]
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            work.chmod(0o755)
            for name, table in synthetic_judges(clusters).tables.items():
                table.to_csv(work / f"{name}.csv", index=False, lineterminator="\n")
            os.replace(work, target)
        except OSError:
            if not target.is_dir():  # else another process was quicker, and its folder is the same
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return {name: target / f"{name}.csv" for name in NAMES}
