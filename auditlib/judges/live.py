"""Judges that the params name: what is put to them, and the study with their calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib import frames
from auditlib.calls import Generation, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.judges import perturb
from auditlib.judges.calls import Calls, settle
from auditlib.judges.change_requests import Change, ScoreSettings, compare, plan_scores, read_changes, score_calls
from auditlib.judges.requests import Decision, DecisionSettings, calls_of, plan_decisions
from auditlib.judges.sheet import checked, read_sheet
from auditlib.judges.study import Judges
from auditlib.readers import cells, files

if TYPE_CHECKING:
    from auditlib.inference.items import QuestionItem

Ask = Callable[[list[Request]], list[Reply]]


@dataclass(frozen=True)
class Pictures:
    """Where pictures lie: files beside the tables that name them, else those of the benchmark's items."""

    folders: tuple[Path, ...]
    items: Mapping[str, tuple[Picture, ...]]

    def __call__(self, image: str, cluster: str, row: int, file: Path | None = None) -> tuple[Picture, ...]:
        """Pictures of a row: the file in its cell, else those of the item that it belongs to, else none.

        Raises
        ------
        AuditError
            A file is named that is not there or is no picture.
        """
        from auditlib.inference.images import lazy_picture

        if not image:
            return self.items.get(cluster, ())
        for folder in self.folders:
            if (at := folder / image).is_file():
                try:
                    return (lazy_picture(at.read_bytes),)
                except ValueError as e:
                    raise AuditError(f"picture {image!r} is {e}", file=file, row=row, mend="give an image file") from e
        if image in self.items:
            return self.items[image]
        raise AuditError(f"picture {image!r} is not there", file=file, row=row, mend="put it beside the table")


def pictures_for(tables: Iterable[Path | None], questions: Sequence[QuestionItem] | None = None) -> Pictures:
    """Pictures beside some tables, and those of the benchmark's items."""
    folders = dict.fromkeys(Path(t).parent for t in tables if t is not None)
    return Pictures(tuple(folders), {q.item: q.pictures for q in questions or ()})


def planted(
    j: Judges, write: Ask | None, sheet: str | Path, questions: Sequence[QuestionItem] | None = None
) -> tuple[Path | None, pd.DataFrame]:
    """The sheet of planted changes that ``judges.ask.perturber`` writes, for people to check; made once.

    Parameters
    ----------
    write : sends requests; see :func:`auditlib.inference.asking.asker`.
    sheet : where it goes. A sheet that is there already may hold people's work and stays as it is.

    Returns
    -------
    path or None where the params name no perturber, and coverage rows.

    Raises
    ------
    AuditError
        Damaged gold answers, a dimension that cannot be planted.
    """
    a, path = j.params.ask, Path(sheet)
    none = frames.frame("coverage")
    if a is None or a.perturber is None:
        return None, none
    if path.exists():
        return path, none
    if write is None:
        raise AuditError("judges.ask.perturber is not asked", mend="give a function that sends its requests")
    golds = read_golds(a.golds, pictures_for((a.golds,), questions))
    ids = set(j.source.items["item"].astype(str))
    ours = [g for g in golds if g.cluster in ids]
    planned = perturb.plan_changes(ours or golds, a.dimensions, a.perturber.name, severities=a.severities)
    replies = {r.key: r for r in write([p.request for p in planned])}
    table, coverage = perturb.changed_answers(planned, replies.get)
    if not len(table):
        raise AuditError(f"{a.perturber.name} wrote no change that can be used", file=a.golds,
                         mend="read its replies in the answers of the pool, or name another model")  # fmt: skip
    if ours and len(ours) < len(golds):
        gone = frames.coverage_row("excluded", n=len(golds) - len(ours), reason="gold answers to other items")
        coverage = pd.concat([coverage, frames.frame("coverage", [gone])], ignore_index=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return perturb.write_sheet(table, path), coverage


def read_golds(path: str | Path, pictures: Pictures) -> list[perturb.Gold]:
    """Gold answers from a table ``instance, prompt, answer``, optional ``image`` and ``cluster``."""
    path = Path(path)
    table = files.open_table(path)
    if lost := [c for c in ("instance", "prompt", "answer") if c not in table]:
        raise AuditError(f"there is no column {lost[0]!r}", file=path, row=1, mend="give instance, prompt, answer")
    out = []
    for at, name, row in zip(table.index, cells.item_ids(table["instance"]), table.to_dict("records")):
        image = row.get("image", "").strip()
        cluster = row.get("cluster", "").strip() or image or str(name)
        shown = pictures(image, cluster, int(at) + 2, path)
        out.append(perturb.Gold(str(name), row["prompt"].strip(), row["answer"].strip(), shown, image, cluster))
    return out


def read_decisions(path: str | Path, pictures: Pictures) -> list[Decision]:
    """Prompts with their candidates from a table ``prompt, candidate, request`` with ``text`` or ``image``.

    ``request_image`` is a picture that belongs to the request; ``cluster`` and ``comparison`` may be there.

    Raises
    ------
    AuditError
        A column is missing, a candidate has neither text nor picture, a prompt has two requests.
    """
    path = Path(path)
    table = files.open_table(path)
    if lost := [c for c in ("prompt", "candidate", "request") if c not in table]:
        raise AuditError(f"there is no column {lost[0]!r}", file=path, row=1, mend="give prompt, candidate, request "
                         "and text or image")  # fmt: skip
    table = table.assign(prompt=cells.item_ids(table["prompt"]))
    out = []
    for name, part in table.groupby("prompt", sort=False):
        rows = part.to_dict("records")
        if part["request"].str.strip().nunique() > 1:
            raise AuditError(f"prompt {name!r} has two requests", file=path, row=int(part.index[1]) + 2,
                             mend="give all candidates of a prompt the same request")  # fmt: skip
        candidates = []
        for at, row in zip(part.index, rows):
            text, image = row.get("text", "").strip(), row.get("image", "").strip()
            content = (*((text,) if text else ()), *(pictures(image, "", int(at) + 2, path) if image else ()))
            if not content:
                raise AuditError(f"candidate {row['candidate']!r} has neither text nor image", file=path,
                                 row=int(at) + 2, mend="give what the judge is to see")  # fmt: skip
            candidates.append((row["candidate"].strip(), content))
        first = rows[0]
        own = first.get("request_image", "").strip()
        shown = pictures(own, str(name), int(part.index[0]) + 2, path)
        out.append(Decision(str(name), first["request"].strip(), tuple(candidates), shown,
                            first.get("cluster", "").strip(), first.get("comparison", "").strip()))  # fmt: skip
    return out


def asked(
    j: Judges,
    ask: Ask | None,
    *,
    sheet: Path | None = None,
    coverage: pd.DataFrame | None = None,
    questions: Sequence[QuestionItem] | None = None,
    limit: int | None = None,
) -> Judges:
    """The study with the calls of the judges that the params name; unchanged where they name none.

    Parameters
    ----------
    ask : sends requests. sheet : of :func:`planted`, taken where ``judges.perturbations`` names none.
    coverage : rows of :func:`planted`. questions : items whose pictures belong to changes and prompts.
    limit : the first changes and prompts only.

    Raises
    ------
    AuditError
        Judges are named, but nothing to show them.
    """
    a = j.params.ask
    if a is None:
        return j
    own = j.params.perturbations or sheet
    if ask is None or (a.decisions is None and not (a.changes and own is not None)):
        raise AuditError("judges.ask names judges, but not what to show them",
                         file=j.source.params.source if j.source.params else None,
                         mend="give judges.perturbations, judges.ask.golds with perturber, or judges.ask.decisions"
                         )  # fmt: skip
    find = pictures_for((own, a.golds, a.decisions), questions)
    changes, left_out = read_changes(own, lambda *row: find(*row, own)) if a.changes and own is not None else ([], [])
    changes = changes[:limit]
    decisions = read_decisions(a.decisions, find)[:limit] if a.decisions else []
    deciding = _decisions(a, decisions)
    parts = _changes(a, changes) + deciding
    wanted = {r.key: r for requests, _ in parts for r in requests}
    replies = {r.key: r for r in ask(list(wanted.values()))}
    made = [calls(replies.get) for _, calls in parts]
    table, more = settle(pd.concat([j.calls.table, *(m.table for m in made)], ignore_index=True))
    rows = [j.calls.coverage, *(m.coverage for m in made), frames.frame("coverage", [*left_out, *more])]
    rows += [coverage] if coverage is not None else []
    seen = _identity([r for requests, _ in deciding for r in requests], replies)
    identity = {m: one for m, one in seen.items() if m not in j.params.identity}
    j = replace(j, params=j.params.model_copy(update={"identity": {**j.params.identity, **identity}}))
    if own is None or not changes:
        return replace(j, calls=Calls(table, pd.concat(rows, ignore_index=True), j.calls.inputs))
    read = read_sheet(own)
    if j.sheet is None:  # of the planted sheet nothing has been said yet
        table, said = checked(table, read)
        rows.append(frames.frame("coverage", said))
    return replace(j, sheet=read, calls=Calls(table, pd.concat(rows, ignore_index=True), j.calls.inputs))


Part = tuple[list[Request], Callable[[Callable[[str], Reply | None]], Calls]]


def _generation(a: Any) -> Generation:
    return Generation(temperature=a.temperature, max_tokens=a.max_tokens)


def _changes(a: Any, changes: list[Change]) -> list[Part]:
    """Requests about planted changes, and what makes calls of their replies."""
    parts: list[Part] = []
    if not changes:
        return parts
    for model in (m.name for m in a.models):
        for image in a.images:
            for style in a.styles:
                for paradigm in a.paradigms:
                    if paradigm == "pairwise":
                        if style not in ("plain", "explained"):
                            continue
                        settings = DecisionSettings(model, "pairwise", style, repeats=1, ties=a.ties,
                                                    generation=_generation(a))  # fmt: skip
                        planned, calls = compare(changes, settings, image)
                        parts.append(([p.request for p in planned], calls))
                        continue
                    scored = plan_scores(changes, ScoreSettings(model, paradigm, style, image, a.repeats, a.scale,
                                                                _generation(a)))  # fmt: skip
                    parts.append(([p.request for p in scored], lambda answer, p=scored: score_calls(p, answer)))
    return parts


def _decisions(a: Any, decisions: list[Decision]) -> list[Part]:
    parts: list[Part] = []
    style = next((s for s in a.styles if s in ("plain", "explained")), "plain")
    for model in (m.name for m in a.models) if decisions else ():
        settings = DecisionSettings(model, a.choose, style, a.orders, a.repeats, a.ties, generation=_generation(a))
        planned = list(plan_decisions(decisions, settings))
        parts.append(([p.request for p in planned],
                      lambda answer, p=planned, s=settings: calls_of(p, s, answer)))  # fmt: skip
    return parts


def _identity(requests: Iterable[Request], replies: Mapping[str, Reply]) -> dict[str, Any]:
    """What each judge of decisions was: server's name and fingerprint, hashes of prompt and settings, day."""
    from datetime import UTC, datetime

    from auditlib.judges.validity_card import text_sha256
    from auditlib.params.judges import JudgeIdentity

    out: dict[str, Any] = {}
    for r in requests:
        reply = replies.get(r.key)
        if reply is None or not reply.answered:
            continue
        words = " ".join(filter(None, (reply.server_model, reply.fingerprint)))
        day = datetime.fromtimestamp(reply.created, UTC).strftime("%Y-%m-%d") if reply.created else ""
        head = r.parts[0] if isinstance(r.parts[0], str) else ""
        # the prompt without request and candidates: its task, whatever their number, and its close
        text = re.sub(r"\d+ candidates", "n candidates", head.partition("\n\nRequest:")[0]) + str(r.parts[-1])
        seen = JudgeIdentity(version=words, prompt_sha256=text_sha256(r.prompt_version + text),
                             generation_sha256=text_sha256(repr(sorted(r.generation.settings.items()))),
                             date=day)  # fmt: skip
        old = out.get(r.model)
        out[r.model] = seen if old is None or seen.date > old.date else old
    return out
