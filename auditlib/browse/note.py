"""A note on one item in Markdown, to be put into an issue or a message."""

from __future__ import annotations

from auditlib.browse import words as w
from auditlib.browse.cases import Case
from auditlib.escape import markdown
from auditlib.flagged_rows import clip

#: characters of a question and of an option
QUESTION, OPTION = 3000, 600


def note(case: Case, benchmark: str) -> str:
    """Question, options with key and votes, and findings of one item; everything foreign is escaped."""
    lines = [f"**{markdown(benchmark)}, item {markdown(case.item)}** ({case.severity or 'not flagged'})", ""]
    if case.question:
        lines += [f"> {markdown(clip(case.question, QUESTION), start=True)}", ""]
    for letter, text in case.options:
        mark = " **(key)**" if letter == case.key else ""
        counts = _counts(case, letter)
        lines.append(
            f"- {letter}: {markdown(clip(text, OPTION)) or '(no text)'}{mark}{f' – {counts}' if counts else ''}"
        )
    if case.key and case.key not in dict(case.options):
        lines.append(f"- key: {markdown(case.named_key)}")
    lines += ["", *(f"- {markdown(w.finding(f.detector))}: {markdown(f.message)}" for f in case.findings)]
    return "\n".join(lines) + "\n"


def _counts(case: Case, name: str) -> str:
    said = dict(case.votes).get(name, {})
    return ", ".join(f"{len(said[c])} {w.words(w.CONDITIONS, c)}" for c in case.conditions if said.get(c))
