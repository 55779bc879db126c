"""One item as HTML for a notebook: works without any script, in light and dark."""

from __future__ import annotations

from auditlib.browse import words as w
from auditlib.browse.cases import Case, Reply
from auditlib.browse.neighbours import WORDS
from auditlib.browse.pictures import data_uri
from auditlib.escape import html
from auditlib.figures.pipeline import plural
from auditlib.inference.images import sniff

#: keeps JupyterLab from reading "$ ... $" in foreign text as a formula
LITERAL = "mathjax_ignore tex2jax_ignore"
STYLE = """<style>
.audit-item { max-width: 900px; line-height: 1.45; }
.audit-item img { max-width: min(100%, 460px); max-height: 400px; min-width: 112px; border: 1px solid #8886; }
.audit-item .text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext; }
.audit-item .quiet { opacity: .72; font-size: 90%; }
.audit-item .title { font-weight: 600; }
.audit-item h4 { margin: 14px 0 4px; }
.audit-item table.audit-votes { border-collapse: collapse; margin: 6px 0; }
.audit-item table td, .audit-item table th { text-align: left !important; vertical-align: top; padding: 3px 10px 3px 0;
  white-space: normal; }
.audit-item .bar { display: inline-block; height: 9px; background: #5a94c4; border-radius: 2px; margin-left: 6px; }
.audit-item tr.key .bar { background: #3f9161; } .audit-item tr.unread .bar { background: #9aa1a9; }
.audit-item .mark { border: 1px solid currentColor; border-radius: 3px; padding: 0 4px; font-size: 80%; }
.audit-item .reason { border-left: 3px solid #8886; padding-left: 10px; margin: 0 0 8px; }
.audit-item .reason.high { border-color: #c0392b; } .audit-item .reason.medium { border-color: #e39b2d; }
.audit-item .reason.low { border-color: #6ea3cc; }
.audit-item summary { cursor: pointer; }
</style>"""


def case_html(case: Case, picture: bytes | None = None, place: str = "") -> str:
    """Picture, question, votes, reasons, replies and neighbours of one item; everything foreign is escaped.

    Parameters
    ----------
    place : where the item stands, ``3 of 40``.
    """
    facts = [place, case.stratum, case.substratum, case.source, w.ANSWERS.get(case.answer_type, case.answer_type),
             w.CATEGORIES.get(case.category, case.category), _tally(case)]  # fmt: skip
    said = f"{mark(case.severity or 'not flagged')} {html(' · '.join(filter(None, facts)))}"
    parts = [STYLE, f'<div class="audit-item {LITERAL}"><h3>Item {html(case.item)}</h3><div class="quiet">{said}</div>']
    if picture and (kind := sniff(picture)):
        parts.append(f'<p><img alt="picture of item {html(case.item)}" src="{data_uri(kind, picture)}"></p>')
    if case.question:
        parts.append(f'<p class="text" dir="auto">{html(case.question)}</p>')
    if case.votes:
        parts.append(_votes(case))
    if case.findings:
        parts.append("<h4>Why it is flagged</h4>")
    for f in case.findings:
        more = " · ".join(x for x in (f"score {f.score:.2f}", f"arm {f.arm}" if f.arm else "", f.facts) if x)
        title = f'<span class="title">{html(w.finding(f.detector))}</span> {mark(f.severity)}'
        parts.append(
            f'<div class="reason {f.severity}">{title}<div class="text" dir="auto">{html(f.message)}</div>'
            f'<div class="quiet">{html(more)}</div></div>'
        )
    if case.replies:
        parts.append("<h4>Replies</h4>")
    for condition in case.conditions:
        parts.append(_replies(condition, [r for r in case.replies if r.condition == condition]))
    if case.neighbours:
        parts.append("<h4>Neighbours</h4>")
    for g in case.neighbours:
        more = f" and {g.total - len(g.items)} more" if g.total > len(g.items) else ""
        parts.append(f"<div><span class='quiet'>{WORDS[g.kind]}:</span> {html(', '.join(g.items))}{more}</div>")
    return "".join(parts) + "</div>"


def mark(word: str) -> str:
    """A severity in a small frame."""
    return f'<span class="mark">{html(word)}</span>'


def _tally(case: Case) -> str:
    if case.tally is None:
        return ""
    full, blind, n, draws = case.tally
    of = plural(n, "model") if draws == 1 else plural(n * draws, "answer")
    return f"right with image {full}, without {blind}, of {of}"


def _votes(case: Case) -> str:
    texts = dict(case.options)
    most = max((sum(len(said.get(c, ())) for _, said in case.votes) for c in case.conditions), default=1)
    head = "".join(f"<th>{html(w.words(w.CONDITIONS, c))}</th>" for c in case.conditions)
    rows = []
    for name, said in case.votes:
        is_key = name != "" and name == case.named_key
        words = (texts[name] or "(no text)") if name in texts else name or "no readable answer"
        cells = "".join(
            f'<td title="{html(", ".join(models))}">{len(models) or "·"}'
            f'<span class="bar" style="width:{round(90 * len(models) / most)}px"></span></td>'
            for models in (said.get(c, ()) for c in case.conditions)
        )
        kind = "key" if is_key else "" if name else "unread"
        letter = name if name in texts else "" if name else "–"
        rows.append(
            f'<tr class="{kind}"><th>{html(letter)}</th>'
            f'<td class="text" dir="auto">{html(words)}{" " + mark("key") if is_key else ""}</td>{cells}</tr>'
        )
    head = f"<thead><tr><th></th><th></th>{head}</tr></thead>"
    return f'<table class="audit-votes">{head}<tbody>{"".join(rows)}</tbody></table>'


def _replies(condition: str, replies: list[Reply]) -> str:
    rows = []
    for r in replies:
        state = "" if r.state in ("read", "unread") else r.state
        verdict = f"{r.verdict} (by {r.judge})" if r.verdict and r.judge else r.verdict
        rows.append("".join(f"<td class='text' dir='auto'>{html(x)}</td>" for x in (
            r.model, r.answer or "–", " ".join(filter(None, (verdict, state))), r.text or "(empty)")))  # fmt: skip
    brief = " ".join(r.answer or "–" for r in replies)
    body = "".join(f"<tr>{r}</tr>" for r in rows)
    n = f"{len(replies)} {'reply' if len(replies) == 1 else 'replies'}"
    return (
        f"<details><summary>{html(w.words(w.CONDITIONS, condition))}: {n} "
        f"<span class='quiet'>{html(brief) if len(brief) < 60 else ''}</span></summary><table><thead><tr><th>model</th>"
        f"<th>read as</th><th>verdict</th><th>reply</th></tr></thead><tbody>{body}</tbody></table></details>"
    )
