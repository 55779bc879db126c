"""The panel for JupyterLab: one row at a time, number keys label it, and every decision is saved at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib.errors import AuditError
from auditlib.escape import html
from auditlib.review.label_studio import data_uri
from auditlib.review.session import Session, open_session

if TYPE_CHECKING:
    import ipywidgets

_SCRIPT = Path(__file__).with_name("panel.js")
#: keeps JupyterLab from reading "$ ... $" in foreign text as a formula
_LITERAL = "mathjax_ignore tex2jax_ignore"
_STYLE = """<style>
.audit-review { border: 1px solid #8886; border-radius: 4px; padding: 10px 12px; max-width: 900px; }
.audit-review:focus, .audit-review:focus-within { outline: 2px solid #1f6fb2; }
.audit-review img { max-width: 100%; max-height: 420px; min-width: 112px; border: 1px solid #8886; }
.audit-review .audit-text { white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.45; }
.audit-review .audit-name { font-weight: 600; opacity: .7; font-size: 90%; margin-top: 6px; }
</style>"""


class Panel:
    """What a notebook shows for a reader; :func:`open_panel` makes one.

    ``session`` is the state behind it, ``widget`` the box of widgets.
    """

    def __init__(self, session: Session):
        import ipywidgets as w

        self.session = session
        self._state = 0
        task = session.packet.task
        self._item, self._place = w.HTML(), w.HTML()
        self._progress = w.IntProgress(min=0, max=len(session.rows), layout=w.Layout(width="100%"))
        self._labels = {x.value: w.Button(description=f"{i}  {x.words}", tooltip=x.help, layout=w.Layout(width="auto"))
                        for i, x in enumerate(task.labels, 1)}  # fmt: skip
        for i, (value, button) in enumerate(self._labels.items(), 1):
            button.add_class(f"audit-label-{i}")
            button.on_click(lambda _, value=value: self._do(lambda: self.session.decide(value)))
        self._note = w.Textarea(placeholder="Note (optional); it is saved when you leave the field",
                                continuous_update=False, rows=2, layout=w.Layout(width="100%"))  # fmt: skip
        self._note.observe(self._noted, "value")
        moves = [self._button(words, name, act) for words, name, act in (
            ("← Back", "audit-previous", lambda: session.move(-1)),
            ("Next →", "audit-next", lambda: session.move(1)),
            ("Undo (u)", "audit-undo", session.undo),
            ("First undecided", "audit-open", session.to_open),
        )]  # fmt: skip
        head = w.HTML(f"{_STYLE}<b>{html(task.title)}</b><br>{html(task.instructions)}")
        # in an Output of its own, the script runs wherever the panel is drawn, and no saved page holds it
        code = {"application/javascript": _SCRIPT.read_text(encoding="utf-8")}
        script = w.Output(outputs=({"output_type": "display_data", "metadata": {}, "data": code},))
        wrap = w.Layout(flex_flow="row wrap")
        self.widget: ipywidgets.VBox = w.VBox(
            [head, self._progress, self._place, self._item, w.Box(list(self._labels.values()), layout=wrap),
             self._note, w.Box(moves, layout=wrap), script]
        )  # fmt: skip
        self.widget.add_class("audit-review")
        self._show(session.notice)

    def _button(self, words: str, name: str, act: Any) -> Any:
        import ipywidgets as w

        button = w.Button(description=words, layout=w.Layout(width="auto"))
        button.add_class(name)
        button.on_click(lambda _: self._do(act))
        return button

    def _do(self, act: Any) -> None:
        """Act, say what went wrong where something did, and draw the row that is now shown."""
        try:
            act()
            self._show()
        except AuditError as e:
            self._show(str(e))

    def _noted(self, change: dict[str, Any]) -> None:
        self._do(lambda: self.session.note(change["new"]))

    def _show(self, error: str = "") -> None:
        s = self.session
        row = s.rows.iloc[s.place].to_dict()
        view = s.packet.task.view(row["view"])
        parts = []
        try:
            if row["picture"]:
                source = data_uri(s.packet.pictures[row["picture"]])
                parts.append(f'<img alt="picture of this item" src="{html(source)}">')
        except AuditError as e:
            error = error or str(e)
        parts += [f'<div class="audit-name">{html(f)}</div><div class="audit-text">{html(row[f])}</div>'
                  for f in view.fields if row[f]]  # fmt: skip
        self._item.value = f"<div class='{_LITERAL}'>{''.join(parts)}</div>"
        for value, button in self._labels.items():
            button.button_style = "info" if s.current.label == value else ""
        self._note.unobserve(self._noted, "value")
        self._note.value = s.current.note
        self._note.observe(self._noted, "value")
        self._progress.value = s.done
        # sent last: the script lets the next key through when this number has changed
        self._state += 1
        warning = f"<br><b style='color:#b00020'>{html(error)}</b>" if error else ""
        self._place.value = (
            f"<span class='audit-state' data-state='{self._state}'>{html(self._words())}</span>{warning}"
        )

    def _words(self) -> str:
        s = self.session
        words = f"{s.place + 1} of {len(s.rows)} ({s.row}), {s.done} decided"
        if s.current.label:
            words += f"; this one: {s.current.label}"
        return words + ("; all decided, thank you" if s.done == len(s.rows) else "")

    def __repr__(self) -> str:
        return f"review of {self.session.reader}: {self._words()}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        where = f"decisions are kept in {self.session.file.name}; the panel itself works in JupyterLab"
        view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        return {"text/plain": repr(self), "text/html": f"<p>{html(repr(self))}; {html(where)}.</p>",
                "application/vnd.jupyter.widget-view+json": view}  # fmt: skip


def open_panel(folder: Path, reader: str) -> Panel:
    """The panel of one reader over a packet's folder; goes on where the saved decisions end.

    Raises
    ------
    AuditError
        No packet, no such reader, nothing to read, or a saved file that does not fit; ipywidgets is not installed.
    """
    session = open_session(Path(folder), reader)
    try:
        return Panel(session)
    except ImportError:
        raise AuditError("the panel needs ipywidgets", mend="install it, or use the page (HTML) or CSV of the packet"
                         ) from None  # fmt: skip
