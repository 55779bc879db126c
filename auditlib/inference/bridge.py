"""VLMEvalKit's own command line, blind: ``python -m auditlib.inference.bridge ARGUMENTS`` as of ``python -m vlmeval``.

Every prompt that its data sets or model wrappers build loses its pictures; the models are named ``MODEL_blind``, so
that results lie beside those of the full run and overwrite nothing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import multiprocessing
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from auditlib.calls import Picture
from auditlib.errors import AuditError
from auditlib.inference.conditions import ablate

SUFFIX = "_blind"
_PICTURES = ("image", "video")
_depth = threading.local()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the toolkit blind.

    Parameters
    ----------
    arguments : of the toolkit's command line; those of this process when not given.

    Raises
    ------
    AuditError
        VLMEvalKit is not installed, or of a version that has no command line in ``vlmeval.run``; or a prompt could not
        be made blind. The toolkit itself logs such an error, leaves the data set out and ends as if all were well.
    """
    run = _toolkit()
    refused: list[AuditError] = []
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as undo:
        _keep_changes_in_workers(undo)
        for kind in _classes_with_prompts():
            _replace(undo, kind, "build_prompt", _blind(kind.build_prompt, refused))
        _rename_models(run, Path(scratch), undo)
        _replace(undo, sys, "argv", ["vlmeval", *(sys.argv[1:] if arguments is None else arguments)])
        run.main()
    if refused:
        raise refused[0]


def without_pictures(message: Any) -> Any:
    """A prompt of the toolkit without its pictures and videos; texts are the same objects.

    Parameters
    ----------
    message : a text, a list of parts (``type`` and ``value``), or a list of turns (``role`` and ``content``).

    Raises
    ------
    AuditError
        A prompt of another shape, in which pictures cannot be told from texts, or one of pictures alone.
    """
    if isinstance(message, str):
        return message
    if not isinstance(message, list) or not all(isinstance(m, dict) for m in message):
        raise AuditError(
            "a data set of VLMEvalKit builds prompts of an unknown shape, in which pictures cannot be told from texts",
            mend="leave this data set out of the blind run",
        )
    turns = [m | {"content": without_pictures(m["content"])} if "content" in m else m for m in message]
    parts = tuple(Picture("", "", bytes) if m.get("type") in _PICTURES else m for m in turns)
    kept = list(ablate(parts, "blind"))  # type: ignore[arg-type]
    if message and not kept:
        raise AuditError(
            "a prompt of VLMEvalKit holds pictures and no text, and blind nothing is left of it",
            mend="leave this data set out of the blind run",
        )
    return kept


def _toolkit() -> Any:
    try:
        run = importlib.import_module("vlmeval.run")
    except ImportError as e:
        absent = (e.name or "").partition(".")[0] == "vlmeval"
        what = "VLMEvalKit is not installed" if absent else f"VLMEvalKit cannot be imported ({e})"
        raise AuditError(what, mend="install it, for example with 'pip install ms-vlmeval'") from None
    if not all(callable(getattr(run, name, None)) for name in ("main", "parse_args")):
        raise AuditError(
            "this version of VLMEvalKit has no command line in vlmeval.run",
            mend="install a packaged version, for example with 'pip install -U ms-vlmeval'",
        )
    return run


def _classes_with_prompts() -> list[type]:
    """Classes of the toolkit that define ``build_prompt``: data sets, and models with prompts of their own."""
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("vlmeval.") and m is not None]
    found = {
        value
        for module in modules
        for value in list(vars(module).values())
        if inspect.isclass(value) and inspect.isfunction(vars(value).get("build_prompt"))
    }
    return sorted((k for k in found if k.__module__.startswith("vlmeval.")), key=lambda k: (k.__module__, k.__name__))


def _blind(build: Callable[..., Any], refused: list[AuditError]) -> Callable[..., Any]:
    """``build_prompt`` without pictures. Only the outermost call strips: inner ones may place pictures in the text."""

    @functools.wraps(build)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _depth.value = getattr(_depth, "value", 0) + 1
        try:
            message = build(*args, **kwargs)
        finally:
            _depth.value -= 1
        if _depth.value:
            return message
        try:
            return without_pictures(message)
        except AuditError as e:
            refused.append(e)
            raise

    return wrapped


def _replace(undo: contextlib.ExitStack, owner: Any, name: str, value: Any) -> None:
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


def _keep_changes_in_workers(undo: contextlib.ExitStack) -> None:
    """Processes that build prompts of videos start as copies of this one: fresh ones would not know the changes."""
    if sys.platform == "linux":
        undo.callback(multiprocessing.set_start_method, multiprocessing.get_start_method(), force=True)
        multiprocessing.set_start_method("fork", force=True)


def _rename_models(run: Any, scratch: Path, undo: contextlib.ExitStack) -> None:
    """Give every model its blind name for files; what a server is asked for keeps the true name."""
    parse, known = run.parse_args, getattr(run, "supported_VLM", {})
    true_names: dict[str, str] = {}

    @functools.wraps(parse)
    def parse_args(*args: Any, **kwargs: Any) -> Any:
        asked = parse(*args, **kwargs)
        if getattr(asked, "model", None):
            one = isinstance(asked.model, str)
            names = [asked.model] if one else list(asked.model)
            _alias(known, names, undo)
            true_names.update((n + SUFFIX, n) for n in names)
            asked.model = names[0] + SUFFIX if one else [n + SUFFIX for n in names]
        if getattr(asked, "config", None):
            asked.config = _renamed_config(Path(asked.config), scratch, known, undo)
        return asked

    _replace(undo, run, "parse_args", parse_args)
    # the class of models at a base URL: every mode of the command line builds it by this name
    served = getattr(run, "LMDeployAPI", None)
    if served is not None:

        @functools.wraps(served, updated=())
        def of_true_name(*args: Any, **settings: Any) -> Any:
            if "model" in settings:
                settings["model"] = true_names.get(settings["model"], settings["model"])
            return served(*args, **settings)

        _replace(undo, run, "LMDeployAPI", of_true_name)


def _renamed_config(path: Path, scratch: Path, known: Any, undo: contextlib.ExitStack) -> str:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        models = dict(config["model"])
    except (OSError, ValueError, KeyError, TypeError):
        raise AuditError(
            "this is no configuration of VLMEvalKit", file=path, mend="give a JSON file with 'model' and 'data'"
        ) from None
    _alias(known, models, undo)
    config["model"] = {name + SUFFIX: settings for name, settings in models.items()}
    copy = scratch / path.name
    copy.write_text(json.dumps(config), encoding="utf-8")
    return str(copy)


def _alias(known: Any, names: Any, undo: contextlib.ExitStack) -> None:
    for name in names:
        if name in known and name + SUFFIX not in known:
            known[name + SUFFIX] = known[name]
            undo.callback(known.pop, name + SUFFIX, None)


if __name__ == "__main__":
    try:
        main()
    except AuditError as e:
        print(e, file=sys.stderr)
        raise SystemExit(1) from None
