"""The browser for JupyterLab: filters, a list, one item at a time, a note to copy and a selection that is saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib.browse.filters import SORTS, choices
from auditlib.browse.pictures import picture_of
from auditlib.browse.session import Session, open_session
from auditlib.browse.view import case_html
from auditlib.errors import AuditError
from auditlib.escape import html, visible

if TYPE_CHECKING:
    import ipywidgets

_SCRIPT = Path(__file__).with_name("keys.js")
_STYLE = """<style>
.audit-browse { border: 1px solid #8886; border-radius: 4px; padding: 10px 12px; }
.audit-browse:focus { outline: 2px solid #1f6fb2; }
.audit-browse select[size] { font-size: 13px; }
</style>"""
#: items that the list holds at a time
PART = 200
NAMES = {
    "severity": "Severity",
    "detector": "Found by",
    "stratum": "Category",
    "category": "Gain",
    "answer_type": "Answer",
    "state": "Replies",
}


class Browser:
    """What a notebook shows; :func:`open_browser` makes one.

    ``session`` is the state behind it, ``widget`` the box of widgets.
    """

    def __init__(self, session: Session):
        import ipywidgets as w

        self.session = session
        self._drawing = False
        wide = w.Layout(width="100%")
        self._filters = self._boxes(choices(session.cases))
        self._text = w.Text(
            placeholder="id, question, options, findings", description="Search", layout=w.Layout(width="320px")
        )
        self._text.observe(lambda c: self._do(lambda: session.change(text=c["new"])), "value")
        self._sort = w.Dropdown(options=[(words, name) for name, (words, _, _) in SORTS.items()], value=session.sort,
                                description="Order", layout=w.Layout(width="320px"))  # fmt: skip
        self._sort.observe(lambda c: self._do(lambda: session.change(sort=c["new"])), "value")
        self._mine = w.Checkbox(description="only my selection", indent=False, layout=w.Layout(width="auto"))
        self._mine.observe(lambda c: self._do(lambda: session.change(only_chosen=c["new"])), "value")
        self._list = w.Select(rows=24, layout=w.Layout(width="270px", min_width="200px"))
        self._list.observe(lambda c: c["new"] and self._do(lambda: session.go(c["new"])), "value")
        self._buttons = {
            "previous": self._button("← Previous (k)", "previous", lambda: session.move(-1)),
            "next": self._button("Next → (j)", "next", lambda: session.move(1)),
            "select": self._button("Select (s)", "select", session.toggle),
            "copy": self._button("Copy note (c)", "copy", lambda: None),
        }
        self._place, self._item = w.HTML(), w.HTML(layout=wide)
        self._note = w.Textarea(rows=6, disabled=False, layout=wide)
        self._note.add_class("audit-browse-note")
        code = {"application/javascript": _SCRIPT.read_text(encoding="utf-8")}
        script = w.Output(outputs=({"output_type": "display_data", "metadata": {}, "data": code},))
        wrap = w.Layout(flex_flow="row wrap")
        moves = w.Box(list(self._buttons.values()), layout=wrap)
        right = w.VBox([moves, self._item, w.HTML("<b>Note</b>"), self._note],
                       layout=w.Layout(flex="1 1 420px", min_width="0"))  # fmt: skip
        self.widget: ipywidgets.VBox = w.VBox([
            w.HTML(_STYLE), w.Box([self._text, *self._filters.values(), self._sort, self._mine], layout=wrap),
            self._place, w.HBox([self._list, right]), script,
        ])  # fmt: skip
        self.widget.add_class("audit-browse")
        self._show()

    def _boxes(self, known: dict[str, list[tuple[str, str, int]]]) -> dict[str, Any]:
        import ipywidgets as w

        out = {}
        for name, words in NAMES.items():
            options = [("any", "")] + [
                (f"{visible(text, newlines=False)} ({n})", value) for value, text, n in known[name]
            ]
            if len(options) < 3:  # one value is no choice
                continue
            box = w.Dropdown(options=options, value=getattr(self.session.wanted, name), description=words,
                             layout=w.Layout(width="320px"))  # fmt: skip
            box.observe(lambda c, name=name: self._do(lambda: self.session.change(**{name: c["new"]})), "value")
            out[name] = box
        return out

    def _button(self, words: str, name: str, act: Any) -> Any:
        import ipywidgets as w

        button = w.Button(description=words, layout=w.Layout(width="auto"))
        button.add_class(f"audit-browse-{name}")
        button.on_click(lambda _: self._do(act))
        return button

    def _do(self, act: Any) -> None:
        """Act, say what went wrong where something did, and draw what is now shown."""
        if self._drawing:
            return
        try:
            act()
            self._show()
        except AuditError as e:
            self._show(str(e))

    def _show(self, error: str = "") -> None:
        s = self.session
        self._drawing = True
        try:
            first = s.place // PART * PART
            self._list.options = [(self._line(i), i) for i in s.ids[first : first + PART]]
            self._list.value = s.item or None
            for name, box in self._filters.items():
                box.value = getattr(s.wanted, name)
            self._text.value, self._sort.value, self._mine.value = s.wanted.text, s.sort, s.only_chosen
            self._buttons["previous"].disabled = s.place == 0
            self._buttons["next"].disabled = s.place >= len(s.ids) - 1
            self._buttons["select"].description = ("★ Selected" if s.item in s.chosen else "☆ Select") + " (s)"
            self._note.value = visible(s.note)
            self._item.value = self.page()
            warning = f"<br><b style='color:#b00020'>{html(error)}</b>" if error else ""
            self._place.value = f"<span class='audit-browse-state'>{html(self._words())}</span>{warning}"
        finally:
            self._drawing = False

    def _line(self, item: str) -> str:
        row = self.session.cases.row(item)
        star = "★ " if item in self.session.chosen else ""
        return visible(
            f"{star}{item} · {row['severity'] or '–'}{' · ' + row['stratum'] if row['stratum'] else ''}", newlines=False
        )

    def _words(self) -> str:
        s = self.session
        n, total = len(s.ids), len(s.cases.table)
        words = f"{s.place + 1 if n else 0} of {n} items shown, of {total}; {len(s.chosen)} selected"
        return words + (f", kept in {s.file.name}" if s.file is not None else "")

    def page(self) -> str:
        """The item on screen as HTML, for a notebook without widgets."""
        s = self.session
        if not s.ids:
            return "<p>No item is like this: change a filter.</p>"
        return case_html(s.case, picture_of(s.cases.audit, s.item), f"{s.place + 1} of {len(s.ids)}")

    def __repr__(self) -> str:
        return f"items of {self.session.cases.audit.pool_name}: {self._words()}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        words = f"{self!r}; the browser itself works in JupyterLab"
        return {"text/plain": repr(self), "text/html": f"<p>{html(words)}.</p>{self.page()}",
                "application/vnd.jupyter.widget-view+json": view}  # fmt: skip


def open_browser(audit: Any, file: Path | None = None, **wanted: str) -> Browser:
    """Look at the items of an audit; goes on with the selection that ``file`` holds.

    Parameters
    ----------
    file : where the selection is kept, ``paths.selection``; None keeps it in memory only.
    wanted : the filter to begin with, as in :class:`~auditlib.browse.filters.Filter`.

    Raises
    ------
    AuditError
        The saved selection does not fit; no such filter; ipywidgets is not installed.
    """
    session = open_session(audit, file, **wanted)
    try:
        return Browser(session)
    except ImportError:
        raise AuditError("the browser needs ipywidgets", mend="install it, or open items.html of the pool") from None
