"""``auditlib leaderboard``: many benchmarks without notebooks, on one page; ``auditlib cache``: runs parsed before."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from auditlib.paths import outputs_folder, shown


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add ``leaderboard`` and ``cache`` to the command's parser."""
    board = commands.add_parser("leaderboard", help="audit many benchmarks without notebooks: tables and one page")
    board.add_argument("sources", nargs="*", type=Path, metavar="PARAMS_OR_TREE",
                       help="params files and trees of results; none: the page of what was audited before")  # fmt: skip
    board.add_argument("--pools", metavar="GLOB", help="only pools whose name matches, e.g. 'mm*'")
    board.add_argument("--with-audits", action="store_true",
                       help="show pools that were run through notebooks beside those of the sources")  # fmt: skip
    board.add_argument("--jobs", type=int, default=2, metavar="N", help="pools at a time (default: 2)")
    board.add_argument("--cache", action=argparse.BooleanOptionalAction, default=True,
                       help="take models parsed before from outputs/.cache (default: yes)")  # fmt: skip
    board.add_argument("--keep-going", action=argparse.BooleanOptionalAction, default=True,
                       help="go on with other pools when one fails (default: yes)")  # fmt: skip
    board.add_argument("--outputs", type=Path, help="where results go (default: outputs/ of the project)")
    board.set_defaults(do=_leaderboard)

    cache = commands.add_parser("cache", help="say how large the cache of parsed runs is, or empty it")
    cache.add_argument("--clear", action="store_true", help="remove every entry; runs are then parsed anew")
    cache.add_argument("--outputs", type=Path, help="where results go (default: outputs/ of the project)")
    cache.set_defaults(do=_cache)


def _leaderboard(options: argparse.Namespace) -> int:
    from fnmatch import fnmatchcase

    from auditlib.errors import AuditError
    from auditlib.leaderboard.jobs import audit_pools, params_of
    from auditlib.leaderboard.page import write_page
    from auditlib.leaderboard.tables import collect
    from auditlib.report.index import write_index

    if options.jobs < 1:
        raise AuditError(f"--jobs {options.jobs} is no number of processes", mend="give 1 or more")
    outputs = outputs_folder(options.outputs)
    pools = params_of([p.expanduser().absolute() for p in options.sources], outputs)
    if options.pools:
        chosen = [p for p in pools if fnmatchcase(p.pool, options.pools)]
        if not chosen:
            names = ", ".join(p.pool for p in pools[:12])
            raise AuditError(f"no pool is called like {options.pools!r}", mend=f"pools here: {names}")
        pools = chosen
    outcomes = audit_pools(pools, outputs, workers=options.jobs, cache=options.cache, keep_going=options.keep_going,
                           say=lambda line: print(line, flush=True))  # fmt: skip
    names = [p.pool for p in pools] if options.sources else None  # no sources: all that was audited before
    target = write_page(outputs, collect(outputs, names, with_audits=options.with_audits))
    write_index(outputs)
    failed = [o.pool for o in outcomes if o.error]
    if failed or len(outcomes) < len(pools):
        left = f"; {len(pools) - len(outcomes)} not started" if len(outcomes) < len(pools) else ""
        print(f"auditlib: {len(failed)} of {len(pools)} pools failed: {', '.join(failed)}{left}", file=sys.stderr)
    print(f"leaderboard: {shown(target)}")
    return 1 if failed else 0


def _cache(options: argparse.Namespace) -> int:
    from auditlib import parsed

    cache = parsed.ParsedCache(outputs_folder(options.outputs) / ".cache")
    if options.clear:
        print(f"{parsed.clear(cache):,} entries removed")
        return 0
    entries, used = parsed.size(cache)
    print(f"{entries:,} entries, {used / 2**20:,.1f} MiB of at most {cache.limit / 2**30:,.0f} GiB in "
          f"{shown(cache.folder)}")  # fmt: skip
    return 0
