"""The one error a user's mistake raises: a single line that names the file, the row and the mend."""

from __future__ import annotations

from pathlib import Path


class AuditError(Exception):
    """A mistake in the inputs, said in one line.

    Parameters
    ----------
    what : str
        What is wrong, as a sentence without a full stop.
    file : path, optional
        The file at fault.
    row : int or str, optional
        Row number as a spreadsheet shows it (the header is row 1), or an item id.
    mend : str, optional
        What to do about it, as a sentence without a full stop.
    """

    def __init__(self, what: str, *, file: str | Path | None = None, row: int | str | None = None, mend: str = ""):
        super().__init__(what)
        self.what, self.file, self.row, self.mend = what, file, row, mend

    def __str__(self) -> str:
        place = str(self.file) if self.file is not None else ""
        if self.row is not None:
            place += f"{', ' if place else ''}row {self.row}"
        text = f"{place}: {self.what}" if place else self.what
        text = f"{text}. Mend: {self.mend}" if self.mend else text
        return " ".join(text.split())

    def __reduce__(self):
        return (_rebuild, (self.what, self.file, self.row, self.mend))

    def _render_traceback_(self) -> list[str]:
        # IPython's hook: a user's mistake shows as one line in a notebook, not as a traceback.
        return [f"AuditError: {self}"]


def _rebuild(what, file, row, mend) -> AuditError:
    return AuditError(what, file=file, row=row, mend=mend)
