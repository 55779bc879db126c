"""``auditlib batch``: a pool's questions as batch files for an endpoint that answers overnight, and results back."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from auditlib.errors import AuditError
from auditlib.paths import outputs_folder, shown

if TYPE_CHECKING:
    from auditlib.calls import Request
    from auditlib.inference.batch import BatchSummary
    from auditlib.inference.stage import BlindPlan

#: folder of the batch files beside a pool's other files, where none is named
FOLDER = "batch"
_ANSWERED = ("ok", "empty", "truncated", "filtered", "refused_request")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``batch write`` and ``batch read`` to the command's parser."""
    batch = commands.add_parser("batch", help="batch files of a pool's questions: write requests, read results")
    steps = batch.add_subparsers(required=True, metavar="step")

    write = steps.add_parser("write", help="write the requests that have no stored answer as files to upload")
    write.add_argument("params", type=Path)
    write.add_argument("--out", type=Path, metavar="FOLDER", help="folder of the files (default: outputs/POOL/batch)")
    write.add_argument("--max-requests", type=_positive, metavar="N", help="most requests in a file (default: 50,000)")
    write.add_argument("--max-bytes", type=_positive, metavar="N", help="most bytes in a file (default: 200,000,000)")
    write.add_argument("--completion-tokens", action="store_true",
                       help="call the token limit max_completion_tokens, as reasoning models want it")  # fmt: skip
    write.add_argument("--outputs", type=Path, help="where results go (default: outputs/ of the project)")
    write.set_defaults(do=_write)

    read = steps.add_parser("read", help="take result files into the store; what failed or is missing is written again")
    read.add_argument("params", type=Path)
    read.add_argument("files", nargs="+", type=Path, help="result files and error files, in any order")
    read.add_argument("--out", type=Path, metavar="FOLDER", help="folder that 'batch write' wrote (default: the first "
                      "result file's, if it holds an index, else outputs/POOL/batch)")  # fmt: skip
    read.add_argument("--outputs", type=Path, help="where results go (default: outputs/ of the project)")
    read.set_defaults(do=_read)


def write(
    params_file: str | Path,
    *,
    outputs: Path,
    folder: Path | None = None,
    max_requests: int | None = None,
    max_bytes: int | None = None,
    completion_tokens: bool = False,
    say: Callable[[str], None] = print,
) -> list[Path]:
    """Write the requests of a pool's inference block that the store lacks.

    Parameters
    ----------
    params_file : with an ``inference`` block.
    outputs : folder of all results; the store is ``outputs/POOL/answers.sqlite``.
    folder : of the files; ``outputs/POOL/batch`` when not given.
    max_requests, max_bytes : limits of one file; those of :mod:`auditlib.inference.batch` when not given.
    completion_tokens : name the token limit ``max_completion_tokens``.
    say : told what was written, a line at a time.

    Raises
    ------
    AuditError
        A mistake in the params, or the folder holds batch files already.
    """
    from auditlib.inference.batch import MAX_BYTES, MAX_REQUESTS, write_batches
    from auditlib.inference.chat import LIMIT_NAMES
    from auditlib.inference.store import Store

    plan = _plan(params_file, outputs)
    target = folder or plan.paths.folder / FOLDER
    total = known = 0

    def counted() -> Iterator[Request]:
        nonlocal total, known
        for request in _requests(plan):
            total, known = total + 1, known + (request.key in store)
            yield request

    with Store(plan.paths.answers) as store:
        files = write_batches(
            counted(),
            target,
            max_requests=max_requests or MAX_REQUESTS,
            max_bytes=max_bytes or MAX_BYTES,
            skip=store,
            served=_served(plan),
            limit_name=LIMIT_NAMES[completion_tokens],
        )
    say(f"{total:,} requests, {known:,} of them answered before, {total - known:,} written")
    for path in files:
        say(f"wrote {shown(path)}  ({path.stat().st_size:,} bytes)")
    if files:
        say(f"next: upload these files, then: auditlib batch read {params_file} RESULTS --out {shown(target)}")
    return files


def read(
    params_file: str | Path,
    files: Sequence[Path],
    *,
    outputs: Path,
    folder: Path | None = None,
    say: Callable[[str], None] = print,
) -> BatchSummary:
    """Take results into the store of a pool; what failed or is missing is written again beside the batch files.

    Parameters
    ----------
    params_file, outputs : as in :func:`write`.
    files : result files and error files.
    folder : of the batch files; the first result file's folder if it holds their index, else ``outputs/POOL/batch``.
    say : told what was read, a line at a time.

    Raises
    ------
    AuditError
        A mistake in the params, no batch files, or a result file with damaged lines; its good lines are stored then.
    """
    from auditlib.inference.batch import read_batches
    from auditlib.inference.store import Store

    plan = _plan(params_file, outputs)
    with Store(plan.paths.answers) as store:
        summary = read_batches(files, folder or _found(plan, files), store)
        left = sum(r.key not in store for r in _requests(plan))
    answered = sum(summary.outcomes.get(o, 0) for o in _ANSWERED)
    known = f", {summary.known:,} known before" if summary.known else ""
    say(f"{answered:,} answered{known}, {summary.failed:,} failed, {summary.missing:,} missing")
    for outcome in _ANSWERED[1:]:
        if n := summary.outcomes.get(outcome):
            say(f"  {n:,} of the answered: {outcome.replace('_', ' ')}")
    for row in summary.coverage:
        say(f"  {row['n']:,} {row['what']}: {row['reason']}")
    for error, n in summary.errors:
        say(f"  {n:,} times: {error}")
    for path in summary.resubmit:
        say(f"wrote {shown(path)}  (ask again: upload it, read its results the same way)")
    say(f"{left:,} requests of the params have no answer yet" if left else
        f"all requests of the params are answered; next: auditlib run {params_file}")  # fmt: skip
    return summary


def _plan(params_file: str | Path, outputs: Path) -> BlindPlan:
    from auditlib.inference.stage import plan_run
    from auditlib.params import load_params
    from auditlib.paths import RunPaths

    params = load_params(params_file)
    return plan_run(params, RunPaths(outputs, params.pool))


def _requests(plan: BlindPlan) -> Iterator[Request]:
    from auditlib.inference.plan import requests_of

    for settings in plan.settings.values():
        yield from requests_of(plan.items, settings)


def _served(plan: BlindPlan) -> dict[str, str]:
    """What a model is stored under to its name on the server."""
    return {plan.settings[m.name].model: m.served_as or m.name for m in plan.inference.models}


def _found(plan: BlindPlan, files: Sequence[Path]) -> Path:
    from auditlib.inference.batch_files import INDEX

    for folder in (files[0].parent, plan.paths.folder / FOLDER):
        if (folder / INDEX).is_file():
            return folder
    raise AuditError(
        "the batch files that these results answer were not found",
        file=files[0],
        mend="name the folder that 'auditlib batch write' wrote with --out",
    )


def _write(options: argparse.Namespace) -> int:
    outputs = outputs_folder(options.outputs)
    write(options.params, outputs=outputs, folder=options.out, max_requests=options.max_requests,
          max_bytes=options.max_bytes, completion_tokens=options.completion_tokens)  # fmt: skip
    return 0


def _read(options: argparse.Namespace) -> int:
    summary = read(options.params, options.files, outputs=outputs_folder(options.outputs), folder=options.out)
    return 1 if summary.failed or summary.missing else 0


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError("a whole number of at least 1 is needed")
    return int(text)
