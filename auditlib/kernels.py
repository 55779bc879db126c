"""Run one notebook through papermill, in a kernel that cannot meet another kernel's messages."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditlib.errors import AuditError

#: set in the environment of every worker and so of every kernel: repeatable sums, and pools that share the cores
THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)

#: an error of the system as :func:`one_line` says it
_SYSTEM = re.compile(r"\w*Error: \[Errno (\d+)\] ")
#: what the system refuses through no fault of a notebook: space, rights, long names
REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class NotebookRun:
    """How a notebook ended: ``error`` is one line, empty when every cell ran; ``seconds`` is wall time.

    ``system`` tells that the system refused a file (no space, no right), which is no fault of the notebook.
    """

    copy: Path
    seconds: float
    error: str = ""
    system: bool = False


def parameter_names(notebook: Path) -> list[str]:
    """Names assigned in the cell tagged ``parameters``.

    Raises
    ------
    AuditError
        The file is no notebook, or has no such cell or several.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except FileNotFoundError:
        raise AuditError("there is no such notebook", file=notebook, mend="check the params' notebooks") from None
    except (ValueError, KeyError, TypeError):
        raise AuditError("not a notebook", file=notebook, mend="restore the file") from None
    tagged = [c for c in cells if "parameters" in c.get("metadata", {}).get("tags", [])]
    if len(tagged) != 1:
        raise AuditError(f"{len(tagged)} cells are tagged 'parameters'", file=notebook, mend="tag exactly one cell")
    source = tagged[0]["source"]
    tree = ast.parse(source if isinstance(source, str) else "".join(source))
    return [t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)]


def run_notebook(notebook: Path, copy: Path, parameters: Mapping[str, Any], *, cwd: Path) -> NotebookRun:
    """Execute ``notebook`` and leave the executed copy at ``copy``, also when a cell failed.

    Parameters
    ----------
    notebook : the committed notebook, never written.
    copy : where the executed copy goes; it replaces an earlier one in a single step.
    parameters : values for the parameters cell.
    cwd : working directory of the kernel.

    Raises
    ------
    AuditError
        A parameter has no assignment in the parameters cell: papermill would only log that and run the defaults.
    """
    known = parameter_names(notebook)
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise AuditError(f"the parameters cell assigns no {', '.join(unknown)}", file=notebook,
                         mend=f"known parameters: {', '.join(known)}")  # fmt: skip
    copy.parent.mkdir(parents=True, exist_ok=True)
    temporary = copy.with_name(f".{copy.stem}.{os.getpid()}.tmp.ipynb")
    sockets = Path(tempfile.mkdtemp(prefix="au"))  # socket paths must stay under about 100 characters
    start = time.monotonic()
    try:
        error = _execute(notebook, temporary, dict(parameters), cwd, sockets)
        _without_machine_paths(temporary, notebook, copy)
        os.replace(temporary, copy)
    finally:
        temporary.unlink(missing_ok=True)
        shutil.rmtree(sockets, ignore_errors=True)
    return NotebookRun(copy, time.monotonic() - start, error, _errno(error) in REFUSALS)


def _execute(notebook: Path, copy: Path, parameters: dict[str, Any], cwd: Path, sockets: Path) -> str:
    import papermill
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    config = Config()
    if sys.platform == "win32":
        config.KernelManager.transport_encryption = "auto"
    else:
        # The default IPC name is the same for every kernel of a folder: kernels in parallel would share it.
        config.KernelManager.transport = "ipc"
        config.KernelManager.ip = str(sockets / "k")
    config.NotebookClient.shutdown_kernel = "immediate"  # every result is a file by then: nothing to wait for
    try:
        papermill.execute_notebook(notebook, copy, parameters, progress_bar=False, config=config,
                                   resources={"metadata": {"path": str(cwd)}}, start_timeout=120)  # fmt: skip
    except PapermillExecutionError as e:
        return one_line(e.ename, e.evalue)
    except Exception as e:  # the kernel died or never answered: papermill has no error cell for that
        if not copy.exists():
            raise
        return one_line(type(e).__name__, str(e))
    return ""


def one_line(name: str, value: str) -> str:
    """An exception as one line; an :class:`AuditError` is its own sentence."""
    text = " ".join(_ANSI.sub("", value or "").split())
    line = text if name == "AuditError" and text else f"{name}: {text}".removesuffix(": ")
    full = _errno(line) in (errno.ENOSPC, errno.EDQUOT)
    return f"{line}. Mend: free space on that disk, then run it again" if full else line


def _errno(line: str) -> int | None:
    found = _SYSTEM.match(line)
    return int(found[1]) if found else None


def _without_machine_paths(executed: Path, notebook: Path, copy: Path) -> None:
    """Papermill records absolute paths and an exception's text; keep names only."""
    content = json.loads(executed.read_text(encoding="utf-8"))
    record = content["metadata"].get("papermill")
    if record:
        record["input_path"], record["output_path"] = notebook.name, copy.name
    executed.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
