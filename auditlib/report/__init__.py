"""The report of a pool: ``report.html`` and ``report.pdf`` from one content, and beside them the card and the items."""

from __future__ import annotations

from pathlib import Path

from auditlib.paths import RunPaths


def write_report(paths: RunPaths) -> list[Path]:
    """Write ``report.html``, ``report.pdf``, ``flagged.md``, ``items.html`` and the card from the saved audit and
    what lies beside it.

    Returns
    -------
    list of Path
        The report in both formats, the card in its three, and the page of items. The same bytes for the same audit,
        figures and manifest.

    Raises
    ------
    AuditError
        When the pool has not been audited, or its files are damaged.
    """
    from auditlib.browse.static import write_items
    from auditlib.outputs import load_audit
    from auditlib.report.card import write_card
    from auditlib.report.content import content
    from auditlib.report.flagged import write_flagged
    from auditlib.report.html import write_html
    from auditlib.report.pdf import write_pdf

    audit = load_audit(paths)
    write_flagged(audit, paths)  # the report sends its readers there, so it must be of the same audit
    items = write_items(audit, paths)  # before the report, which links to its items
    card = write_card(audit, paths)  # before the report, which links to it
    said = content(audit, paths)
    return [write_html(said, paths), write_pdf(said, paths), *card, items]
