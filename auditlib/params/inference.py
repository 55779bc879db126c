"""The ``inference`` block: runs that the program makes itself."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from auditlib.frames import CONDITIONS
from auditlib.params.base import Address, ServedModel, Strict


class JudgeParams(Strict):
    """A model that reads replies: it sees the question, the options and the reply, never the key."""

    model: str
    base_url: Address | None = None
    api_key_env: str = "OPENAI_API_KEY"
    repeats: int = Field(1, ge=1, le=20)


class InferenceParams(Strict):
    """Runs that the program makes itself; prices are per million tokens, ``timeout`` in seconds.

    ``replay`` names an embedded pool whose recorded replies a local server plays back, in place of ``base_url``.
    ``items`` is the benchmark's own table with pictures (by default ``data.dataset``). ``engine`` goes to the vLLM
    engine as it is: ``{dtype: float32, max_model_len: 8192}``.
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
    engine: dict[str, str | int | float | bool] = Field(default_factory=dict)
    judge: JudgeParams | None = None

    @property
    def devices(self) -> int:
        """GPUs that one model is spread over, with client vllm."""
        return self.tensor_parallel * self.pipeline_parallel

    @model_validator(mode="after")
    def _known(self) -> InferenceParams:
        unknown = sorted(set(self.conditions) - set(CONDITIONS))
        if unknown:
            raise ValueError(f"inference.conditions names {unknown[0]!r}; conditions are {', '.join(CONDITIONS)}")
        names = [m.name for m in self.models]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"inference.models lists {twice[0]!r} twice")
        if self.engine and self.client != "vllm":
            raise ValueError("inference.engine has no effect with client openai; it goes with client vllm")
        if self.replay is not None and (self.base_url or self.client != "openai"):
            raise ValueError("inference.replay plays recorded replies: leave base_url and client out")
        return self
