"""Reading pages and PDFs as a reader's program would, for tests of reports."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser
from pathlib import Path

from auditlib.auditing import Audit
from auditlib.outputs import load_audit, save_audit
from auditlib.paths import RunPaths


class Page(HTMLParser):
    """Text, tags, and every address that a page names."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.addresses: list[tuple[str, str, str]] = []
        self.handlers: list[str] = []
        self.images: list[dict[str, str]] = []
        self.ids: set[str] = set()
        self.said: list[str] = []
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._style = tag == "style"
        facts = {k: v or "" for k, v in attrs}
        self.handlers += [k for k in facts if k.startswith("on")]
        self.addresses += [
            (tag, k, facts[k]) for k in ("src", "href", "data", "action", "poster", "srcset") if k in facts
        ]
        if tag == "img":
            self.images.append(facts)
        if "id" in facts:
            self.ids.add(facts["id"])

    def handle_endtag(self, tag):
        self._style = False

    def handle_data(self, data):
        if not self._style:
            self.said.append(data)

    @property
    def text(self) -> str:
        return "".join(self.said)


def is_local(address: str) -> bool:
    """Whether an address stays on the page or beside it."""
    if address.startswith(("data:image/", "#")):
        return True
    return ":" not in address.split("/")[0] and not address.startswith(("/", "\\"))


def pdf_text(file: Path) -> str:
    """The text of a PDF without white space and invisible break points, since lines break anywhere."""
    from pypdf import PdfReader

    return bare("".join(page.extract_text() for page in PdfReader(file).pages))


def bare(text: str) -> str:
    """Text without white space and break points."""
    return "".join(text.replace("\u200b", "").split())


def saved(audit: Audit, outputs: Path, **changes) -> RunPaths:
    """An audit on disk, as the audit stage leaves it."""
    audit = dataclasses.replace(audit, **changes) if changes else audit
    paths = RunPaths(outputs, "demo")
    save_audit(audit, paths)
    load_audit(paths)
    return paths
