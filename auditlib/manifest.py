"""``manifest.json``: all that someone needs to make a pool's results again, to the same bytes."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from auditlib.freshness import Basis, HashCache, file_hash, input_names, stated_params
from auditlib.params import Params
from auditlib.paths import RunPaths, atomic
from auditlib.stages import now, read_status

#: words in the name of a fact that must never be written down
SECRET = ("key", "token", "secret", "password", "authorization", "credential")
#: names with such a word that hold no secret
HARMLESS = ("max_tokens", "max_new_tokens", "min_tokens", "keys_from", "image_key", "tokens_in", "tokens_out")


def write_manifest(
    params: Params, paths: RunPaths, basis: Basis, *, root: Path, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Write ``manifest.json`` and ``params.resolved.yaml`` of a pool, and return the manifest.

    Parameters
    ----------
    params : the resolved params.
    basis : what the results were made from.
    root : the project's folder; files are named relative to it, to the params or to the results folder.
    overrides : dotted names that were set on the command line.

    Notes
    -----
    Times and durations live here and in ``status.json`` only, so that every other file repeats to the byte.
    """
    status = read_status(paths)
    read = status.get("read", {})
    stated = stated_params(params, root)
    command = f"auditlib run {status.get('params', params.source and params.source.name)}"
    if status.get("limit"):
        command += f" --limit {status['limit']}"
    manifest = {
        "pool": params.pool,
        "benchmark": params.benchmark,
        "limit": status.get("limit"),
        "written": now(),
        "command": command,
        "overrides": dict(overrides or {}),
        "params": stated,
        "inputs": read.get("inputs") or basis.inputs,
        "provenance": read.get("provenance", {}),
        "runs": run_hashes(paths),
        "digests": read.get("digests", {}),
        "judge": params.judge or read.get("provenance", {}).get("judge"),
        "seeds": _seeds(params),
        "auditlib": metadata.version("auditlib"),
        "code": _digest(basis.code),
        "git": git_state(root),
        "versions": installed(),
        "platform": f"{platform.system()} {platform.machine()}",
        "notebooks": {n: s.get("notebook", "") for n, s in status["stages"].items() if s.get("notebook")},
        "stages": {
            n: {k: s[k] for k in ("started", "seconds") if k in s}
            for n, s in status["stages"].items()
            if s.get("state") == "done"
        },
        "outputs": output_hashes(paths),
    }
    with atomic(paths.params) as t:
        t.write_text(yaml.safe_dump(stated, sort_keys=False, allow_unicode=True), encoding="utf-8")
    with atomic(paths.manifest) as t:
        t.write_text(json.dumps(manifest, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    return manifest


def read_facts(pool: Any, root: Path, hashes: HashCache) -> dict[str, Any]:
    """What a pool was read from: SHA-256 of every file, and how its runs were made as far as the files tell."""
    names = input_names(pool.params, pool.inputs, root) if pool.params else {p.name: p for p in pool.inputs}
    facts = {
        "inputs": {name: hashes(path) for name, path in sorted(names.items())},
        "provenance": without_secrets(pool.provenance),
    }
    facts["digests"] = {"items": items_digest(pool.items), "runs": _digest(facts["inputs"])}
    return json.loads(json.dumps(facts, default=str))


def items_digest(items: pd.DataFrame) -> str:
    """SHA-256 of what makes a benchmark's version: id, question, options and key of every item, in their order."""
    columns = [c for c in ("item", "question", "options", "key") if c in items]
    sha = hashlib.sha256(json.dumps(columns).encode())
    for row in items[columns].itertuples(index=False):
        texts = [list(map(str, v)) if isinstance(v, list | tuple | np.ndarray) else str(v) for v in row]
        sha.update(json.dumps(texts).encode() + b"\n")
    return sha.hexdigest()


def without_secrets(value: Any) -> Any:
    """A copy without entries whose name speaks of a key, token or password, and without addresses' user parts."""
    if isinstance(value, Mapping):
        return {
            str(k): without_secrets(v)
            for k, v in value.items()
            if str(k).lower() in HARMLESS or not any(w in str(k).lower() for w in SECRET)
        }
    if isinstance(value, list | tuple):
        return [without_secrets(v) for v in value]
    return value


def output_hashes(paths: RunPaths) -> dict[str, str]:
    """SHA-256 of the statistics, findings, tables and figures' numbers: the files that repeat to the byte."""
    files = [paths.statistics, paths.findings_csv, paths.coverage, paths.flagged]
    files += sorted(p for f in (paths.tables, paths.figures) if f.is_dir() for p in f.iterdir() if p.suffix == ".csv")
    return {p.relative_to(paths.folder).as_posix(): file_hash(p) for p in files if p.is_file()}


def run_hashes(paths: RunPaths) -> dict[str, str]:
    """SHA-256 of the runs that the program made itself; they hold times, so they do not repeat."""
    return {p.name: file_hash(p) for p in sorted(paths.runs.glob("*")) if p.is_file() and not p.name.startswith(".")}


def installed() -> dict[str, str]:
    """Python and every installed distribution with its version, sorted by name."""
    found = {d.metadata["Name"].lower().replace("_", "-"): d.version for d in metadata.distributions()}
    return {"python": platform.python_version(), **dict(sorted(found.items()))}


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit and whether tracked files differ from it; None outside a repository or without git."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True,
                              timeout=30).stdout  # fmt: skip

    try:
        commit = git("rev-parse", "HEAD").strip()
        return {"commit": commit, "dirty": bool(git("status", "--porcelain", "--untracked-files=no").strip())}
    except (OSError, subprocess.SubprocessError):
        return None


def _digest(hashes: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(hashes), sort_keys=True).encode()).hexdigest()


def _seeds(params: Params) -> dict[str, Any]:
    return {"run": params.seed, "rule": "each purpose: generator(run seed, pool name, purpose)"}
