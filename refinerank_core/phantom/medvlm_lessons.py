"""Questions about stills, and the token rows that the small MedVLM learns them from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refinerank_core.models import prompts
from refinerank_core.phantom import endoscopy_cast, laparoscopy_cast, open_cast, wording
from refinerank_core.phantom.medvlm_cells import NAMES, NOTHING
from refinerank_core.phantom.questions import PhantomQuestion, ask_about
from refinerank_core.phantom.truth import FrameTruth
from refinerank_core.phantom.vocabulary import ACTIONS, LADDERS
from refinerank_core.phantom.wording import Timing, draw_timing

NOT_LEARNT = -100  # the label of a token that is given, not to be written
GENERAL = "surgical instrument"
MOST_PHRASES = 3
SHORT_ASKS = (
    "{thing}",
    "Where is {thing}?",
    "Find {thing}.",
    "Show me {thing} {when}.",
    "Which is {thing} {when}?",
    "Where can {thing} be seen {when}?",
    *wording.ASKS,
    *wording.ASKS,
)
_CLIP_S = 20.0


@dataclass(frozen=True, eq=False)
class Lesson:
    """One question about frames, with what is to be known.

    Attributes:
        text: of the question.
        asked: the question and its true boxes, in pixels of the stills.
        name: place of the thing's class in medvlm_cells.NAMES; NOTHING when it is not in view.
        boxes: (T, 4) float32 in 0..1; (0, 4) when the thing is not in view.
    """

    text: str
    asked: PhantomQuestion
    name: int
    boxes: np.ndarray


def draw_times(rng: np.random.Generator, count: int) -> list[float]:
    """Draw the times at which count frames are shown; all with as many digits."""
    digits = int(rng.choice([1, 2, 2, 2, 3]))
    low, high = {1: (0, 10), 2: (10, 100), 3: (100, 400)}[digits]
    return [round(float(rng.uniform(low, high - 0.1)), 1) for _ in range(count)]


def draw_lesson(
    rng: np.random.Generator,
    truths: Sequence[FrameTruth],
    times_s: Sequence[float],
    procedure: str,
    *,
    in_full: bool,
    kind: str | None = None,
) -> Lesson | None:
    """Ask about frames that are shown at certain times.

    Args:
        rng: drawn from.
        truths: of the frames.
        times_s: when the frames are shown, whatever their truths say.
        procedure: kind of surgery.
        in_full: with role and scene, as in MedVidBench; else one short sentence.
        kind: of question, None for any.

    Returns:
        The lesson, None when nothing unambiguous can be asked.
    """
    timing = Timing(tuple(times_s), _when(rng, times_s))
    asked = ask_about(truths, timing, procedure, rng, kind=kind)
    if asked is None:
        return None
    text = asked.text
    if not in_full:
        form = SHORT_ASKS[int(rng.integers(len(SHORT_ASKS)))]
        when = timing.words
        text = form.format(thing=asked.thing, when=when, When=when[0].upper() + when[1:])
    scale = np.tile(np.array(truths[0].size_wh, np.float32), 2)
    return Lesson(
        text=text,
        asked=asked,
        name=NOTHING if asked.instance is None else NAMES.index(asked.phrase),
        boxes=(asked.boxes / scale).astype(np.float32),
    )


def _when(rng: np.random.Generator, times_s: Sequence[float]) -> str:
    """Return words for the times; one frame's question may span more times than its own."""
    if len(times_s) > 1:
        step = float(np.mean(np.diff(times_s)))
        form = wording.SPAN_FORMS[int(rng.integers(len(wording.SPAN_FORMS)))]
        return form.format(step=f"{step:.1f}", first=f"{times_s[0]:g}", last=f"{times_s[-1]:g}")
    if rng.random() < 0.5:
        return f"at {times_s[0]:.1f} seconds"
    drawn = draw_timing(rng, _CLIP_S, single_share=0.0)
    if len(drawn.times_s) < 2:
        return f"at {times_s[0]:g} seconds"
    step = drawn.times_s[1] - drawn.times_s[0]
    place = int(rng.integers(len(drawn.times_s)))
    first = max(0.0, times_s[0] - place * step)
    last = first + step * (len(drawn.times_s) - 1)
    form = wording.SPAN_FORMS[int(rng.integers(len(wording.SPAN_FORMS)))]
    return form.format(step=f"{step:g}", first=f"{first:.4g}", last=f"{last:.4g}")


def query_answer(asked: PhantomQuestion) -> str:
    """Return the phrases that a detector should be asked for, as far as the words alone tell."""
    thing = asked.thing.removeprefix("the ")
    if thing.startswith("hand "):
        return "gloved hand"
    if asked.phrase.endswith("hand") and asked.kind == "owner":
        return asked.phrase
    named = [
        phrase
        for ladder in LADDERS.values()
        for phrase in (*ladder.category, *ladder.specific)
        if f" {phrase} " in f" {thing} ".replace(",", " ")
        and phrase not in ACTIONS
        and thing.find(phrase) <= _longest_lead(thing)
    ]
    if named:
        return max(named, key=len)
    doers = _who_does(thing)
    return ", ".join(doers) if 0 < len(doers) <= MOST_PHRASES else GENERAL


def _longest_lead(thing: str) -> int:
    """Return how many letters may stand before the noun: those of one action word, or none."""
    first = thing.split()[0]
    return len(first) + 1 if first in ACTIONS else 0


def _who_does(thing: str) -> list[str]:
    """Return the tools whose roles hold the action and target that the words name."""
    words = f" {thing} "
    actions = [a for a, verb in ACTIONS.items() if f" {a} " in words or f"to {verb} " in words]
    targets = [name for name in LADDERS if f"the {name} " in words]
    if not actions and not targets:
        return []
    return [
        name
        for cast in (laparoscopy_cast, endoscopy_cast, open_cast)
        for name, role in cast.ROLES.items()
        if name in LADDERS
        and any(
            (not actions or action in actions)
            and (not targets or bool(set(targets) & set(structures)))
            for action, structures in role.deeds
        )
    ]


def direct_answer(lesson: Lesson, times_s: Sequence[float], resized_wh: tuple[int, int]) -> str:
    """Return the timed boxes in whole pixels of the resized picture, or that it is not there."""
    if lesson.asked.instance is None:
        return lesson.asked.answer()
    scale = np.tile(np.array(resized_wh, np.float32), 2)
    return " ".join(
        f"{time_s:.1f} seconds: [{', '.join(str(round(float(edge))) for edge in box * scale)}]"
        for time_s, box in zip(times_s, lesson.boxes, strict=True)
    )


class Writer:
    """Turns prompts and answers into token rows, exactly as the adapter would."""

    def __init__(self, processor: Any) -> None:
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.end = self.tokenizer.convert_tokens_to_ids("<|im_end|>")
        self.video = self.tokenizer.convert_tokens_to_ids("<|video_pad|>")
        self.image = self.tokenizer.convert_tokens_to_ids("<|image_pad|>")
        self.closing = self.tokenizer.convert_tokens_to_ids("]")

    def feature_row(self, lesson: Lesson, time_s: float) -> list[int]:
        """Return the row whose last token's state is q_last."""
        return self._chat(prompts.feature_prompt(lesson.text, time_s), media="image", ask=False)

    def answer_row(
        self, lesson: Lesson, times_s: Sequence[float], resized_wh: tuple[int, int]
    ) -> tuple[list[int], list[int]]:
        """Return tokens and labels of a direct answer."""
        prompt = prompts.answer_prompt(lesson.text, list(times_s))
        row = self._chat(prompt, media="video", ask=True)
        return self._with_answer(row, direct_answer(lesson, times_s, resized_wh))

    def query_row(self, lesson: Lesson) -> tuple[list[int], list[int]]:
        """Return tokens and labels of the detector's phrases."""
        row = self._chat(prompts.query_prompt(lesson.text), media=None, ask=True)
        return self._with_answer(row, query_answer(lesson.asked))

    def _with_answer(self, row: list[int], answer: str) -> tuple[list[int], list[int]]:
        written = [*self.tokenizer(answer, add_special_tokens=False)["input_ids"], self.end]
        return row + written, [NOT_LEARNT] * len(row) + written

    def _chat(self, prompt: str, *, media: str | None, ask: bool) -> list[int]:
        content = [{"type": media}] if media else []
        text = self.processor.apply_chat_template(
            [{"role": "user", "content": [*content, {"type": "text", "text": prompt}]}],
            tokenize=False,
            add_generation_prompt=ask,
        )
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def spread(row: Sequence[int], placeholder: int, count: int) -> list[int]:
    """Return a row with its one placeholder repeated count times."""
    at = list(row).index(placeholder)
    return [*row[:at], *[placeholder] * count, *row[at + 1 :]]


def shared_length(rows: Sequence[Sequence[int]]) -> int:
    """Return how many first tokens all rows share, at least one token short of the shortest."""
    most = min(len(row) for row in rows) - 1
    return next((n for n in range(most) if len({row[n] for row in rows}) > 1), most)
