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


class Rendered:
    """A page in a real browser, with all that it complained of and asked for.

    ``errors`` are what the console said, ``requests`` the addresses that were fetched beside the file itself.
    """

    def __init__(self, tab, file: Path, width: int = 1200, height: int = 1400):
        self.tab, self.file = tab, file
        for domain in ("Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        tab.go("about:blank")
        tab.events.clear()
        tab.go(file.as_uri())
        tab.wait("location.protocol === 'file:' && document.readyState === 'complete'")

    @property
    def errors(self) -> list[str]:
        self.tab.value("1")  # what the browser has said until now
        out = []
        for event in self.tab.events:
            method, said = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                out.append(str(said["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning"):
                out.append(str(said["args"]))
            elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                out.append(said["entry"]["text"])
        return out

    @property
    def requests(self) -> list[str]:
        self.tab.value("1")
        asked = [e["params"] for e in self.tab.events if e["method"] == "Network.requestWillBeSent"]
        urls = [p["request"]["url"] for p in asked]
        return [u for u in urls if not u.startswith(("data:", "blob:")) and u.split("#")[0] != self.file.as_uri()]

    def nameless(self) -> list[str]:
        """Controls, links and pictures that a screen reader has no words for."""
        return self.tab.value("""
            [...document.querySelectorAll('a[href], button, input, select, textarea, img, summary')]
            .filter((n) => n.checkVisibility() && !(n.textContent.trim() || n.ariaLabel || n.alt || n.title
                || (n.labels && [...n.labels].some((l) => l.textContent.trim()))))
            .map((n) => n.outerHTML.slice(0, 200))""")

    def focused(self, most: int = 40) -> list[str]:
        """What the tabulator key reaches, in order: only things that are seen and show that they have the focus."""
        out = []
        for _ in range(most):
            self.tab.press("Tab")
            at = self.tab.value("""(() => { const n = document.activeElement, s = getComputedStyle(n);
                return n === document.body ? null : [n.tagName + '#' + n.id, n.checkVisibility() &&
                    (s.outlineStyle !== 'none' || s.boxShadow !== 'none')]; })()""")
            if at is None:
                break
            assert at[1], f"{at[0]} has the focus and does not show it"
            out.append(at[0])
        return out

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return self.tab.value("document.documentElement.scrollWidth - window.innerWidth")


def pages_of(paths: RunPaths) -> list[Path]:
    """The pages of a pool that are there, and the one over all pools."""
    known = (paths.report_html, paths.items_html, paths.card_html, paths.figures / "index.html", paths.index)
    return [p for p in known if p.exists()]


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
