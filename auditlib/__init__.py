"""Audit a vision-language benchmark from evaluation runs that already exist."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: public name -> module that holds it; modules are imported when a name is first used
_WHERE = {
    "Audit": "auditlib.auditing",
    "AuditError": "auditlib.errors",
    "Params": "auditlib.params",
    "Pool": "auditlib.pool",
    "RunPaths": "auditlib.paths",
    "audit": "auditlib.auditing",
    "load_audit": "auditlib.outputs",
    "load_params": "auditlib.params",
    "read_pool": "auditlib.reading",
    "save_audit": "auditlib.outputs",
}
__all__ = sorted(_WHERE)

if TYPE_CHECKING:
    from auditlib.auditing import Audit, audit  # noqa: F401
    from auditlib.errors import AuditError  # noqa: F401
    from auditlib.outputs import load_audit, save_audit  # noqa: F401
    from auditlib.params import Params, load_params  # noqa: F401
    from auditlib.paths import RunPaths  # noqa: F401
    from auditlib.pool import Pool  # noqa: F401
    from auditlib.reading import read_pool  # noqa: F401


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'auditlib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
