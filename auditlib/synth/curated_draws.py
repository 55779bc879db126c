"""Draws of the synthetic pool: every item is drawn again until the panel's counts make it what its plan says.

Answers of an item are codes 0 to 9; the last place of an array of counts, :data:`NONE`, is a draw without an answer.
Arrays of counts have shape (items, models, 11, 2): the last axis is odd and even samples, four of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from auditlib.synth.curated_plan import CLASSES

ANSWERS = 10
NONE = ANSWERS
HALF = 4
_ROUNDS = 400
#: mean and spread of the difficulty (logits) of each class, with the image
_DIFFICULTY = {"ablated_easy": (-4.0, 0.7), "saturated": (-4.0, 0.7), "ablated": (-1.0, 1.3), "confirmed": (-0.3, 1.0),
               "confirmed_zero": (0.0, 1.0), "recalled_zero": (9.0, 0.5), "recalled": (1.2, 1.1),
               "clear": (-1.1, 0.7)}  # fmt: skip
KINDS_OF_DEFECT = ("", "key_error", "ambiguous", "scorer_risk")


@dataclass(frozen=True)
class Frame:
    """What is known of each item before anybody answers, arrays of shape (items,).

    ``kind`` is a place in CLASSES, ``k`` the number of options (0: open answer), ``key`` the code of the key,
    ``defect`` a place in KINDS_OF_DEFECT (what is wrong, as far as it shows in the answers), ``source`` and
    ``capability`` places in the plan's lists.
    """

    kind: np.ndarray
    k: np.ndarray
    key: np.ndarray
    defect: np.ndarray
    source: np.ndarray
    capability: np.ndarray

    def at(self, rows: np.ndarray) -> Frame:
        return Frame(*(getattr(self, n)[rows] for n in ("kind", "k", "key", "defect", "source", "capability")))

    def is_(self, *names: str) -> np.ndarray:
        return np.isin(self.kind, [CLASSES.index(n) for n in names])


@dataclass(frozen=True)
class Shape:
    """How answers to each item fall: difficulty (items,); ``aim`` and ``rest``, shape (items, 10), are the answers of
    those who solve the item and of those who do not; ``silent`` (items,) is the share of draws without an answer."""

    difficulty: np.ndarray
    aim: np.ndarray
    rest: np.ndarray
    silent: np.ndarray


def shapes(rng: np.random.Generator, f: Frame, widen: float = 1.0) -> Shape:
    """Draw how answers fall; ``widen`` spreads the difficulties, for items that are hard to place."""
    n = len(f.kind)
    rows = np.arange(n)
    mean, spread = (np.array([_DIFFICULTY[c][j] for c in CLASSES])[f.kind] for j in (0, 1))
    # a yes/no item that nothing marks lies just below saturation, a marked one near chance
    mean = np.where((f.k == 2) & f.is_("clear"), -2.0, np.where((f.k == 2) & f.is_("recalled"), 0.3, mean))
    difficulty = rng.normal(mean, spread * widen)
    size = np.where(f.k == 0, ANSWERS, f.k)
    valid = np.arange(ANSWERS) < size[:, None]
    wrong = rng.gamma(np.where(f.k == 0, 1.2, 0.7)[:, None], 1.0, (n, ANSWERS)) * valid + 1e-9 * valid
    wrong[rows, f.key] = 0
    other = wrong.argmax(axis=1)
    zero = f.is_("confirmed_zero", "recalled_zero")
    aim = np.zeros((n, ANSWERS))
    aim[rows, f.key] = 1
    silent = rng.beta(1, 50, n)
    rest = wrong / wrong.sum(axis=1, keepdims=True)
    # wrong key: those who solve the item give another answer, now and then someone errs into the key
    bad = f.defect == 1
    aim[bad] = 0
    aim[rows[bad], other[bad]] = 1
    rest[bad] *= 0.8
    rest[rows[bad], f.key[bad]] = np.where(zero[bad], 0, 0.2)
    # two answers can be defended
    two = f.defect == 2
    part = rng.uniform(0.35, 0.65, n)
    aim[rows[two], f.key[two]] = part[two]
    aim[rows[two], other[two]] = 1 - part[two]
    # the right answer is written in ways that the scorer does not know, or is not read at all
    loose = f.defect == 3
    aim[loose] = 0.65 * rest[loose]
    aim[rows[loose], f.key[loose]] = 0.35
    silent = np.where(loose, rng.uniform(0.42, 0.6, n), silent)
    unsolved = zero & (f.defect != 1)
    aim[unsolved] = rest[unsolved]
    return Shape(difficulty, _normal(aim), _normal(rest), silent)


def _normal(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum(axis=1, keepdims=True)


def draw(rng: np.random.Generator, shape: Shape, skill: np.ndarray) -> np.ndarray:
    """Counts of models with ``skill`` (items, models) in logits, shape (items, models, 11, 2), uint8."""
    solve = expit(skill - shape.difficulty[:, None])[:, :, None]
    p = np.empty((*skill.shape, ANSWERS + 1))
    p[:, :, :ANSWERS] = solve * shape.aim[:, None] + (1 - solve) * shape.rest[:, None]
    p[:, :, :ANSWERS] *= (1 - shape.silent)[:, None, None]
    p[:, :, NONE] = shape.silent[:, None]
    return np.stack([rng.multinomial(HALF, p) for _ in range(2)], axis=-1).astype(np.uint8)


def hits(counts: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Correct draws, shape (items, models)."""
    return counts[np.arange(len(key)), :, key].sum(axis=2, dtype=np.int64)


def marked(counts: np.ndarray, key: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which items an anomaly rule marks for sure, and which it might: thresholds with a margin on either side.

    Parameters
    ----------
    counts : the panel's, shape (items, models, 11, 2). key, k : shape (items,).
    """
    n, models = counts.shape[:2]
    rows = np.arange(n)
    by_model = counts.sum(axis=3, dtype=np.int64)
    total = by_model.sum(axis=1)
    answers = total[:, :ANSWERS]
    given = np.maximum(answers.sum(axis=1), 1)
    share = answers / given[:, None]
    ranked = np.sort(share, axis=1)
    top, gap, mass = ranked[:, -1], ranked[:, -1] - ranked[:, -2], ranked[:, -1] + ranked[:, -2]
    modal = answers.argmax(axis=1)
    each = counts[:, :, :ANSWERS]
    parts = (each[..., 0], each[..., 1], by_model[:, :, :ANSWERS])
    backing = np.min([(p[rows, :, modal] == p.max(axis=2)).mean(axis=1) for p in parts], axis=0)
    halves = counts.sum(axis=1, dtype=np.int64)[:, :ANSWERS]
    steady = np.all([halves[:, :, h].argmax(axis=1) == modal for h in (0, 1)], axis=0)
    floor = np.min([halves[rows, modal, h] / np.maximum(halves[:, :, h].sum(axis=1), 1) for h in (0, 1)], axis=0)
    entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1)
    seen = np.maximum((answers > 0).sum(axis=1), 2)
    spread_low = entropy / np.log(np.where(k == 0, 8, np.maximum(k, 2)))
    spread_high = entropy / np.log(np.minimum(seen, np.where(k == 0, 8, np.maximum(k, 2))))
    correct = total[rows, key]
    read = 1 - total[:, NONE] / (models * 2 * HALF)
    against = modal != key
    sure = (correct == 0) | (against & steady & (floor >= 0.55) & (backing >= 0.7)) | (spread_low >= 0.84)
    silent = total[:, NONE] < np.sort(answers, axis=1)[:, -2]
    sure |= ((gap <= 0.07) & (mass >= 0.64) & silent) | (read <= 0.68)
    soft = (k > 0) & (correct / (models * 2 * HALF) <= 0.55 / np.maximum(k, 1))
    might = (correct == 0) | soft | (against & (top >= 0.45)) | (spread_high >= 0.77)
    might |= ((gap <= 0.13) & (mass >= 0.56)) | (read <= 0.80)
    return sure, might


def panel_fits(f: Frame, counts: np.ndarray) -> np.ndarray:
    """Whether the panel's counts make each item what its class says, shape (items,)."""
    correct = hits(counts, f.key).sum(axis=1)
    sure, might = marked(counts, f.key, f.k)
    above = 10 * correct > 9 * counts.shape[1] * 2 * HALF
    zero = correct == 0
    wanted_zero = f.is_("confirmed_zero", "recalled_zero")
    good = above == f.is_("ablated_easy", "saturated")
    good &= zero == wanted_zero
    good &= ~f.is_("confirmed", "recalled") | sure
    return good & ~(f.is_("clear") & might)


def fill(rng: np.random.Generator, f: Frame, make: Callable, fits: Callable) -> tuple[Shape, np.ndarray]:
    """Draw shapes and counts of all items, again and again for those that do not fit.

    Parameters
    ----------
    make : (generator, Shape, places of the items) -> counts. fits : (Frame, counts) -> boolean per item.
    """
    todo = np.arange(len(f.kind))
    shape, counts = None, None
    for turn in range(_ROUNDS):
        part = f.at(todo)
        new = shapes(rng, part, 1 + turn / 20)
        drawn = make(rng, new, todo)
        good = fits(part, drawn)
        if shape is None:
            shape, counts = new, drawn
        else:
            for name in ("difficulty", "aim", "rest", "silent"):
                getattr(shape, name)[todo[good]] = getattr(new, name)[good]
            counts[todo[good]] = drawn[good]
        todo = todo[~good]
        if not len(todo):
            return shape, counts
    raise RuntimeError(f"{len(todo)} items of classes {sorted({CLASSES[c] for c in f.kind[todo]})} were never drawn")


def level(rng: np.random.Generator, f: Frame, counts: np.ndarray, rows: np.ndarray, columns: np.ndarray, change: int,
          fits: Callable | None = None) -> None:  # fmt: skip
    """Move single draws into the key, or out of it, until ``change`` more of them are correct; in place.

    Parameters
    ----------
    rows : places of the items that may change. columns : places of the models.
    fits : (Frame, counts) -> boolean per item; a draw whose item would no longer fit stays where it is.
    """
    left = abs(change)
    for _ in range(_ROUNDS):
        if not left:
            return
        some = rng.choice(rows, min(left, len(rows)), replace=False)
        column, half = rng.choice(columns, len(some)), rng.integers(0, 2, len(some))
        cell = counts[some, column, :, half].astype(np.int64)
        key = f.key[some]
        at = np.arange(len(some))
        right, other = cell[at, key], cell.copy()
        other[at, key], other[:, NONE] = 0, 0
        most = other.argmax(axis=1)
        # a solver's slip goes to the answer that is wrong most often in the item
        item = counts[some].sum(axis=(1, 3), dtype=np.int64)[:, :ANSWERS]
        item[at, key] = -1
        source, target = (most, key) if change > 0 else (key, item.argmax(axis=1))
        possible = (other[at, most] > 0) if change > 0 else (right > 0)
        some, column, half, source, target = (x[possible] for x in (some, column, half, source, target))
        before = counts[some].copy()
        counts[some, column, source, half] -= 1
        counts[some, column, target, half] += 1
        good = np.ones(len(some), bool) if fits is None else fits(f.at(some), counts[some])
        counts[some[~good]] = before[~good]
        left -= int(good.sum())
    raise RuntimeError(f"{left} draws could not be moved")
