"""A params file: one YAML per pool, checked before anything runs."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from auditlib.errors import AuditError
from auditlib.frames import CONDITIONS

EXTRACTORS = Literal["letters", "boxed", "option_text", "yesno", "numeric"]
#: fields of the data block that are paths, relative to the YAML
DATA_PATHS = ("folder", "blind_folder", "table", "matrix", "items", "dataset")
TOOLKITS = Literal["vlmevalkit", "lmms-eval", "lm-eval", "inspect", "every-eval-ever"]
STAGES = ("10_audit", "80_figures", "90_tables")
#: the stage that calls a model; part of a pool whose params have an ``inference`` block
BLIND_RUN = "00_blind_run"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataParams(_Strict):
    """Where the runs lie: exactly one of ``embedded``, ``folder``, ``table``, ``matrix``; or a ``dataset`` alone, where
    the ``inference`` block makes all runs, ``full`` among them.

    Paths are relative to the YAML. ``columns`` maps our column names to the file's (``{item: idx, key: gold}``);
    ``item_columns`` does the same for the ``items`` file. ``prefixes`` maps a prefix of a matrix's column names to a
    condition; ``""`` or an unlisted prefix is ``full``. ``rows`` says what a row of a matrix is.

    In a folder, ``conditions`` maps patterns of file paths (relative to the folder, ``*`` also crosses ``/``) to
    conditions or to ``skip``, first match wins, and ``blind_benchmark`` is the benchmark's (task's) name in the runs
    without image, where it differs. ``where`` keeps the rows whose column has the value: ``{split: validation}``.
    """

    embedded: str | None = None
    folder: Path | None = None
    toolkit: TOOLKITS | None = None
    blind_folder: Path | None = None
    blind_benchmark: str | None = None
    conditions: dict[str, str] = Field(default_factory=dict)
    where: dict[str, str] = Field(default_factory=dict)
    table: Path | None = None
    columns: dict[str, str] = Field(default_factory=dict)
    condition: str = "full"
    sheet: str | None = None
    matrix: Path | None = None
    rows: Literal["models", "items"] = "models"
    prefixes: dict[str, str] = Field(default_factory=dict)
    items: Path | None = None
    item_columns: dict[str, str] = Field(default_factory=dict)
    dataset: Path | None = None

    @model_validator(mode="after")
    def _conditions_known(self) -> DataParams:
        unknown = sorted(set(self.conditions.values()) - {*CONDITIONS, "skip"})
        if unknown:
            raise ValueError(f"data.conditions names {unknown[0]!r}; conditions are {', '.join(CONDITIONS)}, or skip")
        return self

    @model_validator(mode="after")
    def _one_source(self) -> DataParams:
        given = [k for k in ("embedded", "folder", "table", "matrix") if getattr(self, k) is not None]
        given = given or (["dataset"] if self.dataset is not None else [])
        if len(given) != 1:
            raise ValueError(f"data needs exactly one of embedded, folder, table, matrix; it has {given or 'none'}")
        for key, source in (
            ("toolkit", ("folder",)),
            ("blind_folder", ("folder",)),
            ("blind_benchmark", ("folder",)),
            ("conditions", ("folder",)),
            ("where", ("folder", "table")),
            ("columns", ("table", "matrix")),
            ("sheet", ("table", "matrix")),
            ("item_columns", ("folder", "table", "matrix")),
            ("items", ("folder", "table", "matrix")),
            ("prefixes", ("table", "matrix")),
            ("dataset", ("embedded", "folder", "table", "dataset")),
        ):
            if getattr(self, key) and given[0] not in source:
                raise ValueError(f"data.{key} has no effect with data.{given[0]}; it goes with {' or '.join(source)}")
        return self

    @property
    def has_runs(self) -> bool:
        """Whether there are runs to read; a dataset alone has none."""
        return any(v is not None for v in (self.embedded, self.folder, self.table, self.matrix))


class ModelParams(_Strict):
    """What a results folder cannot tell about a model."""

    name: str
    family: str | None = None
    provider: str | None = None
    tier: str | None = None
    params_b: float | None = None
    open: bool | None = None
    role: str | None = None
    text_base: str | None = None


class DesignParams(_Strict):
    """Design labels for the calibration probe: an item column and the label that is the positive class."""

    column: str = "stratum"
    positive: str


class AuditParams(_Strict):
    """Settings of the audit; the defaults are those of the paper.

    ``tolerance`` is the largest relative difference at which an open numeric answer still equals its key.
    """

    exact: list[EXTRACTORS] = Field(default_factory=lambda: ["letters"], min_length=1)
    failed: Literal["missing", "wrong"] = "missing"
    tolerance: float = Field(0.0, ge=0, le=1)
    permutations: int = Field(999, ge=99, le=1_000_000)
    bootstrap: int = Field(20_000, ge=200, le=1_000_000)
    splits: int = Field(20, ge=2, le=1000)
    options_by_stratum: dict[str, Annotated[int, Field(ge=2, le=26)]] = Field(default_factory=dict)
    exclude_models: list[str] = Field(default_factory=list)
    keys_from: str | None = None
    design: DesignParams | None = None


def _address(url: str) -> str:
    """An address alone: results state it, so that nothing secret may travel in it."""
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest or re.search(r"[@?#\s]", rest):
        raise ValueError("an address such as https://host/v1 is needed, without user, query or key; the key belongs in "
                         "the environment variable that api_key_env names")  # fmt: skip
    return url


Address = Annotated[str, AfterValidator(_address)]


class ServedModel(_Strict):
    """A model to be asked: its name in the pool, and what the server calls it where that differs."""

    name: str
    served_as: str | None = None
    base_url: Address | None = None


class JudgeParams(_Strict):
    """A model that reads replies: it sees the question, the options and the reply, never the key."""

    model: str
    base_url: Address | None = None
    api_key_env: str = "OPENAI_API_KEY"
    repeats: int = Field(1, ge=1, le=20)


class InferenceParams(_Strict):
    """Runs that the program makes itself; prices are per million tokens, ``timeout`` in seconds.

    ``replay`` names an embedded pool whose recorded replies a local server plays back, in place of ``base_url``.
    ``items`` is the benchmark's own table with pictures (by default ``data.dataset``).
    """

    client: Literal["openai", "vllm"] = "openai"
    models: list[ServedModel] = Field(min_length=1)
    base_url: Address | None = None
    api_key_env: str = "OPENAI_API_KEY"
    replay: str | None = None
    items: Path | None = None
    conditions: list[str] = Field(default_factory=lambda: ["blind"], min_length=1)
    prompt_mode: Literal["silent", "told_to_guess"] = "silent"
    layout: Literal["vlmevalkit", "reasoning"] = "vlmevalkit"
    placeholder: Literal["keep", "remove"] = "keep"
    wrong_image: Literal["stratum", "any"] = "stratum"
    samples: int = Field(1, ge=1, le=1000)
    temperature: float | None = Field(0.0, ge=0)
    max_tokens: int | None = Field(512, ge=1)
    top_p: float | None = Field(None, gt=0, le=1)
    generation_seed: int | None = None
    reasoning_effort: str | None = None
    logprobs: bool = False
    concurrency: int = Field(16, ge=1, le=4096)
    rpm: float | None = Field(None, gt=0)
    tpm: float | None = Field(None, gt=0)
    timeout: float = Field(120, gt=0)
    max_attempts: int = Field(6, ge=1, le=100)
    price_in: float | None = Field(None, ge=0)
    price_out: float | None = Field(None, ge=0)
    tensor_parallel: int = Field(1, ge=1)
    pipeline_parallel: int = Field(1, ge=1)
    judge: JudgeParams | None = None

    @model_validator(mode="after")
    def _known(self) -> InferenceParams:
        unknown = sorted(set(self.conditions) - set(CONDITIONS))
        if unknown:
            raise ValueError(f"inference.conditions names {unknown[0]!r}; conditions are {', '.join(CONDITIONS)}")
        names = [m.name for m in self.models]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"inference.models lists {twice[0]!r} twice")
        if self.replay is not None and (self.base_url or self.client != "openai"):
            raise ValueError("inference.replay plays recorded replies: leave base_url and client out")
        return self


class Params(_Strict):
    """One pool: a benchmark and a set of models with their runs."""

    pool: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    benchmark: str = Field(min_length=1)
    data: DataParams
    models: list[ModelParams] = Field(default_factory=list)
    judge: str | None = None
    seed: int = Field(20261129, ge=0)
    notebooks: list[Literal["00_blind_run", "10_audit", "80_figures", "90_tables"]] = Field(
        default_factory=lambda: list(STAGES), min_length=1
    )
    audit: AuditParams = Field(default_factory=AuditParams)
    inference: InferenceParams | None = None
    source: Path | None = Field(default=None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _stages(cls, raw: Any) -> Any:
        """The blind run is a stage by itself where the params describe one and list no notebooks."""
        if isinstance(raw, dict) and raw.get("inference") is not None and "notebooks" not in raw:
            return raw | {"notebooks": [BLIND_RUN, *STAGES]}
        return raw

    @model_validator(mode="after")
    def _blind_run_described(self) -> Params:
        if BLIND_RUN in self.notebooks and self.inference is None:
            raise ValueError(f"notebooks lists {BLIND_RUN}, which needs an inference block")
        if not self.data.has_runs and (self.inference is None or "full" not in self.inference.conditions):
            raise ValueError("data names no runs: it needs one of embedded, folder, table, matrix, or the inference "
                             "block must ask for the condition full")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _models_once(self) -> Params:
        names = [m.name for m in self.models]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"models lists {twice[0]!r} twice")
        return self


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
    params = params.model_copy(update={"source": path, "data": data.model_copy(update=located)})
    if params.inference is not None and params.inference.items is not None:
        items = (base / params.inference.items).resolve()
        params = params.model_copy(update={"inference": params.inference.model_copy(update={"items": items})})
    return params


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
