"""The commands that make figures and tables again from a saved audit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditlib.errors import AuditError
from auditlib.paths import RunPaths, resolve


def again(arguments: Sequence[str], kind: str, known: Mapping[str, Any], save: Callable[..., Any]) -> int:
    """``FOLDER [NAME ...]``: load the audit in a pool's folder, make the named things (all by default), list them."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: python -m auditlib.{kind} outputs/POOL [NAME ...]\nnames: {', '.join(known)}")
        return 0 if arguments else 2
    folder, names = resolve(Path(arguments[0])), list(arguments[1:])
    try:
        from auditlib.extensions import extensions_of
        from auditlib.outputs import load_audit

        paths = RunPaths(folder.parent, folder.name)
        audit = load_audit(paths)
        have = [*known, *getattr(extensions_of(audit.params), kind)]
        unknown = [n for n in names if n not in have]
        if unknown:
            raise AuditError(f"no {kind[:-1]} is called {unknown[0]!r}", mend=f"names: {', '.join(have)}")
        table = save(audit, paths, names or None)
    except AuditError as e:
        print(f"auditlib: {e}", file=sys.stderr)
        return 2
    for r in table.to_dict("records"):
        print(f"{r['name']:<24} {r['state']:<10} {r['reason']}")
    return 0


def command(kind: str, pool_folder: str, name: str = "") -> str:
    """The command for one figure or table, as printed in the report."""
    return f"python -m auditlib.{kind} {pool_folder} {name}".rstrip()
