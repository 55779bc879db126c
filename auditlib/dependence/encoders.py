"""Embeddings of pictures, questions and options by models of the transformers library, which is needed only here."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditlib.dependence.source_files import Embeddings, make_embeddings
from auditlib.errors import AuditError

_BATCH = 32


def image_text_encoder(model: str, *, device: str = "cpu", local: bool = True) -> _ImageText:
    """A CLIP or SigLIP kind of model: pictures and texts in one space.

    Parameters
    ----------
    model : folder of a saved model, or its name in the local cache. local : False lets the library download it.

    Raises
    ------
    AuditError
        The library is missing, the model cannot be loaded, or it has no image or text features.
    """
    loaded, processor = _load(model, "AutoProcessor", device, local)
    if not (hasattr(loaded, "get_image_features") and hasattr(loaded, "get_text_features")):
        raise AuditError(f"model {model!r} gives no image and text features", mend="name a CLIP or SigLIP model")
    return _ImageText(loaded, processor, device)


def sentence_encoder(model: str, *, device: str = "cpu", local: bool = True) -> _Sentences:
    """A text encoder whose vector is the mean of the last hidden states over the tokens of the text."""
    loaded, tokenizer = _load(model, "AutoTokenizer", device, local)
    return _Sentences(loaded, tokenizer, device)


def encode_items(
    items: Sequence[str],
    questions: Sequence[str],
    options: Sequence[Sequence[str]],
    pictures: Mapping[str, bytes],
    encoder: Any,
    *,
    text: Any | None = None,
    source: str = "encoder",
) -> tuple[Embeddings, list[str]]:
    """Vectors of the items that have a picture, and the ids of those that have none.

    Parameters
    ----------
    pictures : item -> encoded picture. encoder : has ``pictures`` and ``texts``; ``text`` replaces it for texts.

    Raises
    ------
    AuditError
        No item has a picture and options, a picture is damaged.
    """
    usable = [j for j, item in enumerate(items) if item in pictures and len(options[j]) >= 2]
    if not usable:
        raise AuditError("no item has both a picture and options to embed",
                         mend="name the benchmark's own table with pictures as data.dataset")  # fmt: skip
    names = [items[j] for j in usable]
    says = encoder if text is None else text
    visual = encoder.pictures([_picture(n, pictures[n]) for n in names])
    textual = says.texts([questions[j] for j in usable])
    flat = says.texts([o for j in usable for o in options[j]])
    width = max(len(options[j]) for j in usable)
    stacked, at = np.zeros((len(usable), width, flat.shape[1])), 0
    for row, j in enumerate(usable):
        stacked[row, : len(options[j])] = flat[at : at + len(options[j])]
        at += len(options[j])
    kept = set(usable)
    left_out = [x for j, x in enumerate(items) if j not in kept]
    return make_embeddings(names, visual, textual, stacked, source=source), left_out


class _Encoder:
    """A loaded model and what turns texts or pictures into its inputs."""

    def __init__(self, model: Any, processor: Any, device: str):
        self.model, self.processor, self.device = model, processor, device

    def _batched(self, things: Sequence[Any], features: Callable[[Sequence[Any]], Any]) -> NDArray[np.float64]:
        import torch

        parts = []
        with torch.inference_mode():
            for start in range(0, len(things), _BATCH):
                parts.append(features(things[start : start + _BATCH]).float().cpu().numpy())
        out = np.concatenate(parts).astype(float)
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)


class _ImageText(_Encoder):
    def pictures(self, pictures: Sequence[Any]) -> NDArray[np.float64]:
        """Unit vectors, shape (pictures, d)."""
        return self._batched(pictures, lambda part: _pooled(self.model.get_image_features(
            **self.processor(images=list(part), return_tensors="pt").to(self.device))))  # fmt: skip

    def texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Unit vectors, shape (texts, d); longer texts are cut where the model ends."""
        most = getattr(getattr(self.model.config, "text_config", None), "max_position_embeddings", None)
        cut = {"truncation": True, "padding": "max_length", "max_length": most} if most else {"padding": True}
        return self._batched(texts, lambda part: _pooled(self.model.get_text_features(
            **self.processor(text=list(part), return_tensors="pt", **cut).to(self.device))))  # fmt: skip


class _Sentences(_Encoder):
    def texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Unit vectors, shape (texts, d)."""

        def features(part: Sequence[str]) -> Any:
            tokens = self.processor(list(part), padding=True, truncation=True, return_tensors="pt").to(self.device)
            states = self.model(**tokens).last_hidden_state
            mask = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
            return (states * mask).sum(1) / mask.sum(1).clamp(min=1)

        return self._batched(texts, features)


def _pooled(found: Any) -> Any:
    """The vectors, whether the library returns them bare or in an output object."""
    return found if hasattr(found, "shape") else found.pooler_output


def _load(model: str, processor: str, device: str, local: bool) -> tuple[Any, Any]:
    try:
        transformers = importlib.import_module("transformers")
        importlib.import_module("torch")
    except ImportError as e:
        raise AuditError(
            f"embeddings by a model need the package {e.name}, which is not installed",
            mend="install transformers, torch and pillow, or give the vectors as a file",
        ) from None
    try:
        loaded = transformers.AutoModel.from_pretrained(model, local_files_only=local, use_safetensors=True)
        reader = getattr(transformers, processor).from_pretrained(model, local_files_only=local)
    except (OSError, ValueError, KeyError) as e:
        raise AuditError(
            f"the model {model!r} cannot be loaded ({type(e).__name__})",
            mend="give the folder of a saved model with safetensors weights",
        ) from None
    return loaded.to(device).eval(), reader


def _picture(item: str, data: bytes) -> Any:
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(io.BytesIO(data)).convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError) as e:
        raise AuditError(f"the picture of item {item} cannot be read ({type(e).__name__})",
                         mend="write that picture again") from None  # fmt: skip
