"""Changed pictures: blurred, reduced, with noise, compressed, without colour, with patches or regions removed.

Each is known by the hash of its own bytes, made when it is sent and the same on every call. A change that leaves every
pixel as it was is an error: a condition that silently did nothing would pass for insensitivity.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.calls import Picture
from auditlib.errors import AuditError
from auditlib.inference.images import lazy_picture
from auditlib.sensitivity.conditions import Condition

if TYPE_CHECKING:
    from PIL.Image import Image

#: patches along the shorter side, for the removal of patches
PATCHES = 16
#: cells along each side of the occlusion grid
GRID = 4
#: tries to place a control box without overlap
TRIES = 2_000
Box = tuple[int, int, int, int]
Pixels = NDArray[np.uint8]


class Unchanged(AuditError):
    """A change that leaves every pixel as it was."""


class NoPlace(AuditError):
    """There is no region of evidence, or no room for a control box."""


@dataclass(frozen=True)
class Region:
    """Where the evidence lies: left, top, right, bottom as shares of width and height, in [0, 1]."""

    left: float
    top: float
    right: float
    bottom: float

    def __post_init__(self) -> None:
        if not (0 <= self.left < self.right <= 1 and 0 <= self.top < self.bottom <= 1):
            raise AuditError(f"a region of {self.left:g}, {self.top:g}, {self.right:g}, {self.bottom:g}",
                             mend="give left < right and top < bottom as shares of width and height")  # fmt: skip

    def box(self, width: int, height: int) -> Box:
        """The region in pixels, at least one each way."""
        left, top = math.floor(self.left * width), math.floor(self.top * height)
        return (left, top, max(left + 1, math.ceil(self.right * width)),
                max(top + 1, math.ceil(self.bottom * height)))  # fmt: skip


def change(
    picture: Picture, condition: Condition, *, seed: int = 0, item: str = "", regions: Sequence[Region] = ()
) -> Picture:
    """The picture under a condition.

    Parameters
    ----------
    picture : the item's own.
    condition : a family of :data:`auditlib.sensitivity.conditions.LEVELS`. ``tokens``: patches of the image, as for a
        model that cannot be opened; variant ``random`` or ``contiguous``. ``occlude_grid``: the level is the cell,
        from 1.
    seed : of the run; random changes depend on it, the item and the condition, never on the order of calls.
    regions : of the evidence, needed for ``occlude_evidence`` and ``occlude_control``.

    Returns
    -------
    Picture
        PNG (JPEG for ``jpeg``). ``sha256`` is the hash of its bytes.

    Raises
    ------
    AuditError
        The change leaves every pixel as it was; an unknown family; no region; no room for a control box; a picture that
        cannot be decoded.
    """
    made, before = _made(picture, condition, seed, item, tuple(regions))
    after, _ = pixels(made)
    if after.shape == before.shape and np.array_equal(after, before):
        raise Unchanged(f"{condition.name} changes no pixel of the picture of item {item!r} (sha256 "
                         f"{picture.sha256[:12]}...)", mend="leave the condition out for such items "
                         "(sensitivity.unchanged: leave_out), or take a stronger level")  # fmt: skip
    return lazy_picture(partial(_bytes, picture, condition, seed, item, tuple(regions)), made)


def _bytes(picture: Picture, condition: Condition, seed: int, item: str, regions: tuple[Region, ...]) -> bytes:
    return _made(picture, condition, seed, item, regions)[0]


def _made(
    picture: Picture, condition: Condition, seed: int, item: str, regions: tuple[Region, ...]
) -> tuple[bytes, Pixels]:
    before, image = pixels(picture.load(), picture.sha256)
    family, level = condition.family, condition.level
    rng = seeds.generator(seed, "sensitivity", item, picture.sha256, condition.name)
    if family == "blur":
        return _png(_blur(image, level)), before
    if family == "downsample":
        return _png(_downsample(image, level)), before
    if family == "noise":
        return _png(_noise(before, level, rng)), before
    if family == "jpeg":
        return _jpeg(image, level), before
    if family == "grayscale":
        return _png(image.convert("L").convert("RGB")), before
    if family == "tokens":
        return _png(_patches(before, level, condition.variant or "random", rng)), before
    if family in ("occlude_evidence", "occlude_control", "occlude_grid"):
        return _png(_covered(before, _boxes(condition, before.shape, regions, item, rng))), before
    raise AuditError(f"{family!r} is no change of a picture", mend="use blur, downsample, noise, jpeg, grayscale, "
                     "tokens, occlude_evidence, occlude_control or occlude_grid")  # fmt: skip


def pixels(data: bytes, name: str = "") -> tuple[Pixels, Image]:
    """Pixels (height, width, 3) of an image file as shown, and the image; transparency is put on white.

    Raises
    ------
    AuditError
        The bytes cannot be decoded.
    """
    import PIL.Image
    from PIL import ImageOps

    try:
        with PIL.Image.open(io.BytesIO(data)) as raw:
            image = ImageOps.exif_transpose(raw)
            if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
                over = image.convert("RGBA")
                white = PIL.Image.new("RGBA", over.size, (255, 255, 255, 255))
                image = PIL.Image.alpha_composite(white, over)
            image = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as e:
        raise AuditError(f"a picture cannot be decoded ({type(e).__name__}; sha256 {name[:12]}...)",
                         mend="replace it by a sound image file") from None  # fmt: skip
    return np.asarray(image), image


def pixel_hash(data: bytes) -> str:
    """Hash of what is shown, whatever the file's format."""
    array, _ = pixels(data)
    return hashlib.sha256(str(array.shape).encode() + array.tobytes()).hexdigest()


def _png(what: Image | Pixels) -> bytes:
    import PIL.Image

    image = PIL.Image.fromarray(what) if isinstance(what, np.ndarray) else what
    out = io.BytesIO()
    image.save(out, "PNG", optimize=False)
    return out.getvalue()


def _jpeg(image: Image, level: float) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=max(1, round(100 - level)), subsampling=2)
    return out.getvalue()


def _blur(image: Image, level: float) -> Image:
    from PIL import ImageFilter

    return image.filter(ImageFilter.GaussianBlur(level / 100 * min(image.size)))


def _downsample(image: Image, level: float) -> Image:
    from PIL.Image import Resampling

    small = (max(1, round(image.width / level)), max(1, round(image.height / level)))
    return image.resize(small, Resampling.BOX).resize(image.size, Resampling.BICUBIC)


def _noise(before: Pixels, level: float, rng: np.random.Generator) -> Pixels:
    noisy = before + rng.normal(0, 255 * level, before.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def _mean(before: Pixels) -> Pixels:
    return np.rint(before.reshape(-1, 3).mean(axis=0)).astype(np.uint8)


def patch_mask(height: int, width: int, share: float, variant: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which patches go: ``random``, or ``contiguous``: those nearest to a random one, by the larger of both distances.

    Returns
    -------
    Boolean (rows, columns) with ``round(share * patches)`` true; rows and columns of patches of nearly square shape.
    """
    if variant not in ("random", "contiguous"):
        raise AuditError(f"tokens:{variant} is unknown", mend="use tokens:random or tokens:contiguous")
    if not 0 < share <= 1:
        raise AuditError(f"tokens@{share:g}: the share removed must lie in (0, 1]", mend="correct the level")
    short = min(height, width)
    rows, columns = (max(1, min(n, round(PATCHES * n / short))) for n in (height, width))
    count = max(1, round(share * rows * columns))
    order = rng.permutation(rows * columns)
    if variant == "contiguous":
        r, c = np.divmod(order, columns)
        order = order[np.argsort(np.maximum(np.abs(r - r[0]), np.abs(c - c[0])), kind="stable")]
    mask = np.zeros(rows * columns, bool)
    mask[order[:count]] = True
    return mask.reshape(rows, columns)


def _patches(before: Pixels, share: float, variant: str, rng: np.random.Generator) -> Pixels:
    height, width = before.shape[:2]
    mask = patch_mask(height, width, share, variant, rng)
    rows = np.arange(height) * mask.shape[0] // height
    columns = np.arange(width) * mask.shape[1] // width
    return np.where(mask[rows][:, columns][..., None], _mean(before), before)


def _covered(before: Pixels, boxes: Sequence[Box]) -> Pixels:
    out, colour = before.copy(), _mean(before)
    for left, top, right, bottom in boxes:
        out[top:bottom, left:right] = colour
    return out


def _boxes(condition: Condition, shape: tuple[int, ...], regions: Sequence[Region], item: str,
           rng: np.random.Generator) -> list[Box]:  # fmt: skip
    height, width = shape[:2]
    if condition.family == "occlude_grid":
        cell = int(condition.level) - 1
        if not 0 <= cell < GRID * GRID:
            raise AuditError(f"{condition.name}: there are cells 1 to {GRID * GRID}", mend="correct the level")
        r, c = divmod(cell, GRID)
        return [(c * width // GRID, r * height // GRID, (c + 1) * width // GRID, (r + 1) * height // GRID)]
    if not regions:
        raise NoPlace(f"item {item!r} has no region of evidence", mend="name it in sensitivity.regions")
    own = [r.box(width, height) for r in regions]
    return own if condition.family == "occlude_evidence" else control_boxes(own, width, height, rng)


def control_boxes(own: Sequence[Box], width: int, height: int, rng: np.random.Generator) -> list[Box]:
    """Boxes of the same size as each of ``own``, placed at random without overlap with any of them or each other.

    Raises
    ------
    AuditError
        There is no room, or none was found in :data:`TRIES` tries.
    """
    out: list[Box] = []
    for left, top, right, bottom in own:
        w, h = right - left, bottom - top
        for _ in range(TRIES):
            x, y = int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1))
            box = (x, y, x + w, y + h)
            if not any(overlap(box, other) for other in (*own, *out)):
                out.append(box)
                break
        else:
            raise NoPlace("there is no room for a control box beside the evidence",
                             mend="leave the item out of occlude_control, or mark a smaller region")  # fmt: skip
    return out


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes share a pixel."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
