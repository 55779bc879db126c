"""What a filter was shown to do, for which judge under which prompt, and when that expires."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditlib.errors import AuditError
from auditlib.judges.decision_data import CHOSEN, Choices
from auditlib.paths import atomic

#: a card holds for exactly these; a change in any of them ends it
BINDING = ("judge", "version", "prompt_sha256", "order_scheme", "filter", "generation_sha256")


@dataclass(frozen=True)
class ValidityCard:
    """A filter's result and what it is bound to.

    Attributes
    ----------
    judge : name of the model. version : what its server calls itself (model and fingerprint), or a hash of its weights.
    prompt_sha256 : of the text put to the judge, without the candidates. generation_sha256 : of the sampling settings.
    order_scheme : how orders were made, such as ``cyclic, 1 repeat``. filter : name of the rule.
    date : of the calls, ``YYYY-MM-DD``. prompts : how many. result : numbers by name, such as coverage and gains.
    expires : last day on which the card holds, or empty.
    """

    judge: str
    version: str
    prompt_sha256: str
    order_scheme: str
    filter: str
    date: str
    prompts: int
    result: Mapping[str, float] = field(default_factory=dict)
    generation_sha256: str = ""
    expires: str = ""


@dataclass(frozen=True)
class SameJudge:
    """Two sets of calls of a judge compared: ``slots`` and ``candidates`` are permutation p-values.

    ``pairs`` calls were compared, same prompt and same order in both sets; ``left_out`` had no counterpart.
    """

    slots: float
    candidates: float
    pairs: int
    left_out: int

    @property
    def changed(self) -> bool:
        """Whether either test says so at 5 %, Bonferroni over the two."""
        return min(self.slots, self.candidates) <= 0.025


def text_sha256(text: str) -> str:
    """Hash of a text, such as a prompt's template."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_card(card: ValidityCard, path: str | Path) -> Path:
    """Write a card as JSON."""
    path = Path(path)
    with atomic(path) as file:
        Path(file).write_text(json.dumps(asdict(card), indent=2, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
    return path


def read_card(path: str | Path) -> ValidityCard:
    """Read a card.

    Raises
    ------
    AuditError
        There is no such file, it is no JSON, or it lacks or adds a field.
    """
    path = Path(path)
    try:
        said = json.loads(path.read_text("utf-8"))
    except OSError as e:
        raise AuditError(f"cannot be opened ({e.strerror or e})", file=path, mend="check the path") from None
    except ValueError:
        raise AuditError("this is no JSON", file=path, mend="write the card again") from None
    names = {f.name for f in fields(ValidityCard)}
    needed = {"judge", "version", "prompt_sha256", "order_scheme", "filter", "date", "prompts"}
    if not isinstance(said, dict) or needed - set(said) or set(said) - names:
        wrong = sorted((needed - set(said)) | (set(said) - names)) if isinstance(said, dict) else ["everything"]
        raise AuditError(f"this is no validity card ({', '.join(wrong)})", file=path, mend="write the card again")
    return ValidityCard(**said)


def why_expired(card: ValidityCard, now: Mapping[str, str], today: str, same: SameJudge | None = None) -> list[str]:
    """Why a card no longer holds, as sentences; empty where it does.

    Parameters
    ----------
    now : the present value of each of :data:`BINDING`; one that is left out counts as changed, for nobody knows.
    today : ``YYYY-MM-DD``. same : a comparison of present calls with those of the card.
    """
    reasons = []
    for name in BINDING:
        was, is_ = getattr(card, name), now.get(name)
        if was != is_:
            said = "is not known any more" if is_ is None else f"was {was!r}, is {is_!r}"
            reasons.append(f"{name.replace('_', ' ')} {said}")
    if card.expires and today > card.expires:
        reasons.append(f"the card held until {card.expires}")
    if today < card.date:
        reasons.append(f"the card is dated {card.date}, after today")
    if same is not None and same.changed:
        least = min(same.slots, same.candidates)
        reasons.append(f"the judge chooses otherwise than it did (p = {least:.2g} over {same.pairs} pairs of calls)")
    return reasons


def same_judge(old: Choices, new: Choices, *, rng: np.random.Generator, draws: int = 2_000) -> SameJudge:
    """Test whether two sets of calls come from one judge, on slots and on candidates.

    Both sets must number prompts and candidates alike (one :class:`~auditlib.judges.decision_data.Prompts`).

    Notes
    -----
    Calls of the same prompt and order are paired; under the same judge each pair may change sides, which is permuted.
    ``slots``: Pearson's chi-square of the table set x (number of slots, slot). ``candidates``: squared distance of the
    two choice distributions within each prompt, summed over prompts (maximum mean discrepancy with the kernel "same
    prompt, same candidate"). ``p = (1 + g) / (1 + draws)``.
    """
    a, b = (c.at(c.state == CHOSEN) for c in (old, new))
    keys = [{}, {}]
    for side, calls in enumerate((a, b)):
        for i, key in enumerate(zip(calls.prompt.tolist(), map(tuple, calls.shown.tolist()), calls.repeat.tolist())):
            keys[side].setdefault(key, i)
    shared = [k for k in keys[0] if k in keys[1]]
    left = len(a.prompt) + len(b.prompt) - 2 * len(shared)
    if not shared:
        return SameJudge(float("nan"), float("nan"), 0, left)
    i, j = (np.array([keys[s][k] for k in shared]) for s in (0, 1))
    width = int(max(a.shown.shape[1], b.shown.shape[1]))
    slot = np.column_stack([a.slots[i] * width + a.slot[i], b.slots[j] * width + b.slot[j]])
    cell = np.column_stack([a.prompt[i] * width + a.candidate[i], b.prompt[j] * width + b.candidate[j]])
    ps = [_swap(np.unique(x, return_inverse=True)[1].reshape(-1, 2), f, rng, draws)
          for x, f in ((slot, _chi_square), (cell, _distance))]  # fmt: skip
    return SameJudge(*ps, pairs=len(shared), left_out=left)


def _swap(codes: NDArray, statistic, rng: np.random.Generator, draws: int) -> float:
    size = int(codes.max()) + 1
    one, two = codes.T
    difference = np.zeros(size)
    np.add.at(difference, one, 1.0)
    np.add.at(difference, two, -1.0)
    both = np.bincount(codes.ravel(), minlength=size).astype(float)
    seen, moving = statistic(difference, both), one != two
    one, two = one[moving], two[moving]
    g = 0
    for _ in range(draws):
        sign = rng.choice((-1.0, 1.0), len(one))
        d = np.bincount(one, sign, size) - np.bincount(two, sign, size)
        g += statistic(d, both) >= seen - 1e-9
    return (1 + g) / (1 + draws)


def _chi_square(difference: NDArray, both: NDArray) -> float:
    # two rows of equal totals: sum (o - e)^2 / e over both is (o1 - o2)^2 / (o1 + o2)
    return float((difference**2 / np.maximum(both, 1.0)).sum())


def _distance(difference: NDArray, both: NDArray) -> float:
    return float((difference**2).sum())
