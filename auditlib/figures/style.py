"""The look shared by all figures: colours, axes of the right size, rows with names, labels at the data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from auditlib.figures import glyphs

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: width of a column in inches
COLUMN = 3.4
WIDE = 6.9

# Okabe and Ito's colours, told apart with any kind of colour vision, plus greys
BLUE, SKY, GREEN, AMBER, VERMILION, PURPLE = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7"
INK, MUTED, GREY, PALE = "#222222", "#6b6b6b", "#a6a6a6", "#dedede"

CATEGORY_COLOURS = {"visual_dependent": BLUE, "visual_supplement": SKY, "text_only": AMBER, "conflicting": VERMILION}
CATEGORY_NAMES = {
    "visual_dependent": "visual dependent",
    "visual_supplement": "visual supplement",
    "text_only": "text only",
    "conflicting": "conflicting",
    "zero_gain": "zero gain (F = B)",
    "visual_dependent_majority": "visual dependent, majority rule",
}
ARM_COLOURS = {"judged": BLUE, "exact": VERMILION, "exact_yesno": GREEN}
ARM_NAMES = {"judged": "judged", "exact": "exact letters", "exact_yesno": "exact yes/no"}


def arm_name(arm: str) -> str:
    """How an arm is called in print."""
    return ARM_NAMES.get(arm, arm)


@contextmanager
def look(texts: Sequence[str] = ()) -> Iterator[None]:
    """Matplotlib's settings inside the block: the style file, and the fonts that some texts need besides."""
    import matplotlib.style
    from matplotlib import rc_context

    with rc_context(), matplotlib.style.context(Path(__file__).with_name("audit.mplstyle")):
        families = ["DejaVu Sans", *(f for f, _ in glyphs.extra_fonts(texts))]
        with rc_context({"font.family": families}):
            yield


def texts_of(frame: pd.DataFrame) -> list[str]:
    """Every text in a frame."""
    return [str(v) for c in frame.select_dtypes(exclude="number") for v in frame[c].dropna().unique()]


def styled(draw: Callable[..., Axes]) -> Callable[..., Axes]:
    """Decorator of a drawing function ``(frame, *, ax=None)``: it runs in the house style."""

    @functools.wraps(draw)
    def drawn(frame, *, ax=None, **options):
        with look(texts_of(frame)):
            return draw(frame, ax=ax, **options)

    return drawn


def axes(ax: Axes | None, width: float = COLUMN, height: float = 2.4) -> Axes:
    """The axes given, or new ones of a size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height))
    return ax


def rows_height(n: int, *, each: float = 0.19, room: float = 0.62, least: float = 1.3) -> float:
    """Height in inches of a figure with ``n`` rows of text."""
    return max(least, room + each * n)


def row_names(ax: Axes, names: Sequence[str], *, positions: Sequence[float] | None = None, width: int = 30) -> None:
    """Names down the y axis, first on top, without tick marks; foreign names are drawn literally."""
    positions = list(range(len(names))) if positions is None else list(positions)
    ax.set_yticks(
        positions, ["\n".join(glyphs.short(part, width) for part in n.split("\n")) for n in names], parse_math=False
    )
    ax.tick_params(axis="y", length=0)
    if positions:
        ax.set_ylim(max(positions) + 0.6, min(positions) - 0.6)
    ax.spines["left"].set_visible(False)
    # long names leave the axes narrower than the x label, which then ends where they end
    ax.xaxis.label.set(x=1.0, ha="right")


def grid(ax: Axes, axis: str = "x") -> None:
    """Hairlines across one axis."""
    ax.grid(True, axis=axis)
    ax.set_axisbelow(True)


def percent_axis(ax: Axes, axis: str = "x", label: str = "", *, signed: bool = False) -> None:
    """Ticks of an axis that holds shares, printed as percent (or points when signed)."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def show(v: float, _) -> str:
        text = f"{100 * v:+.6g}" if signed and round(v, 9) else f"{100 * v:.6g}"
        return text.replace("-", "−")

    the = ax.xaxis if axis == "x" else ax.yaxis
    the.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    the.set_major_formatter(FuncFormatter(show))
    the.set_label_text(label)


def legend_line(ax: Axes, entries: Sequence[tuple[str, str] | tuple[str, str, str]], *, lift: float = 2) -> None:
    """A legend on one line above the axes, from the left edge of the figure: (words, colour, mark) each.

    ``lift`` is the distance from the axes in points. Marks: ``■`` (default), ``●``, ``━``, or ``""`` for words alone.
    """
    alone = len(ax.figure.axes) == 1
    ax.set_title(" ", fontsize=7, pad=lift)  # keeps the room; the words themselves take no part in the layout
    offset = {
        "textcoords": "offset points",
        "fontsize": 7,
        "parse_math": False,
        "va": "bottom",
        "annotation_clip": False,
    }
    previous = None
    for words, colour, *rest in entries:
        for text, ink, gap in ((rest[0] if rest else "■", colour, 9), (glyphs.drawable(words), INK, 2.5)):
            if not text:
                continue
            if previous is None:
                where = {"xy": (0.012 if alone else 0, 1), "xytext": (0, lift)}
                where["xycoords"] = ("figure fraction", "axes fraction") if alone else "axes fraction"
            else:
                where = {"xy": (1, 0), "xycoords": previous, "xytext": (gap, 0)}
            previous = ax.annotate(text, color=ink, **where, **offset)
            previous.set_in_layout(False)


def note(ax: Axes, x: float, y: float, words: str, **more) -> None:
    """A small literal label at the data."""
    settings = {"fontsize": 6.5, "color": INK, "parse_math": False, "va": "center"} | more
    ax.text(x, y, words, **settings)
