"""How numbers are printed, in one place: shares as percent, excesses in percentage points, p values, intervals.

Every function returns text with a real minus sign and gives ``–`` for a missing number.
"""

from __future__ import annotations

import math

NONE = "–"


def _missing(x: object) -> bool:
    try:
        return x is None or math.isnan(float(x))
    except (TypeError, ValueError):
        return True


def _signed(x: float, digits: int) -> str:
    text = f"{x:.{digits}f}"
    if float(text) == 0:
        return text.lstrip("-")
    return text.replace("-", "−")


def pct(share: float, digits: int = 1) -> str:
    """A share in [0, 1] as percent without the sign: ``20.2``."""
    return NONE if _missing(share) else _signed(100 * float(share), digits)


def percent(share: float, digits: int = 1) -> str:
    """A share in [0, 1] as percent with the sign: ``20.2%``."""
    return NONE if _missing(share) else f"{pct(share, digits)}%"


def pp(difference: float, digits: int = 1) -> str:
    """A difference of shares in percentage points, signed: ``+3.2``."""
    if _missing(difference):
        return NONE
    text = _signed(100 * float(difference), digits)
    return text if text.startswith("−") or float(text) == 0 else f"+{text}"


def points(difference: float, digits: int = 1) -> str:
    """Like :func:`pp`, with the unit: ``+3.2 pp``."""
    return NONE if _missing(difference) else f"{pp(difference, digits)} pp"


def p_value(p: float) -> str:
    """A p value: three decimals down to .001, then two significant digits, then powers of ten.

    ``.043``, ``.001``, ``1.3e−4``; below 1e-15 only the order is printed (``< 1e−15``), since no larger precision
    of the double arithmetic behind it is claimed.
    """
    if _missing(p):
        return NONE
    p = float(p)
    if p >= 0.9995:
        return "1.000"
    if p >= 0.00095:
        return f"{p:.3f}".lstrip("0")
    if p < 1e-15:
        return "< 1e−15"
    mantissa, exponent = f"{p:.1e}".split("e")
    return f"{mantissa}e−{abs(int(exponent))}"


def p_says(p: float) -> str:
    """``p = .043`` or ``p < 1e−15``."""
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def number(x: float, digits: int = 3) -> str:
    """A plain number with fixed decimals."""
    return NONE if _missing(x) else _signed(float(x), digits)


def count(x: float) -> str:
    """A count, thousands set apart from 10,000 on."""
    if _missing(x):
        return NONE
    n = round(float(x))
    return (f"{n:,}" if abs(n) >= 10_000 else str(n)).replace("-", "−")


def general(x: object) -> str:
    """A number of unknown kind: whole numbers as counts, others with four significant digits."""
    if isinstance(x, bool):
        return "yes" if x else "no"
    if _missing(x):
        return NONE if x is None or isinstance(x, float) else str(x)
    value = float(x)
    if value == int(value) and abs(value) < 1e15:
        return count(value)
    return f"{value:.4g}".replace("-", "−")


def interval(low: float, high: float, show=pct) -> str:
    """``[18.2, 22.3]``."""
    return NONE if _missing(low) or _missing(high) else f"[{show(low)}, {show(high)}]"


def span(low: float, high: float, show=pct) -> str:
    """A range: ``19.4 to 34.4``."""
    return NONE if _missing(low) or _missing(high) else f"{show(low)} to {show(high)}"
