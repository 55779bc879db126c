"""The review of one pool: from a saved audit to packets, and from the readers' files to results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from auditlib import seeds
from auditlib.calls import Picture
from auditlib.errors import AuditError
from auditlib.escape import guard_csv
from auditlib.paths import RunPaths, atomic
from auditlib.review.agreement import agreement, probe_accuracy
from auditlib.review.decisions import Decisions, read_decisions
from auditlib.review.files import PACKET, SEALED, load_packet, write_packet
from auditlib.review.outcomes import due_thirds, outcomes
from auditlib.review.packets import Packet, make_packet
from auditlib.review.prevalence import prevalence
from auditlib.review.probes import draw_probes, probe_number
from auditlib.review.task import CURATION, OPEN

if TYPE_CHECKING:
    from auditlib.auditing import Audit
    from auditlib.params import Params

#: detectors whose findings a reader can confirm or reject by looking at the item
DETECTORS = ("consensus_error", "distractor_similarity", "integrity")


@dataclass(frozen=True)
class Review:
    """Results so far: one frame per question; ``decisions`` as read."""

    decisions: Decisions
    outcomes: pd.DataFrame
    agreement: pd.DataFrame
    probes: pd.DataFrame
    prevalence: pd.DataFrame


def review_folder(paths: RunPaths) -> Path:
    """Where packets and decisions of a pool lie."""
    return paths.folder / "review"


def flagged_items(audit: Audit) -> list[str]:
    """Items for people: those that a curation's judges name, where one was run; else those with a finding, more than
    for information, that looking at the item can settle."""
    named = judged_items(audit)
    if not named:
        found = audit.findings
        mine = found["flag"] & found["detector"].isin(DETECTORS) & found["severity"].ne("info")
        named = dict.fromkeys(found.loc[mine, "item"], "")
    return [i for i in audit.items["item"] if i in named]


def judged_items(audit: Audit) -> dict[str, str]:
    """Items that a curation's judges confirm, or suspect of some defect, with the label they agree on."""
    curation = audit.study("curation")
    if curation is None or "adjudicated" not in curation.frames:
        return {}
    table = curation.frames["adjudicated"]
    table = table[table["state"].isin(["confirmed", "defect_any"])]
    return dict(zip(table["item"], table["label"]))


def sound_items(audit: Audit) -> list[str]:
    """Items whose key every model names with the image: the best guess at sound ones that runs can give."""
    counts = audit.counts[audit.counts["arm"].eq(audit.arm)]
    return counts.loc[counts["n"].gt(1) & counts["F"].eq(counts["n"]), "item"].tolist()


def prepare(
    audit: Audit,
    settings: Params,
    paths: RunPaths,
    *,
    flagged: Iterable[str] | None = None,
    proposed: Mapping[str, str] | None = None,
) -> Packet:
    """Make and write the packets of a pool; with the same audit and params, the same ones again.

    Parameters
    ----------
    flagged : items for every reader's table (default: :func:`flagged_items`). proposed : what judges say of them, kept
        in the sealed key (default: the curation's judges).

    Raises
    ------
    AuditError
        The audit has no questions, or decisions on another packet lie in the folder.
    """
    from auditlib.params.curation import ReviewParams

    given = settings.curation.review if settings.curation else ReviewParams()
    entries = _entries(audit)
    chosen = list(flagged_items(audit) if flagged is None else flagged)
    proposed = {i: x for i, x in judged_items(audit).items() if x} if proposed is None else proposed
    rest = len(entries) - len(chosen)
    rng = seeds.generator(settings.seed, settings.pool, "review probes")
    number = probe_number(len(chosen) + min(given.unflagged, rest), given.probes)
    sound = [i for i in sound_items(audit) if i not in set(chosen)]
    probes = draw_probes(entries, sound, number, rng)
    packet = make_packet(
        CURATION,
        entries,
        readers=given.readers,
        seed=settings.seed,
        pool=settings.pool,
        flagged=chosen,
        probes=probes,
        sample=given.unflagged,
        proposed=proposed,
        pictures=partial(_pictures, audit),
    )
    folder = review_folder(paths)
    files = decision_files(settings, folder)
    known = read_decisions(files, packet).table if files and _same(packet, folder) else None
    write_packet(packet, folder, due_thirds(packet, known) if known is not None else ())
    return packet


def decision_files(settings: Params, folder: Path) -> list[Path]:
    """The panel's files in a folder, and those that the params name."""
    named = list(settings.curation.review.decisions) if settings.curation else []
    return [*sorted(folder.glob("decisions_*.csv")), *named]


def readings(settings: Params, paths: RunPaths) -> Decisions:
    """All decisions so far, the key left sealed."""
    folder = review_folder(paths)
    return read_decisions(decision_files(settings, folder), load_packet(folder))


def load_review(settings: Params, paths: RunPaths) -> Review:
    """Open the key, read all decisions, and compute outcomes, agreement, accuracy on the probes and prevalence.

    Raises
    ------
    AuditError
        No packet has been written, or a file of decisions does not fit it.
    """
    folder = review_folder(paths)
    packet = load_packet(folder, open_key=True)
    decisions = read_decisions(decision_files(settings, folder), packet)
    found = outcomes(packet, decisions.table)
    rng = seeds.generator(settings.seed, settings.pool, "review results")
    return Review(
        decisions,
        found,
        agreement(packet, decisions.table, rng=rng),
        probe_accuracy(packet, decisions.table, found),
        prevalence(packet, found, rng=rng),
    )


def save_review(review: Review, paths: RunPaths) -> list[Path]:
    """Write the results as CSV beside the packets; readings with their notes in ``readings.csv``."""
    folder = review_folder(paths)
    tables = {"outcomes": review.outcomes, "agreement": review.agreement, "probe_accuracy": review.probes,
              "prevalence": review.prevalence, "readings": review.decisions.table}  # fmt: skip
    written = []
    for name, table in tables.items():
        # outcomes name the probes: they belong to the sealed side until reading has ended
        target = folder / (SEALED.parent if name in ("outcomes", "probe_accuracy") else "") / f"{name}.csv"
        with atomic(target) as t:
            guard_csv(table).to_csv(t, index=False, float_format="%.12g", lineterminator="\n")
        written.append(target)
    return written


def shares(packet: Packet, table: pd.DataFrame) -> pd.DataFrame:
    """One row per reader: rows to read, read, left, and third readings due; tells nothing about the rows."""
    due = set(due_thirds(packet, table))
    out = []
    for reader in packet.readers:
        mine = packet.assignment[packet.assignment["reader"].eq(reader)]
        first = set(mine.loc[mine["role"].eq("first"), "row"])
        third = set(mine.loc[mine["role"].eq("third"), "row"])
        done = set(table.loc[table["reader"].eq(reader), "row"])
        out.append({"reader": reader, "rows": len(first), "read": len(first & done), "left": len(first - done),
                    "third readings due": len(third & due)})  # fmt: skip
    return pd.DataFrame(out)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Outcomes of the pool's own items, flagged and not, by number."""
    real = found[found["kind"].isin(["flagged", "unflagged"])]
    table = pd.crosstab(real["kind"], real["outcome"])
    return table.reindex(columns=["confirmed", "rejected", "cannot_tell", OPEN], fill_value=0)


def _entries(audit: Audit) -> pd.DataFrame:
    items = audit.items
    if "question" not in items or not items["question"].astype(str).str.strip().any():
        raise AuditError(f"the items of {audit.pool_name} have no questions, so nobody can read them",
                         mend="name the benchmark's own table as data.items or data.dataset")  # fmt: skip
    keep = ["item", *(c for c in ("question", "options", "key") if c in items)]
    entries = items[keep].reset_index(drop=True)
    for column in ("options", "key"):
        if column not in entries:
            entries[column] = ""
    return entries


def _pictures(audit: Audit, items: list[str]) -> dict[str, Picture]:
    """Pictures of the dataset file that the params name, of those items that have one."""
    from auditlib.inference.images import picture_from_bytes
    from auditlib.readers.dataset import read_images

    path = audit.params.data.dataset if audit.params else None
    found = read_images(path, items) if path is not None and path.exists() else {}
    out = {}
    for item, data in found.items():
        try:
            out[item] = picture_from_bytes(data)
        except ValueError as e:
            raise AuditError(f"the picture of item {item} is {e}", file=path,
                             mend="write that row again; png, jpeg, webp and gif are shown") from None  # fmt: skip
    return out


def _same(packet: Packet, folder: Path) -> bool:
    return (folder / PACKET).exists() and load_packet(folder).fingerprint == packet.fingerprint
