"""GroundingDINO: frames and phrases in, sorted boxes out, through either of two backends."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from transformers import GroundingDinoForObjectDetection

from refinerank_core.boxes import denormalise, from_centres
from refinerank_core.caption import UNKNOWN, caption, clean_phrases, phrase_scores
from refinerank_core.errors import ModelError
from refinerank_core.models.backbone_memory import BackboneMaps, BackboneMemory, PositionMemory
from refinerank_core.models.batches import Batches, memory_of
from refinerank_core.models.deformable import read_rowwise
from refinerank_core.models.feature_store import FeatureStore
from refinerank_core.models.loading import load_processor, load_strictly, weights_id
from refinerank_core.models.official_detector import build_official, official_file
from refinerank_core.models.official_names import official_processor
from refinerank_core.models.official_weights import measure, official_id, read_official
from refinerank_core.structures import Detections, Float32, Frame

Backend = Literal["transformers", "groundingdino-py"]


@dataclass(frozen=True)
class DetectorSettings:
    """How a detector is loaded and run; a profile holds the values.

    Attributes:
        source: checkpoint directory or hub id; the official .pth file for groundingdino-py.
        revision: pinned hub revision.
        backend: "transformers", or "groundingdino-py" for the authors' own files.
        tokenizer: folder or hub id of the text encoder's tokenizer, for groundingdino-py.
        box_threshold: least confidence of a box (kept when strictly above).
        text_threshold: least score of a phrase for a box to carry it.
        short_side, long_side: size in pixels at which a frame is shown; None keeps the
            checkpoint's own (800 and 1333 for the official ones).
        batch: frames that pass through the model together; None fits them to the memory that is
            free on a card.
        cache_bytes: memory for the backbone's feature maps.
    """

    source: str
    revision: str | None = None
    backend: Backend = "transformers"
    tokenizer: str = "google-bert/bert-base-uncased"
    box_threshold: float = 0.05
    text_threshold: float = 0.10
    short_side: int | None = None
    long_side: int | None = None
    batch: int | None = 8
    cache_bytes: int = 256 << 20


class GroundingDino:
    """Frozen GroundingDINO in float32 (its deformable attention loses boxes in half precision)."""

    def __init__(self, settings: DetectorSettings, device: torch.device) -> None:
        """Load the checkpoint.

        Raises:
            WeightsError: it is absent, damaged or does not fit.
            ModelError: the backend's package is not installed.
        """
        load = _from_official if settings.backend == "groundingdino-py" else _from_transformers
        self._take(load(settings), settings, device)

    @classmethod
    def around(
        cls,
        model: Any,
        processor: Any,
        settings: DetectorSettings,
        device: torch.device,
        *,
        name: str,
    ) -> "GroundingDino":
        """The adapter over a transformers model and processor that are in memory already."""
        adapter = cls.__new__(cls)
        memory = _with_memory(model, settings)
        adapter._take(_Loaded(model, memory, processor, name), settings, device)
        return adapter

    def _take(self, loaded: "_Loaded", settings: DetectorSettings, device: torch.device) -> None:
        self._settings = settings
        self._model: Any = loaded.model.to(device)
        if device.type == "cpu":
            read_rowwise(self._model)
        self._memory, self.model_id = loaded.memory, loaded.model_id
        self._processor = loaded.processor
        _set_size(self._processor, settings)
        self._batches = Batches(settings.batch, memory_of(device), what="frames")
        self._device = device
        self._lock = Lock()

    @property
    def store(self) -> FeatureStore[BackboneMaps]:
        """The cache of the backbone's feature maps."""
        return self._memory.store

    def detect(
        self, frames: Sequence[Frame], phrases: Sequence[str], *, video_key: str = ""
    ) -> list[Detections]:
        """Boxes above the box threshold on each frame, best first.

        Args:
            frames: pictures of one video.
            phrases: what to look for; cleaned to the form that the caption needs.
            video_key: content hash of the video: the frames' feature maps are then kept for the
                next question. "" keeps nothing.

        Returns:
            One Detections per frame; a box carries the one phrase that it answers best, or
            "unknown" when no phrase passes the text threshold. Boxes may overhang the frame.

        Raises:
            QuestionError: no phrase is left after cleaning.
            ModelError: the model gave numbers that are not finite.
        """
        wanted = clean_phrases(list(phrases))

        def detect(group: Sequence[Frame]) -> list[Detections]:
            keys = [(self.model_id, video_key, one.index) for one in group] if video_key else []
            return self._detect(group, wanted, keys)

        return self._batches.run(frames, detect)

    def take_notes(self) -> tuple[str, ...]:
        """Sentences about memory since the last call."""
        return self._batches.take_notes()

    def _detect(
        self, frames: Sequence[Frame], phrases: tuple[str, ...], keys: Sequence[Hashable]
    ) -> list[Detections]:
        text = self._processor.tokenizer(
            [caption(phrases)] * len(frames), return_offsets_mapping=True, return_tensors="pt"
        )
        spans = [(int(a), int(b)) for a, b in text.pop("offset_mapping")[0].tolist()]
        with self._lock, torch.inference_mode():
            known = self._memory.expect(keys)
            pictures = _blank(len(frames)) if known else self._pictures(frames)
            inputs = {
                name: tensor.to(self._device) for name, tensor in {**text, **pictures}.items()
            }
            output = self._model(**inputs)
            scores = output.logits.sigmoid()  # (B, queries, 256); 0 past the caption
            best = scores.amax(dim=-1, keepdim=True)
            told = (best, output.pred_boxes, scores[..., : len(spans)])
            found = _numpy(torch.cat(told, dim=-1))  # one transfer for all frames
        if not np.isfinite(found).all():
            raise ModelError("The detector gave numbers that are not finite. Check its checkpoint.")
        return [
            self._sorted(queries, spans, phrases, frame.size_wh)
            for queries, frame in zip(found, frames, strict=True)
        ]

    def _pictures(self, frames: Sequence[Frame]) -> dict[str, Tensor]:
        """Frames as the backbone sees them."""
        images = [frame.image for frame in frames]
        return dict(self._processor.image_processor(images=images, return_tensors="pt"))

    def _sorted(
        self,
        queries: Float32,
        spans: list[tuple[int, int]],
        phrases: tuple[str, ...],
        size_wh: tuple[int, int],
    ) -> Detections:
        """One frame's boxes above the threshold in falling order, each with its phrase.

        Args:
            queries: (Q, 5 + tokens): best score, box as cxcywh in 0..1, score of each token.
            spans: letters of each token in the caption.
            phrases: of the caption.
            size_wh: of the frame.
        """
        order = np.argsort(-queries[:, 0], kind="stable")
        kept = queries[order[queries[order, 0] > self._settings.box_threshold]]
        by_phrase = phrase_scores(kept[:, 5:], spans, phrases)
        return Detections(
            boxes=denormalise(from_centres(kept[:, 1:5]), size_wh=size_wh),
            scores=kept[:, 0].copy(),
            phrases=tuple(
                phrases[int(row.argmax())]
                if row.max() >= self._settings.text_threshold
                else UNKNOWN
                for row in by_phrase
            ),
        )


def _blank(count: int) -> dict[str, Tensor]:
    """Stands for frames whose feature maps are remembered: nothing looks at their pixels."""
    return {"pixel_values": torch.zeros(count, 3, 1, 1), "pixel_mask": torch.ones(count, 1, 1)}


@dataclass(frozen=True)
class _Loaded:
    """A frozen network on the CPU, its backbone's memory, its processor and its name."""

    model: Any
    memory: BackboneMemory
    processor: Any
    model_id: str


def _from_transformers(settings: DetectorSettings) -> _Loaded:
    model = load_strictly(
        GroundingDinoForObjectDetection,
        settings.source,
        revision=settings.revision,
        dtype=torch.float32,
        attention=None,  # "eager" for all would add the text encoder's mask as 0 and 1
    )
    processor = load_processor(settings.source, settings.revision)
    name = weights_id(settings.source, model)
    return _Loaded(model, _with_memory(model, settings), processor, name)


def _with_memory(model: Any, settings: DetectorSettings) -> BackboneMemory:
    """Put a memory before the image side of a transformers model."""
    net, backbone = model.model, model.model.backbone
    levels = len(net.config.backbone_config.out_features)
    memory = BackboneMemory(
        backbone.conv_encoder, net.input_proj_vision, levels, settings.cache_bytes
    )
    backbone.conv_encoder, net.input_proj_vision = memory, memory.stand_ins
    backbone.position_embedding = PositionMemory(backbone.position_embedding)
    return memory


def _from_official(settings: DetectorSettings) -> _Loaded:
    path = official_file(settings.source)
    state = read_official(path)
    sizes = measure(path.name, state)
    processor = official_processor(settings.tokenizer, vocabulary=sizes.vocabulary)
    model = build_official(
        path.name, state, sizes, processor.tokenizer, cache_bytes=settings.cache_bytes
    )
    return _Loaded(model, model.memory, processor, official_id(path))


def _set_size(processor: Any, settings: DetectorSettings) -> None:
    """Show frames at the size of the settings, or at the checkpoint's own."""
    size = dict(processor.image_processor.size)
    size["shortest_edge"] = settings.short_side or size["shortest_edge"]
    size["longest_edge"] = settings.long_side or size["longest_edge"]
    processor.image_processor.size = size


def _numpy(tensor: Tensor) -> Float32:
    return tensor.float().cpu().numpy().astype(np.float32)
