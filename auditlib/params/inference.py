"""The ``inference`` block: runs that the program makes itself."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, model_validator

from auditlib.frames import CONDITIONS
from auditlib.params.base import Address, ServedModel, Strict, one_address

#: settings of ``vllm.LLM`` by their names there; a name unlike all of these is left to vLLM to judge
ENGINE = (
    "allowed_local_media_path", "async_scheduling", "block_size", "calculate_kv_scales", "chat_template",
    "code_revision", "compilation_config", "config_format", "cpu_offload_gb", "data_parallel_size",
    "disable_custom_all_reduce", "disable_mm_preprocessor_cache", "disable_log_stats", "disable_sliding_window",
    "distributed_executor_backend", "download_dir", "dtype", "enable_chunked_prefill", "enable_expert_parallel",
    "enable_lora", "enable_prefix_caching", "enable_sleep_mode", "enforce_eager", "generation_config",
    "gpu_memory_utilization", "hf_overrides", "hf_token", "kv_cache_dtype", "kv_cache_memory_bytes",
    "limit_mm_per_prompt", "load_format", "logits_processors", "logprobs_mode", "max_logprobs", "max_model_len",
    "max_num_batched_tokens", "max_num_seqs", "max_parallel_loading_workers", "mm_encoder_tp_mode",
    "mm_processor_cache_gb", "mm_processor_kwargs", "model_impl", "num_gpu_blocks_override",
    "override_generation_config", "pipeline_parallel_size", "quantization", "reasoning_parser", "revision",
    "rope_scaling", "rope_theta", "seed", "skip_mm_profiling", "skip_tokenizer_init", "speculative_config",
    "swap_space",
    "tensor_parallel_size", "tokenizer", "tokenizer_mode", "tokenizer_revision", "trust_remote_code",
)  # fmt: skip
#: settings of the engine that the block has names of its own for
_PARALLEL = {"tensor_parallel_size": "tensor_parallel", "pipeline_parallel_size": "pipeline_parallel"}


def _engine(settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Settings whose names are no slip of the pen, and whose numbers of devices are numbers."""
    if "model" in settings:
        raise ValueError("inference.engine names a model; models stand in inference.models")
    if "hf_token" in settings:
        raise ValueError("inference.engine holds a token, and results state the params; set HF_TOKEN instead")
    for name, value in settings.items():
        if name not in ENGINE and (near := difflib.get_close_matches(name, ENGINE, 1, 0.75)):
            raise ValueError(f"inference.engine has no setting {name!r}; did you mean {near[0]!r}?")
        if name in _PARALLEL and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"inference.engine.{name} is {value!r}; a whole number of at least 1 is needed")
    return settings


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
    engine as it is: ``{dtype: float32, max_model_len: 8192}``; ``tensor_parallel`` and ``pipeline_parallel`` may stand
    there too, by vLLM's names. ``base_urls`` are several endpoints that serve the same models and share the questions;
    ``concurrency``, ``rpm`` and ``tpm`` are those of all together.
    """

    client: Literal["openai", "vllm"] = "openai"
    models: list[ServedModel] = Field(min_length=1)
    base_url: Address | None = None
    base_urls: list[Address] = Field(default_factory=list)
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
    engine: Annotated[dict[str, JsonValue], AfterValidator(_engine)] = Field(default_factory=dict)
    judge: JudgeParams | None = None

    @property
    def parallel(self) -> dict[str, int]:
        """Devices that share a layer and the layers, by vLLM's names."""
        return {theirs: int(self.engine.get(theirs, getattr(self, own))) for theirs, own in _PARALLEL.items()}  # type: ignore[arg-type]

    @property
    def devices(self) -> int:
        """GPUs that one model is spread over, with client vllm."""
        return self.parallel["tensor_parallel_size"] * self.parallel["pipeline_parallel_size"]

    def addresses(self, model: ServedModel) -> list[str | None]:
        """Endpoints that serve a model: its own, else those of all models; None leaves it to the client."""
        if model.base_urls or model.base_url:
            return [*model.base_urls] or [model.base_url]
        return [*self.base_urls] or [self.base_url]

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
        for theirs, own in _PARALLEL.items():
            if theirs in self.engine and getattr(self, own) not in (1, self.engine[theirs]):
                raise ValueError(f"inference.{own} is {getattr(self, own)} and inference.engine.{theirs} is "
                                 f"{self.engine[theirs]}: leave one out")  # fmt: skip
        one_address(self.base_url, self.base_urls)
        if self.replay is not None and (self.base_url or self.base_urls or self.client != "openai"):
            raise ValueError("inference.replay plays recorded replies: leave base_url and client out")
        return self
