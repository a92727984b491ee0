"""The MedVLM: any checkpoint of the Qwen2.5-VL architecture behind one small adapter."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

import torch
from torch import Tensor
from transformers import Qwen2_5_VLForConditionalGeneration

from refinerank_core.errors import WeightsError
from refinerank_core.models import prompts
from refinerank_core.models.batches import Batches, memory_of
from refinerank_core.models.chat_inputs import (
    as_pooled,
    chat_ids,
    end_tokens,
    limit_pixels,
    seconds_per_step,
    spread,
)
from refinerank_core.models.continuation import Continuation
from refinerank_core.models.drafts import Drafts
from refinerank_core.models.feature_store import FeatureStore
from refinerank_core.models.graph_decode import CapturedTexts, CaptureError
from refinerank_core.models.greedy import BeginText, write_greedily
from refinerank_core.models.loading import (
    load_processor,
    load_strictly,
    quantisation,
    weights_id,
)
from refinerank_core.models.protocols import AnswerText, Encoding, VisionFeatures
from refinerank_core.models.vision_pass import look_at, refuse_nan, refuse_unseeable
from refinerank_core.question import parse_query_answer
from refinerank_core.structures import Frame, Query, Question

_TOKENS_PER_ANSWER = 56
_TOKENS_SPARE = 32
_QUERY_TOKENS = 48


@dataclass(frozen=True)
class MedVLMSettings:
    """How a MedVLM is loaded and run; a profile holds the values.

    Attributes:
        source: checkpoint directory or hub id.
        revision: pinned hub revision.
        blocks: vision blocks whose grids are kept.
        max_pixels: pixel budget of one frame; None keeps the checkpoint's own.
        answer_prompt: template of the direct baseline, with {question} and {times}.
        batch: frames or prompts that pass through the model together; None fits them to the memory
            that is free on a card.
        cache_bytes: memory for vision features.
        attention: "sdpa" or "eager".
        load_bits: 8 or 4 quantises the language model while it is loaded (CUDA only).
        compile: run torch.compile on the language model's layers, which read the feature prompts;
            texts are read and written by a short way of their own.
    """

    source: str
    blocks: tuple[int, ...]
    revision: str | None = None
    max_pixels: int | None = None
    answer_prompt: str = prompts.ANSWER_PROMPT
    batch: int | None = 8
    cache_bytes: int = 1 << 30
    attention: str = "sdpa"
    load_bits: int | None = None
    compile: bool = False


class QwenMedVLM:
    """Frozen Qwen2.5-VL-architecture model: features, phrases and direct answers.

    One call at a time runs on the model (transformers keeps rope positions on the module).
    """

    def __init__(self, settings: MedVLMSettings, device: torch.device, dtype: torch.dtype) -> None:
        """Load the checkpoint.

        Raises:
            WeightsError: it is absent, damaged or does not fit, or lacks one of the blocks.
            ModelError: load_bits is set and bitsandbytes is not installed.
        """
        model = load_strictly(
            Qwen2_5_VLForConditionalGeneration,
            settings.source,
            revision=settings.revision,
            dtype=dtype,
            attention=settings.attention,
            quantisation=quantisation(settings.load_bits, dtype),
            device=device,
        )
        name = weights_id(settings.source, model)
        self._take(
            model, load_processor(settings.source, settings.revision), settings, device, name
        )

    @classmethod
    def around(
        cls,
        model: Any,
        processor: Any,
        settings: MedVLMSettings,
        device: torch.device,
        *,
        name: str,
    ) -> "QwenMedVLM":
        """The adapter over a model and processor that are in memory already.

        Raises:
            WeightsError: the model lacks one of the blocks.
        """
        adapter = cls.__new__(cls)
        adapter._take(model, processor, settings, device, name)
        return adapter

    def _take(
        self,
        model: Any,
        processor: Any,
        settings: MedVLMSettings,
        device: torch.device,
        name: str,
    ) -> None:
        self._settings = settings
        self._model: Any = model
        self._processor = processor
        limit_pixels(processor, settings.max_pixels)
        self._device = device
        self.model_id = name
        self.attention = settings.attention
        depth = model.config.vision_config.depth
        if absent := [block for block in settings.blocks if not 0 <= block < depth]:
            raise WeightsError(
                f"{self.model_id}: block {absent[0]} does not exist; its vision tower has blocks "
                f"0 to {depth - 1}. Correct the profile."
            )
        if settings.compile:
            for layer in model.model.language_model.layers:
                layer.compile(dynamic=True)
        memory = memory_of(device)
        self._seeing = Batches(settings.batch, memory, what="frames")
        self._reading = Batches(settings.batch, memory, what="prompts")
        self._store: FeatureStore[VisionFeatures] = FeatureStore(settings.cache_bytes)
        self._drafts = Drafts()
        self._notes: list[str] = []
        on_card = device.type == "cuda" and settings.load_bits is None
        self._begin_text: BeginText = CapturedTexts() if on_card else Continuation
        self._lock = RLock()

    @property
    def merged_patch_px(self) -> int:
        """Side of one merged patch in pixels."""
        vision = self._model.config.vision_config
        return int(vision.patch_size * vision.spatial_merge_size)

    @property
    def widths(self) -> tuple[int, int, int]:
        """Widths of q_last, of a merged token, and of a block's patch."""
        config = self._model.config
        return (
            int(config.text_config.hidden_size),
            int(config.vision_config.out_hidden_size),
            int(config.vision_config.hidden_size),
        )

    @property
    def store(self) -> FeatureStore[VisionFeatures]:
        """The cache of vision features."""
        return self._store

    def see(self, frames: Sequence[Frame], video_key: str) -> list[VisionFeatures]:
        """Vision features of each frame, in order.

        Args:
            frames: at least one merged patch wide and high.
            video_key: content hash of the video, so that features are never mixed up.

        Raises:
            ModelError: a frame is too small or too narrow, or the tower gave numbers that are not.
        """
        for frame in frames:
            refuse_unseeable(frame, least_px=self.merged_patch_px)
        with self._lock, torch.inference_mode():
            stored = {f.index: self._store.get((self.model_id, video_key, f.index)) for f in frames}
            found = {index: features for index, features in stored.items() if features is not None}
            unseen = list({f.index: f for f in frames if f.index not in found}.values())
            looked = self._seeing.run(unseen, self._look_at)
            for frame, features in zip(unseen, looked, strict=True):
                found[frame.index] = features
                self._store.put((self.model_id, video_key, frame.index), features)
        return [found[frame.index] for frame in frames]

    def remembered(self, video_key: str, indices: Sequence[int]) -> int:
        """How many of these frames of a video are in the cache."""
        keys = [(self.model_id, video_key, index) for index in indices]
        return sum(self._store.get(key) is not None for key in keys)

    def encode(
        self, frames: Sequence[Frame], times_s: Sequence[float], question: str, video_key: str
    ) -> list[Encoding]:
        """q_last and grids of each (frame, time), with the prompt of METHOD section 2.

        Raises:
            ModelError: see `see`, or the language model gave numbers that are not.
        """
        seen = self.see(frames, video_key)
        texts = [prompts.feature_prompt(question, t) for t in times_s]
        with self._lock, torch.inference_mode():
            states = self._reading.run(list(zip(seen, texts, strict=True)), self._last_states)
        return [
            Encoding(q_last=state, vision=vision)
            for state, vision in zip(states, seen, strict=True)
        ]

    def take_notes(self) -> tuple[str, ...]:
        """Sentences about memory and speed since the last call."""
        notes, self._notes = tuple(self._notes), []
        return self._seeing.take_notes() + self._reading.take_notes() + notes

    def answer(
        self, frames: Sequence[Frame], times_s: Sequence[float], question: str, video_key: str
    ) -> AnswerText:
        """The direct baseline's words.

        Each frame is one temporal step of a video (shown twice, as a still is, so that the cached
        features serve), and the seconds between the steps reach the model as second_per_grid_ts,
        the value that its own processor derives from the sampled rate.

        Raises:
            ModelError: see `see`.
        """
        seen = self.see(frames, video_key)
        times = list(times_s)
        step_s, note = seconds_per_step(times, self._tokens_per_second)
        with self._lock, torch.inference_mode():
            text, cut = self._write_answer(seen, times, question, step_s)
        return AnswerText(text=text, cut=cut, notes=(note,) if note else ())

    @property
    def network(self) -> Any:
        """The transformers model itself, to be measured."""
        return self._model

    def prompt_tokens(self, vision: VisionFeatures, question: str, time_s: float) -> int:
        """Tokens of the feature prompt, those of the picture among them."""
        prompt = prompts.feature_prompt(question, time_s)
        ids = chat_ids(self._processor, prompt, media="image", generate=False)
        return len(ids) - 1 + vision.final[..., 0].numel()

    def write(self, prompt: str, limit: int, *, guessing: bool = True) -> tuple[str, bool]:
        """Greedy words after a prompt without a picture, and whether the limit ended them.

        guessing False writes one token a step, to measure with.
        """
        with self._lock, torch.inference_mode():
            ids = chat_ids(self._processor, prompt, media=None, generate=True)
            inputs = {
                "input_ids": torch.tensor([ids], device=self._device),
                "attention_mask": torch.ones(1, len(ids), dtype=torch.long, device=self._device),
            }
            return self._generate(inputs, limit, guessing=guessing)

    def query(self, question: Question) -> Query:
        """The model's phrases for the detector; the rules' where its words cannot be used."""
        text, _ = self.write(prompts.query_prompt(question.text), _QUERY_TOKENS)
        phrases = parse_query_answer(text)
        if phrases is None:
            return Query(phrases=question.phrases, source="rules", text=text)
        return Query(phrases=phrases, source="medvlm", text=text)

    @property
    def _tokens_per_second(self) -> float:
        return float(self._model.config.vision_config.tokens_per_second)

    def _look_at(self, frames: Sequence[Frame]) -> list[VisionFeatures]:
        return look_at(self._model, self._processor, frames, self._settings.blocks)

    def _last_states(self, asked: Sequence[tuple[VisionFeatures, str]]) -> list[Tensor]:
        """(Dq,) each: hidden state at the last token of each prompt, one frame each."""
        seen = [vision for vision, _ in asked]
        config = self._model.config
        pad = config.image_token_id
        rows = [
            spread(
                chat_ids(self._processor, text, media="image", generate=False),
                pad,
                vision.final[..., 0].numel(),
            )
            for vision, text in asked
        ]
        longest = max(map(len, rows))
        filler = self._processor.tokenizer.pad_token_id or 0
        ids = torch.tensor([row + [filler] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        ids, mask, kinds = torch.stack((ids, mask, ((ids == pad) & (mask == 1)).long())).to(
            self._device
        )
        inputs = {
            "input_ids": ids,
            "mm_token_type_ids": kinds.int(),
            "image_grid_thw": self._grid_thw(seen).to(self._device),
            "mm_encoder_outputs": {"image": as_pooled(seen)},
        }
        if len(rows) == 1 and not self._settings.compile:  # not padded: the short way reads it
            alone = Continuation(self._model, inputs, room=0).prompt_state
            refuse_nan("the language model", alone)
            return list(alone)
        output = self._model.model(**inputs, attention_mask=mask, use_cache=False)
        last = mask.sum(dim=1) - 1
        states: Tensor = output.last_hidden_state[
            torch.arange(len(rows), device=self._device), last
        ]
        refuse_nan("the language model", states)
        return list(states)

    def _write_answer(
        self, seen: Sequence[VisionFeatures], times_s: list[float], question: str, step_s: float
    ) -> tuple[str, bool]:
        config = self._model.config
        prompt = prompts.answer_prompt(question, times_s, self._settings.answer_prompt)
        tokens = sum(vision.final[..., 0].numel() for vision in seen)
        row = spread(
            chat_ids(self._processor, prompt, media="video", generate=True),
            config.video_token_id,
            tokens,
        )
        ids = torch.tensor([row], device=self._device)
        grid = self._grid_thw(seen)[:1].clone()
        grid[0, 0] = len(seen)
        inputs = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "mm_token_type_ids": (ids == config.video_token_id).int() * 2,
            "video_grid_thw": grid.to(self._device),
            "second_per_grid_ts": torch.tensor([step_s], device=self._device),
            "mm_encoder_outputs": {"video": as_pooled(seen)},
        }
        return self._generate(inputs, _TOKENS_SPARE + _TOKENS_PER_ANSWER * len(times_s))

    def _grid_thw(self, seen: Sequence[VisionFeatures]) -> Tensor:
        patch = self._model.config.vision_config.patch_size
        return torch.tensor([[1, v.resized_wh[1] // patch, v.resized_wh[0] // patch] for v in seen])

    def _generate(
        self, inputs: dict[str, Any], limit: int, *, guessing: bool = True
    ) -> tuple[str, bool]:
        """Greedy text and whether the token limit ended it."""
        tokenizer = self._processor.tokenizer
        ends = end_tokens(self._model, tokenizer)
        ids = inputs["input_ids"][0]
        kinds = inputs.get("mm_token_type_ids")
        words = ids.tolist() if kinds is None else ids[kinds[0] == 0].tolist()

        def write() -> list[int]:
            return write_greedily(
                self._model,
                inputs,
                limit=limit,
                ends=ends,
                words=words,
                drafts=self._drafts if guessing else Drafts(most=0),
                begin_text=self._begin_text,
            )

        try:
            written = write()
        except CaptureError as error:
            self._begin_text = Continuation
            self._notes.append(
                f"The card could not record the writing of a token ({error}): from now on text is "
                "written more slowly."
            )
            written = write()
        text: str = tokenizer.decode(written, skip_special_tokens=True)
        return text.strip(), written[-1] not in ends
