"""Read and check a params file; a mistake is one line that names the key and the nearest known one."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from auditlib.errors import AuditError
from auditlib.params.base import Strict
from auditlib.params.data import DATA_PATHS
from auditlib.params.pool import CAPABILITIES, Params


class _OneKeyLoader(yaml.SafeLoader):
    """The safe loader, but a key that stands twice in one mapping is an error, not a silent last word."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key in (k for k, _ in node.value if isinstance(k.value, str)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_params(path: str | Path, overrides: dict[str, Any] | None = None) -> Params:
    """Read and check a params file.

    Parameters
    ----------
    path : path of the YAML.
    overrides : dotted names to values, for example ``{"audit.permutations": 9999}``.

    Raises
    ------
    AuditError
        The file is missing or no YAML, a key is unknown (the nearest known key is named), a value does not fit.
    """
    path = Path(path)
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_OneKeyLoader)
    except FileNotFoundError:
        raise AuditError(
            "there is no such params file",
            file=path,
            mend="check the path, or write one with 'auditlib init FOLDER --benchmark NAME'",
        ) from None
    except (UnicodeDecodeError, yaml.YAMLError, IsADirectoryError, RecursionError, ValueError) as e:
        mark = getattr(e, "problem_mark", None)
        raise AuditError(
            f"not readable as YAML ({getattr(e, 'problem', None) or type(e).__name__})",
            file=path,
            row=mark.line + 1 if mark else None,
            mend="correct that line",
        ) from None
    if not isinstance(raw, dict):
        raise AuditError(
            "a params file is a mapping of keys to values", file=path, mend="start from params/tinysee.yaml"
        )
    for dotted, value in (overrides or {}).items():
        _set(raw, dotted, value, path)
    return check_params(raw, path)


def check_params(raw: dict[str, Any], path: Path) -> Params:
    """Validate a mapping as :class:`Params`; relative paths in ``data`` start at the folder of ``path``."""
    try:
        params = Params.model_validate(raw)
    except ValidationError as e:
        raise AuditError(_say(e), file=path, mend=_mend(e)) from None
    base = path.resolve().parent
    data = params.data
    located = {k: (base / v).resolve() for k in DATA_PATHS if (v := getattr(data, k)) is not None}
    params = params.model_copy(update={"source": path, "data": data.model_copy(update=located),
                                        "extensions": [(base / f).resolve() for f in params.extensions]})  # fmt: skip
    blocks = {n: _located(b, base) for n in ("inference", *CAPABILITIES) if (b := getattr(params, n)) is not None}
    return params.model_copy(update=blocks)


def _located(block: Strict, base: Path) -> Strict:
    """A block with its paths, also those of blocks inside it, taken from ``base``."""
    changed: dict[str, Any] = {}
    for name in type(block).model_fields:
        value = getattr(block, name)
        if isinstance(value, Path):
            changed[name] = (base / value).resolve()
        elif isinstance(value, list) and value and all(isinstance(v, Path) for v in value):
            changed[name] = [(base / v).resolve() for v in value]
        elif isinstance(value, Strict):
            changed[name] = _located(value, base)
    return block.model_copy(update=changed)


def _set(raw: dict, dotted: str, value: Any, path: Path) -> None:
    *parents, last = str(dotted).split(".")
    here = raw
    for name in parents:
        here = here.setdefault(name, {})
        if not isinstance(here, dict):
            raise AuditError(
                f"override {dotted!r} goes through {name!r}, which is no block",
                file=path,
                mend="use a dotted name such as audit.permutations",
            )
    here[last] = value


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for a in get_args(annotation) for m in _models_in(a)]


def _known(loc: tuple) -> list[str]:
    """Field names valid at the place of an error."""
    model: type[BaseModel] = Params
    for name in loc[:-1]:
        if isinstance(name, int):
            continue
        field = model.model_fields.get(name)
        inner = _models_in(field.annotation) if field else []
        if not inner:
            return []
        model = inner[0]
    return [n for n in model.model_fields if n != "source"]


def _say(e: ValidationError) -> str:
    parts = []
    for err in e.errors():
        name = ".".join(str(x) for x in err["loc"])
        if err["type"] == "extra_forbidden":
            parts.append(f"unknown key {name!r}")
        elif err["type"] == "missing":
            parts.append(f"key {name!r} is missing")
        else:
            parts.append(f"{name}: {err['msg']}" if name else err["msg"])
    return "; ".join(parts)


def _mend(e: ValidationError) -> str:
    hints = []
    for err in e.errors():
        if err["type"] == "missing":
            hints.append(f"add {err['loc'][-1]}: ...")
        if err["type"] != "extra_forbidden":
            continue
        known = _known(err["loc"])
        near = difflib.get_close_matches(str(err["loc"][-1]), known, n=1, cutoff=0.5)
        hints.append(f"did you mean {near[0]!r}?" if near else f"known keys here: {', '.join(known)}")
    return " ".join(hints) or "correct the value"
