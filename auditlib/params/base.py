"""What the blocks of a params file share: unknown keys are refused, shares, addresses, names of served models."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


#: a number in [0, 1]
Share = Annotated[float, Field(ge=0, le=1)]


def _address(url: str) -> str:
    """An address alone: results state it, so that nothing secret may travel in it."""
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or not rest or re.search(r"[@?#\s]", rest):
        raise ValueError("an address such as https://host/v1 is needed, without user, query or key; the key belongs in "
                         "the environment variable that api_key_env names")  # fmt: skip
    return url


Address = Annotated[str, AfterValidator(_address)]


class ServedModel(Strict):
    """A model to be asked: its name in the pool, and what the server calls it where that differs.

    ``base_urls`` are several endpoints that serve it and share its questions.
    """

    name: str
    served_as: str | None = None
    base_url: Address | None = None
    base_urls: list[Address] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_way(self) -> ServedModel:
        one_address(self.base_url, self.base_urls)
        return self


def one_address(base_url: str | None, base_urls: list[str]) -> None:
    """Raise a ValueError where both are given, or an address comes twice."""
    if base_url and base_urls:
        raise ValueError("base_url and base_urls are both given: leave one out")
    if twice := sorted({u for u in base_urls if base_urls.count(u) > 1}):
        raise ValueError(f"base_urls lists {twice[0]!r} twice")
