"""Audit vision-language benchmarks from finished runs, and hand on what was found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from auditlib import answers, batching
from auditlib.diff import commands as diff
from auditlib.errata import commands as errata
from auditlib.errors import AuditError
from auditlib.latex import commands as latex
from auditlib.leaderboard import commands as leaderboard
from auditlib.paths import outputs_folder, shown

EPILOG = "Exit codes: 0 all well, 1 a notebook failed, 2 a mistake in the arguments, params or files."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.do(options)
    except AuditError as e:
        for line in getattr(e, "lines", [str(e)]):
            print(f"auditlib: {line}", file=sys.stderr)
        return 2
    except (OSError, ValueError) as e:
        if isinstance(e, BrokenPipeError):  # output piped into head
            sys.stderr.close()
            return 0
        from auditlib.stages import system_mistake

        if (mistake := system_mistake(e)) is None:
            raise
        print(f"auditlib: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("auditlib: stopped; finished stages are kept", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="auditlib", description=__doc__, epilog=EPILOG)
    commands = parser.add_subparsers(required=True, metavar="command")

    audit = commands.add_parser("audit", help="audit a results folder: from saved runs to a report", epilog=EPILOG)
    _about_folder(audit)
    audit.add_argument("--outputs", type=Path, help="where results go (default: outputs/ of the project)")
    audit.add_argument("--limit", type=_positive, metavar="N", help="a quick look at the first N items")
    audit.add_argument("--force", action="store_true", help="repeat what is fresh")
    audit.set_defaults(do=_audit)

    init = commands.add_parser("init", help="write params files for the results folders of a tree", epilog=EPILOG)
    _about_folder(init)
    init.add_argument("--to", type=Path, metavar="FOLDER", help="folder of the files (default: params/ of the project)")
    init.add_argument("--force", action="store_true", help="replace files of those names")
    init.set_defaults(do=_init)

    check = commands.add_parser("check", help="read a pool and print what was read, joined and left out")
    check.add_argument("params", type=Path)
    check.add_argument("--outputs", type=Path)
    check.set_defaults(do=_check)

    run = commands.add_parser("run", help="run the notebooks of one or more params files", epilog=EPILOG)
    run.add_argument("params", nargs="+", type=Path)
    run.add_argument("--jobs", type=_positive, metavar="N", help="pools at a time (default: one per core)")
    run.add_argument("--pools", metavar="GLOB", help="only pools whose name matches, e.g. 'mmstar*'")
    run.add_argument("--force", action="store_true", help="repeat what is fresh")
    run.add_argument("--limit", type=_positive, metavar="N", help="first N items only, kept apart in POOL.limitN")
    run.add_argument("--dry-run", action="store_true", help="say what would run, from which files, how long")
    run.add_argument("--keep-going", action=argparse.BooleanOptionalAction, default=True,
                     help="go on with other pools when one fails (default: yes)")  # fmt: skip
    run.add_argument("--outputs", type=Path, help="where results go (default: outputs/ of the project)")
    cluster = run.add_mutually_exclusive_group()
    cluster.add_argument("--scheduler", metavar="ADDRESS", help="run the pools on the workers of a dask scheduler")
    cluster.add_argument("--scheduler-file", type=Path, metavar="FILE",
                         help="the same, by the file that 'dask scheduler --scheduler-file' writes")  # fmt: skip
    run.set_defaults(do=_run)

    status = commands.add_parser("status", help="say which pools are fresh, stale, failed or running, and why")
    status.add_argument("params", nargs="*", type=Path, help="default: every file of params/, and pools made by audit")
    status.add_argument("--outputs", type=Path)
    status.set_defaults(do=_status)

    export = commands.add_parser("export", help="write a pool's replies as Every Eval Ever files", epilog=EPILOG)
    export.add_argument("params", type=Path)
    export.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="folder of the files")
    export.add_argument("--outputs", type=Path)
    export.set_defaults(do=_export)

    batching.add_commands(commands)
    answers.add_commands(commands)
    latex.add_commands(commands)
    errata.add_commands(commands)
    diff.add_commands(commands)
    leaderboard.add_commands(commands)
    return parser


def _about_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="results of one or more toolkits, full runs and blind ones")
    parser.add_argument("--benchmark", metavar="NAME", help="the benchmark or task, where there are several")
    parser.add_argument("--toolkit", metavar="NAME", help="whose results, when those of several toolkits lie there")
    parser.add_argument("--judge", metavar="NAME", help="which verdicts: a judge, filter, scorer or metric")
    parser.add_argument("--blind", type=Path, metavar="FOLDER", help="folder of the runs without image")
    parser.add_argument("--dataset", type=Path, metavar="FILE", help="the benchmark's own TSV: options as written")
    parser.add_argument("--pool", metavar="NAME", help="name of the pool (default: the benchmark's, in lower case)")


def _wish(options: argparse.Namespace):
    from auditlib.starting import Wish

    return Wish(options.folder, options.benchmark, options.judge, options.blind, options.dataset, options.pool,
                options.toolkit)  # fmt: skip


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError("a whole number of at least 1 is needed")
    return int(text)


def _say(pool: str, stage: str, text: str) -> None:
    if stage:
        print(f"{pool:<24} {stage:<11} {text}", flush=True)
    else:
        print(f"auditlib: {pool}: {text}" if pool else f"auditlib: {text}", file=sys.stderr, flush=True)


def _tell(line: str) -> None:
    print(f"auditlib: {line}", file=sys.stderr, flush=True)


def _run(options: argparse.Namespace) -> int:
    from auditlib import pipeline

    jobs = pipeline.jobs_for(options.params, outputs=options.outputs, pools=options.pools, limit=options.limit,
                             force=options.force)  # fmt: skip
    if options.dry_run:
        print("\n".join(pipeline.describe(jobs)))
        return 0
    return _finish(jobs, workers=options.jobs, keep_going=options.keep_going, cluster=_cluster(options))


def _cluster(options: argparse.Namespace):
    if options.scheduler is None and options.scheduler_file is None:
        return None
    if options.scheduler is not None and not options.scheduler.strip():
        raise AuditError("--scheduler names no address", mend="give one such as tcp://HOST:8786 (is a variable empty?)")
    if options.jobs:
        raise AuditError("--jobs is for runs on this machine",
                         mend="leave it out: on a cluster as many pools run as its workers have threads")  # fmt: skip
    from auditlib.cluster import Cluster

    return Cluster(options.scheduler, options.scheduler_file)


def _finish(jobs, *, workers: int | None = None, keep_going: bool = True, cluster=None) -> int:
    from auditlib import pipeline
    from auditlib.paths import RunPaths

    tell = _tell if len(jobs) > 1 else lambda line: None
    outcomes = pipeline.run(jobs, workers=workers, keep_going=keep_going, say=_say, tell=tell, cluster=cluster)
    outputs = Path(jobs[0].outputs)
    done = [o.pool for o in outcomes if o.code == 0]
    for pool in done:
        print("\n".join(["", f"{pool}:", *_headline(RunPaths(outputs, pool))]))
    if done:
        print()
        for pool in done if len(jobs) == 1 else []:
            print(f"report: {shown(RunPaths(outputs, pool).report_html)}")
        print(f"index: {shown(outputs / 'index.html')}")
    stopped = [f"{o.pool} ({'mistake' if o.code == 2 else 'failed'})" for o in outcomes if o.code]
    not_started = len(jobs) - len(outcomes)
    if len(jobs) > 1 and (stopped or not_started):
        left = f"; {not_started} not started" if not_started else ""
        print(f"auditlib: {len(done)} of {len(jobs)} pools ended well; not: {', '.join(stopped)}{left}",
              file=sys.stderr)  # fmt: skip
    return pipeline.exit_code(outcomes)


def _headline(paths) -> list[str]:
    from auditlib.outputs import load_audit
    from auditlib.report.advice import unread
    from auditlib.starting import text_table

    audit = load_audit(paths)
    notes = [f"  note: {r.model}: {r.reason}" for r in unread(audit).itertuples()]
    return [*("  " + line for line in text_table(audit.summary())[1:]), *notes]


def _audit(options: argparse.Namespace) -> int:
    from auditlib import pipeline
    from auditlib.starting import params_for_audit

    outputs = outputs_folder(options.outputs)
    file, is_new = params_for_audit(_wish(options), outputs)
    try:
        jobs = pipeline.jobs_for([file], outputs=outputs, limit=options.limit, force=options.force)
        print(f"params: {shown(file)}{'' if is_new else ' (kept as it is)'}", flush=True)
        return _finish(jobs)
    finally:
        if is_new and not _began(file, options.limit):  # nothing was read: leave no trace
            with suppress(OSError):
                for rest in [*file.parent.glob(".*.tmp*"), file, file.parent / "status.json"]:
                    rest.unlink(missing_ok=True)
                file.parent.rmdir()


def _began(file: Path, limit: int | None) -> bool:
    """Whether a stage was started for the params file of an audit, ``<outputs>/<pool>/<pool>.yaml``."""
    from auditlib.paths import RunPaths
    from auditlib.stages import read_status

    pool = file.parent.name
    return bool(read_status(RunPaths(file.parent.parent, f"{pool}.limit{limit}" if limit else pool))["stages"])


def _init(options: argparse.Namespace) -> int:
    from auditlib.starting import init

    files, notes = init(_wish(options), to=options.to, force=options.force)
    several = len(files) > 1
    for file, made in files:
        if several:
            print(f"{made.name.removesuffix('.yaml')}: {made.toolkit}, {shown(made.folder.absolute())}")
        indent = "  " if several else ""
        print("\n".join(indent + line for line in made.remarks))
        print(f"{indent}wrote {shown(file)}" + ("" if several else f"; next: auditlib run {shown(file)}"))
    print("\n".join([f"Note: {n}." for n in notes]), end="\n" if notes else "")
    if several:
        print(f"{len(files)} params files; next: auditlib check FILE, or auditlib run FILES")
    return 0


def _export(options: argparse.Namespace) -> int:
    from auditlib.exchange import write_instances
    from auditlib.params import load_params
    from auditlib.reading import read_pool

    pool = read_pool(load_params(options.params), outputs=outputs_folder(options.outputs))
    for path in write_instances(pool, options.to):
        print(shown(path))
    return 0


def _check(options: argparse.Namespace) -> int:
    from auditlib.params import load_params
    from auditlib.starting import check

    print("\n".join(check(load_params(options.params), outputs_folder(options.outputs))))
    return 0


def _status(options: argparse.Namespace) -> int:
    from auditlib import pipeline
    from auditlib.paths import project_root

    files = options.params or sorted((project_root() / "params").glob("*.yaml"))
    if not options.params:  # and the pools that 'auditlib audit' wrote beside their results
        known = {p.stem for p in files}
        made = (f for f in sorted(outputs_folder(options.outputs).glob("*/*.yaml")) if f.stem == f.parent.name)
        files += [f for f in made if f.stem not in known]
    jobs = pipeline.jobs_for(files, outputs=options.outputs)
    for row in pipeline.states(jobs):
        print(f"{row['pool']:<24} {row['state']:<12} {row['finished']:<21} {row['why']}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
