"""Paraphrases and negations, from a file or from a model that is asked to write them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from auditlib import frames
from auditlib.calls import Generation, Reply, Request
from auditlib.errors import AuditError
from auditlib.inference.items import QuestionItem
from auditlib.readers import files
from auditlib.sensitivity.conditions import Condition
from auditlib.sensitivity.reformulate import Form, reworded

PURPOSE = "rewriting"
VERSION = "rewriting-1"
_ASK = {
    "paraphrase": "Write the question below in other words. It must ask for exactly the same, so that every answer "
    "stays as right or wrong as it was. Keep names, numbers and units.",
    "negation": "Turn the yes/no question below into its negation, so that the right answer becomes the opposite: a "
    "question whose answer was yes must now be answered no, and the other way round. Keep names, numbers and units.",
}
_CLOSE = 'Answer with one line of JSON of this form:\n{"question": "..."}'


def read_forms(path: str | Path, items: Iterable[QuestionItem]) -> tuple[dict[tuple[str, str], Form], list[dict]]:
    """Paraphrases and negations from a table with the columns ``item``, ``form``, ``question`` and, where it is not
    plain, ``key``.

    Returns
    -------
    forms : (item, form) -> form. coverage : rows on items that are not in the benchmark.

    Raises
    ------
    AuditError
        A column is missing, a form unknown, a question unchanged, a key unknown or contradictory, a form twice.
    """
    path = Path(path)
    table = files.open_table(path)
    for name in ("item", "form", "question"):
        if name not in table:
            raise AuditError(f"there is no column {name!r}", file=path, row=1, mend="give item, form, question, key")
    known = {i.item: i for i in items}
    out: dict[tuple[str, str], Form] = {}
    strangers = 0
    for at, row in zip(table.index, table.to_dict("records")):
        item, form = known.get(str(row["item"])), str(row["form"]).strip()
        if item is None:
            strangers += 1
            continue
        try:
            if form.partition("-")[0] not in ("paraphrase", "negation"):
                raise AuditError(f"form {form!r}", mend="files hold paraphrase-1, paraphrase-2 ... and negation")
            if (item.item, form) in out:
                raise AuditError(f"{form} of item {item.item!r} stands twice", mend="number paraphrases")
            out[item.item, form] = reworded(item, form, str(row["question"]), str(row.get("key", "") or ""))
        except AuditError as e:
            raise AuditError(e.what, file=path, row=int(at) + 2, mend=e.mend) from None
    said = [frames.coverage_row("excluded", n=strangers, reason="forms of items that are not in the benchmark")]
    return out, said if strangers else []


def rewriting_requests(
    items: Iterable[QuestionItem], forms: Sequence[str], model: str, *, temperature: float | None = 0.7,
    max_tokens: int = 512,
) -> list[tuple[Request, QuestionItem, str]]:  # fmt: skip
    """Requests for paraphrases and negations; negations are asked for yes/no questions only.

    The writer sees neither picture nor key, so that it cannot lean on them.
    """
    out = []
    for item in items:
        for form in forms:
            kind = form.partition("-")[0]
            if kind not in _ASK or (kind == "negation" and item.answer_type != "yesno"):
                continue
            number = Condition(form=form).number
            parts = (f"{_ASK[kind]}\n\nQuestion: {item.question}\n\n{_CLOSE}",)
            generation = Generation(temperature=temperature, max_tokens=max_tokens)
            request = Request(item=item.item, model=model, condition=kind, parts=parts, generation=generation,
                              sample=max(0, number - 1), prompt_version=VERSION, purpose=PURPOSE)  # fmt: skip
            out.append((request, item, form))
    return out


def rewritten(
    wanted: Sequence[tuple[Request, QuestionItem, str]], ask: Callable[[list[Request]], list[Reply]]
) -> tuple[dict[tuple[str, str], Form], list[dict]]:
    """Forms that a model writes; replies that cannot be used are counted, never mended.

    Returns
    -------
    forms : (item, form) -> form. coverage : how many replies were not used, by reason.
    """
    out: dict[tuple[str, str], Form] = {}
    lost: dict[str, int] = {}
    replies = {r.key: r for r in ask([request for request, _, _ in wanted])}
    for request, item, form in wanted:
        reply = replies.get(request.key)
        question = written_question(reply.text) if reply is not None and reply.answered else None
        if question is None:
            lost["no question in the reply"] = lost.get("no question in the reply", 0) + 1
            continue
        try:
            out[item.item, form] = reworded(item, form, question)
        except AuditError:
            lost["the question came back unchanged"] = lost.get("the question came back unchanged", 0) + 1
    rows = [frames.coverage_row("excluded", n=n, reason=f"rewriting: {why}") for why, n in lost.items()]
    return out, rows


def written_question(text: str) -> str | None:
    """The question in a reply of one line of JSON; None where there is none.

    Examples
    --------
    >>> written_question('Sure: {"question": "Which colour is it?"}')
    'Which colour is it?'
    """
    for found in reversed(re.findall(r"\{[^{}]*\}", text)):
        try:
            value = json.loads(found).get("question")
        except ValueError:
            continue
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None
