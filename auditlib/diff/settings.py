"""Settings of two audits that bear on their numbers: which differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib import escape
from auditlib.flagged_rows import clip

if TYPE_CHECKING:
    from auditlib.params import Params

#: blocks and their settings that say how replies were made, read and scored; where files and servers are is left out
DATA = ("toolkit", "conditions", "where", "columns", "condition", "rows", "prefixes", "item_columns")
INFERENCE = ("conditions", "prompt_mode", "layout", "placeholder", "wrong_image", "samples", "temperature",
             "max_tokens", "top_p", "generation_seed", "reasoning_effort")  # fmt: skip
#: longest value that is shown
LONGEST = 60


def setting_changes(before: Params | None, after: Params | None) -> tuple[str, ...]:
    """Settings that differ, as ``audit.exact letters → letters, judge``; none where neither side's are known."""
    if before is None and after is None:
        return ()
    if before is None or after is None:
        return (f"those of {'before' if before is None else 'after'} are unknown",)
    a, b = (dict(_settings(p)) for p in (before, after))
    return tuple(
        f"{k} {_shown(a.get(k))} → {_shown(b.get(k))}" for k in dict.fromkeys([*a, *b]) if a.get(k) != b.get(k)
    )


def _settings(params: Params) -> Iterator[tuple[str, Any]]:
    yield "judge", params.judge
    yield "seed", params.seed
    for name, value in params.audit.model_dump(mode="json").items():
        yield f"audit.{name}", value
    for block, names in (("data", DATA), ("inference", INFERENCE)):
        for name in names if (held := getattr(params, block)) is not None else ():
            yield f"{block}.{name}", getattr(held, name)
    yield "data.reader", _names([params.data.reader])
    yield "extensions", _names(params.extensions)
    yield "models", [m.model_dump(mode="json", exclude_none=True) for m in params.models]


def _names(paths: list[Path | None]) -> list[str]:
    return [p.name for p in paths if p is not None]


def _shown(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    flat = isinstance(value, list) and all(isinstance(v, str) for v in value)
    text = ", ".join(value) if flat else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(escape.visible(text, newlines=False), LONGEST)
