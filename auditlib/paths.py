"""Every folder and file name of a run, in one place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from auditlib.errors import AuditError


def project_root() -> Path:
    """The folder that holds ``notebooks/`` and ``params/``, whatever the working directory is.

    Raises
    ------
    AuditError
        When neither the working directory, nor a parent of it, nor the package's own folder is such a folder.
    """
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            if (folder / "notebooks" / "10_audit.ipynb").exists() and (folder / "auditlib").is_dir():
                return folder
    raise AuditError(
        "the project folder with notebooks/ was not found", mend="run inside a clone, installed with 'pip install -e .'"
    )


def outputs_folder(given: Path | None) -> Path:
    """The folder of results that an option names; ``outputs`` of the project where it names none."""
    return given.expanduser().absolute() if given else project_root() / "outputs"


def shown(path: Path) -> str:
    """A path as short as it can be said from here."""
    path = path.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def resolve(path: str | Path) -> Path:
    """A path as the user meant it: as it is when absolute or present, else relative to the project root."""
    path = Path(path).expanduser()
    if path.is_absolute() or path.exists():
        return path.absolute()
    return project_root() / path


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path`` that is renamed onto it when the block ends well, and removed when not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@dataclass(frozen=True)
class RunPaths:
    """Files of one pool's run: ``RunPaths(outputs, pool)``."""

    outputs: Path
    pool: str

    @property
    def folder(self) -> Path:
        return self.outputs / self.pool

    @property
    def index(self) -> Path:
        return self.outputs / "index.html"

    @property
    def summary(self) -> Path:
        return self.outputs / "summary.csv"

    @property
    def embedded(self) -> Path:
        return self.outputs / ".embedded"

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def params(self) -> Path:
        return self.folder / "params.resolved.yaml"

    @property
    def status(self) -> Path:
        return self.folder / "status.json"

    @property
    def findings_csv(self) -> Path:
        return self.folder / "findings.csv"

    @property
    def statistics(self) -> Path:
        return self.folder / "statistics.csv"

    @property
    def coverage(self) -> Path:
        return self.folder / "coverage.csv"

    @property
    def detectors(self) -> Path:
        return self.folder / "detectors.csv"

    @property
    def steps(self) -> Path:
        """What the audit counted and was told: pool, steps, provenance, params."""
        return self.folder / "audit.json"

    @property
    def flagged(self) -> Path:
        return self.folder / "flagged.md"

    @property
    def errata_csv(self) -> Path:
        """What is said to be wrong with the benchmark's items, one row per item and question."""
        return self.folder / "errata.csv"

    @property
    def errata_json(self) -> Path:
        return self.folder / "errata.json"

    @property
    def runs(self) -> Path:
        """Runs that the program made itself."""
        return self.folder / "runs"

    @property
    def answers(self) -> Path:
        """Every answer that a model ever gave for this pool; kept by all later runs."""
        return self.folder / "answers.sqlite"

    @property
    def progress(self) -> Path:
        """Lines of a blind run that is going on, for the runner of notebooks to say."""
        return self.folder / ".progress"

    @property
    def figures(self) -> Path:
        return self.folder / "figures"

    @property
    def tables(self) -> Path:
        return self.folder / "tables"

    def study(self, name: str) -> Path:
        """Frames and facts of a capability's study."""
        return self.folder / name

    @property
    def notebooks(self) -> Path:
        return self.folder / "notebooks"

    @property
    def report_html(self) -> Path:
        return self.folder / "report.html"

    @property
    def report_pdf(self) -> Path:
        return self.folder / "report.pdf"

    @property
    def selection(self) -> Path:
        """Items that someone picked while looking at them."""
        return self.folder / "selection.csv"

    @property
    def items_html(self) -> Path:
        """The flagged items on one page, to filter and to look at."""
        return self.folder / "items.html"

    @property
    def card_html(self) -> Path:
        return self.folder / "card.html"

    @property
    def card_pdf(self) -> Path:
        return self.folder / "card.pdf"

    @property
    def card_md(self) -> Path:
        return self.folder / "card.md"

    @property
    def latex(self) -> Path:
        """Numbers, tables and figures of the pool for a paper."""
        return self.folder / "latex"

    def frame(self, name: str) -> Path:
        """Parquet of a canonical frame: items, models, responses, judgements, findings, counts, draws."""
        return self.folder / f"{name}.parquet"
