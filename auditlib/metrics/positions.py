"""Where the key sits, which letters models choose, and what a reader of positions or lengths would score."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from auditlib.detectors.answer_options_distribution import needs
from auditlib.frames import option_name
from auditlib.metrics.rows import noted, row
from auditlib.pool import Pool
from auditlib.stats.positions import key_positions
from auditlib.stats.rates import share_interval


def position_rows(pool: Pool) -> list[dict[str, Any]]:
    """Histogram of key letters against uniform over the options shown, its p, letters by model, naive readers."""
    if needs(pool):
        return []
    key, k = pool.key_codes, np.nan_to_num(pool.k).astype(int)
    judged = (key >= 0) & (k > key) & ~_gaps(pool)
    if not judged.any():
        return []
    key, k, n = key[judged], k[judged], int(judged.sum())
    cluster = None if pool.cluster is None else pool.cluster[judged]
    p = key_positions(key, k, rng=pool.rng("positions"))
    rows = [
        row(
            "key_position",
            n=n,
            estimate=p.statistic,
            p=p.p,
            p_method=p.p_method,
            family="key_position",
            note="chi-square distance of key letters from uniform over the options shown",
        )
    ]
    for i, (seen, expected) in enumerate(zip(p.observed.tolist(), p.expected.tolist())):
        level = option_name(i)
        rows.append(
            row(
                "key_letter_share",
                noted(share_interval(key == i, cluster)),
                level=level,
                n=n,
                estimate=seen / n,
                null=expected / n,
                excess=(seen - expected) / n,
            )
        )
        rows.append(row("always_letter_accuracy", level=level, n=n, estimate=seen / n, null=expected / n))
    return rows + _models(pool, judged, len(p.observed)) + _longest(pool, judged)


def _gaps(pool: Pool) -> np.ndarray:
    """Items that lost an option between others: their letters are not the first k, so they take no part."""
    if "options" not in pool.items:
        return np.zeros(len(pool.items), bool)
    texts = [
        [bool(str(t)) for t in o] if isinstance(o, list | tuple | np.ndarray) else [] for o in pool.items["options"]
    ]
    return np.array([any(b and not a for a, b in pairwise(t)) for t in texts], bool)


def _models(pool: Pool, judged: np.ndarray, letters: int) -> list[dict[str, Any]]:
    rows = []
    for condition in (c for c in ("full", "blind") if c in pool.letters):
        codes = pool.letters[condition][judged]
        for j, model in enumerate(pool.model_names):
            said = codes[:, j][codes[:, j] >= 0]
            for i in range(letters if len(said) else 0):
                rows.append(
                    row(
                        "model_letter_share",
                        models=model,
                        level=f"{option_name(i)} {condition}",
                        n=len(said),
                        estimate=float(np.mean(said == i)),
                    )
                )
    return rows


def _longest(pool: Pool, judged: np.ndarray) -> list[dict[str, Any]]:
    """How often the key is the single longest option, against chance."""
    if "options" not in pool.items:
        return []
    hit, chance, n, hits, places = 0, 0.0, 0, [], []
    options_of, keys = pool.items["options"].to_numpy()[judged], pool.key_codes[judged].tolist()
    for place, options, key in zip(np.flatnonzero(judged).tolist(), options_of, keys):
        if not isinstance(options, list | tuple | np.ndarray):
            continue
        length = [len(str(t)) for t in options]
        shown = [i for i, c in enumerate(length) if c]
        longest = [i for i in shown if length[i] == max(length)]
        if len(shown) < 2 or len(longest) != 1:
            continue
        n, chance = n + 1, chance + 1 / len(shown)
        hit += longest[0] == key
        hits.append(longest[0] == key)
        places.append(place)
    if not n:
        return []
    return [
        row(
            "longest_option_rate",
            noted(share_interval(hits, None if pool.cluster is None else pool.cluster[places])),
            n=n,
            estimate=hit / n,
            null=chance / n,
            excess=(hit - chance) / n,
            note="items whose longest option is unique",
        )
    ]
