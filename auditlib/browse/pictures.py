"""Pictures for a page: small enough to be inside it, each once."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from auditlib.inference.images import sniff

if TYPE_CHECKING:
    from auditlib.auditing import Audit

#: items whose pictures are in memory at a time
BATCH = 150
QUALITIES = (82, 65, 45)
#: background of what is transparent
WHITE = (255, 255, 255)


def picture_of(audit: Audit, item: str) -> bytes | None:
    """The item's picture, from the dataset file that the params name; None where there is none."""
    return next((data for _, data in pictures_of(audit, [item])), None)


def pictures_of(audit: Audit, items: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Pictures of some items in their order, a batch in memory at a time."""
    from auditlib.readers.dataset import read_images

    path = audit.params.data.dataset if audit.params else None
    if path is None or not path.exists():
        return
    items = list(items)
    for start in range(0, len(items), BATCH):
        part = items[start : start + BATCH]
        found = read_images(path, part)
        yield from ((i, found[i]) for i in part if i in found)


def small(data: bytes, side: int, most: int) -> tuple[str, bytes] | None:
    """A picture of at most ``side`` pixels and ``most`` bytes, as (mime type, bytes).

    One that is small enough stays as it is; others become JPEG, turned as the camera noted, on white. None where it
    cannot be decoded, or stays too large.
    """
    import PIL.Image
    from PIL import ImageOps

    kind = sniff(data)
    if kind is None:
        return None
    try:
        with PIL.Image.open(io.BytesIO(data)) as raw:
            if max(raw.size) <= side and len(data) <= most:
                raw.load()
                return kind, data
            raw.draft("RGB", (side, side))
            image = ImageOps.exif_transpose(raw)
            if image.has_transparency_data:
                over = image.convert("RGBA")
                image = PIL.Image.new("RGB", over.size, WHITE)
                image.paste(over, mask=over.getchannel("A"))
            image = image.convert("RGB")
            image.thumbnail((side, side), reducing_gap=2.0)
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError):
        return None
    for quality in QUALITIES:
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality, optimize=True)
        if out.tell() <= most:
            return "image/jpeg", out.getvalue()
    return None


def data_uri(kind: str, data: bytes) -> str:
    """A picture as a ``data:`` address."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
