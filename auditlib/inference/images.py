"""Pictures: known by the hash of their bytes, loaded when they are sent, replaced by blank, grey or foreign ones."""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib import seeds
from auditlib.calls import Picture
from auditlib.errors import AuditError

if TYPE_CHECKING:
    from PIL.Image import Image

    from auditlib.inference.items import QuestionItem

GREY = (128, 128, 128)
_ORIENTATION = 0x0112
_TURNED = (5, 6, 7, 8)


def sniff(data: bytes) -> str | None:
    """Kind of an image file by its first bytes: png, jpeg, webp or gif; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/gif" if data[:6] in (b"GIF87a", b"GIF89a") else None


def lazy_picture(load: Callable[[], bytes], data: bytes | None = None) -> Picture:
    """A picture that ``load`` gives again whenever it is sent; its bytes are looked at once and not kept.

    Parameters
    ----------
    load : gives the bytes of the image file.
    data : those bytes, where they are at hand already.

    Raises
    ------
    ValueError
        The bytes are no png, jpeg, webp or gif file.
    """
    data = load() if data is None else data
    mime = sniff(data)
    if mime is None:
        raise ValueError("no png, jpeg, webp or gif file" if data else "no bytes")
    digest = hashlib.sha256(data).hexdigest()
    return Picture(digest, mime, partial(_unchanged, load, digest))


def _unchanged(load: Callable[[], bytes], digest: str) -> bytes:
    mend = "start again with the files as they are"
    try:
        data = load()
    except (OSError, ValueError, LookupError, csv.Error) as e:
        what = f"a picture cannot be read any more ({type(e).__name__}); its file has changed since the items were read"
        raise AuditError(what, mend=mend) from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise AuditError("a picture has changed since the items were read", mend=mend)
    return data


def picture_from_bytes(data: bytes) -> Picture:
    """A picture whose bytes stay in memory."""
    return lazy_picture(partial(bytes, data), data)


def picture_from_base64(text: str) -> Picture:
    """A picture from base64 text or a ``data:`` address; the text stays in memory."""
    return lazy_picture(partial(decode_base64, text))


def picture_from_path(path: str | Path) -> Picture:
    """A picture from a file, read again whenever it is sent."""
    path = Path(path)
    return lazy_picture(path.read_bytes)


def decode_base64(text: str) -> bytes:
    """Bytes of base64 text, line ends and a ``data:`` head allowed.

    Raises
    ------
    ValueError
        The text is no base64.
    """
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("no base64") from None


def blank(picture: Picture) -> Picture:
    """One colour, the mean of the picture's own, at its size. Decodes the picture: 5 to 30 ms for a photograph."""
    return _solid(*_decoded(picture, _size_and_mean))


def gray(picture: Picture) -> Picture:
    """Middle grey (128) at the picture's size; only the head of the file is decoded."""
    return _solid(_decoded(picture, _shown_size), GREY)


def _decoded(picture: Picture, fact: Callable[[Image], Any]) -> Any:
    """A fact of the decoded picture."""
    import PIL.Image

    try:
        with PIL.Image.open(io.BytesIO(picture.load())) as image:
            return fact(image)
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as e:
        what = f"a picture cannot be decoded ({type(e).__name__}; sha256 {picture.sha256[:12]}...)"
        raise AuditError(what, mend="replace it by a sound image file") from None


def _size_and_mean(image: Image) -> tuple[tuple[int, int], tuple[int, int, int]]:
    from PIL import ImageStat

    red, green, blue = ImageStat.Stat(image.convert("RGB")).mean
    return _shown_size(image), (round(red), round(green), round(blue))


def _shown_size(image: Image) -> tuple[int, int]:
    """Width and height as shown, after the turn that a camera notes."""
    width, height = image.size
    return (height, width) if image.getexif().get(_ORIENTATION) in _TURNED else (width, height)


def _solid(size: tuple[int, int], colour: tuple[int, int, int]) -> Picture:
    return Picture(_solid_hash(size, colour), "image/png", partial(_solid_png, size, colour))


@lru_cache(maxsize=4096)
def _solid_hash(size: tuple[int, int], colour: tuple[int, int, int]) -> str:
    return hashlib.sha256(_solid_png(size, colour)).hexdigest()


def _solid_png(size: tuple[int, int], colour: tuple[int, int, int]) -> bytes:
    """PNG bytes of one colour, the same on every call."""
    import PIL.Image

    out = io.BytesIO()
    PIL.Image.new("RGB", size, colour).save(out, "PNG", optimize=False)
    return out.getvalue()


class PicturePool:
    """Pictures of a benchmark, to draw another item's picture from.

    Draws depend on the seed, the item and the pictures there are, never on the order of items or calls.

    Parameters
    ----------
    items : all items of the benchmark; pictures are not loaded.
    """

    def __init__(self, items: Iterable[QuestionItem]):
        groups: dict[str | None, dict[str, Picture]] = {}
        for item in items:
            for picture in item.pictures:
                for name in (None, item.stratum):
                    groups.setdefault(name, {}).setdefault(picture.sha256, picture)
        self._groups = {name: [by_hash[h] for h in sorted(by_hash)] for name, by_hash in groups.items()}

    def wrong(self, item: QuestionItem, scope: str = "stratum", seed: int = 0, count: int = 1) -> tuple[Picture, ...]:
        """``count`` pictures, none of them the item's own, from its stratum or from ``any``; fewer only if none is."""
        own = {p.sha256 for p in item.pictures}
        pool = self._groups.get(item.stratum if scope == "stratum" else None, [])
        if not self.has_wrong(item, scope):
            return ()
        rng = seeds.generator(seed, "wrong_image", scope, item.item)
        drawn: list[Picture] = []
        while len(drawn) < count:
            picture = pool[int(rng.integers(len(pool)))]
            if picture.sha256 not in own:
                drawn.append(picture)
        return tuple(drawn)

    def has_wrong(self, item: QuestionItem, scope: str = "stratum") -> bool:
        """Whether there is a picture that is not the item's own."""
        pool = self._groups.get(item.stratum if scope == "stratum" else None, [])
        return len(pool) > len({p.sha256 for p in item.pictures})
