"""Stages 2 and 3 of the small MedVLM: its language side on what the tower sees, then both at once.

Beside the answers in words, temporary heads ask q_last which thing is meant, where it is, and
which cells show it; they are dropped when the model is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from refinerank_core.boxes_torch import giou
from refinerank_core.models.small import SmallMedVLM
from refinerank_core.phantom.batched_qwen import read
from refinerank_core.phantom.medvlm_cells import FIELDS, NOTHING, cells_of
from refinerank_core.phantom.medvlm_lessons import (
    NOT_LEARNT,
    Lesson,
    Writer,
    draw_lesson,
    draw_times,
)
from refinerank_core.phantom.medvlm_looks import answer_looks, look_shares, missed_looks
from refinerank_core.phantom.medvlm_reading import RowReader, padded
from refinerank_core.phantom.medvlm_seen import Seen, Viewer
from refinerank_core.phantom.medvlm_texts import build_phantom_medvlm
from refinerank_core.phantom.medvlm_tower import (
    SIZE,
    DenseHeads,
    dense_loss,
    targets_of,
)
from refinerank_core.phantom.run_state import (
    keep_state,
    load_weights,
    read_state,
    run_steps,
    warm_then_cosine,
)
from refinerank_core.phantom.stills import StillSet

IN_FULL_SHARE = 0.4
LOOK_WEIGHT = 0.5


@dataclass(frozen=True)
class LanguagePlan:
    """How the language side is trained.

    Attributes:
        steps: updates in all; a training may go on with more or fewer than it began with.
        joint_from: the step from which the tower learns too.
        videos_from: the step from which several frames are asked about at once.
        pictures, questions: stills of a step, and q_last questions about each.
        answered, answers: stills of them with direct answers, and how many each.
        video_answers: direct answers of a step about several frames; they share what is read of
            the frames, and each has several times to copy, which 3 a step taught too slowly.
        queries: questions a step whose detector phrases are written.
        peak_rate, tower_rate: of learning.
        seed: of weights and draws.
        size: of the whole model.
    """

    steps: int = 1500
    joint_from: int = 1000
    videos_from: int = 700
    pictures: int = 12
    questions: int = 8
    answered: int = 4
    answers: int = 3
    video_answers: int = 8
    queries: int = 4
    peak_rate: float = 1.5e-3
    tower_rate: float = 3e-4
    seed: int = 0
    size: SmallMedVLM = field(default_factory=lambda: SIZE)


class AskHeads(nn.Module):
    """Temporary readings of q_last: the thing's class, its box, and the cells that show it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.name = nn.Linear(width, FIELDS["name"])
        self.box = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 4))
        self.ask = nn.Linear(width, width)
        self.cell = nn.Linear(width, width)

    def point(self, asked: Tensor, merged: Tensor) -> Tensor:
        """Return (B, S, cells) scores of the merged tokens for (B, S, D) questions."""
        cells = F.normalize(self.cell(merged), dim=-1)
        scores: Tensor = 16.0 * F.normalize(self.ask(asked), dim=-1) @ cells.transpose(1, 2)
        return scores


class LanguageRun:
    """A training of the language side under way."""

    def __init__(
        self,
        plan: LanguagePlan,
        stills: StillSet,
        folder: Path,
        *,
        tower: Path | None,
        weights: Path | None = None,
    ) -> None:
        """Start from a trained tower or finished weights, or where the checkpoint in folder stands.

        Args:
            plan: how to train.
            stills: to train on.
            folder: of the checkpoint.
            tower: checkpoint of stage 1; None starts from random weights.
            weights: a finished model to go on from, instead of a tower; the heads start anew.

        Raises:
            ValueError: the checkpoint belongs to another plan.
        """
        self.plan, self.stills, self.path = plan, stills, folder / "language.pt"
        self.model, self.processor = build_phantom_medvlm(plan.size, seed=plan.seed)
        self.model.train()
        self.writer = Writer(self.processor)
        self.reader = RowReader(self.model)
        self.viewer = Viewer(self.model, self.processor, plan.size.full_blocks)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed + 1)
            self.heads = AskHeads(plan.size.width)
            self.dense = DenseHeads(plan.size)
        if tower is not None:
            learnt = torch.load(tower, weights_only=True)
            self.model.model.visual.load_state_dict(learnt["visual"])
            self.dense.load_state_dict(learnt["heads"])
        self.started_from = ""
        if weights is not None:
            self.started_from = load_weights(self.model, self.processor, weights)
        language = [*self.model.model.language_model.parameters(), *self.heads.parameters()]
        vision = [*self.model.model.visual.parameters(), *self.dense.parameters()]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": language, "lr": plan.peak_rate},
                {"params": vision, "lr": plan.tower_rate},
            ],
            weight_decay=0.05,
            betas=(0.9, 0.98),
            fused=True,
        )
        self.step, self.seconds = 0, 0.0
        state = read_state(self.path, self._told_plan(), free=("steps",))
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.heads.load_state_dict(state["heads"])
            self.dense.load_state_dict(state["dense"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.seconds = state["step"], state["seconds"]

    def keep(self, step: int, seconds: float) -> None:
        state = {
            "plan": self._told_plan(),
            "model": self.model.state_dict(),
            "heads": self.heads.state_dict(),
            "dense": self.dense.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": step,
            "seconds": seconds,
        }
        keep_state(state, self.path)
        self.step, self.seconds = step, seconds

    def _told_plan(self) -> dict[str, Any]:
        return {**plan_json(self.plan), "started_from": self.started_from}

    def train(self, *, keep_every_s: float = 120.0, stop_after: int | None = None) -> None:
        """Take the steps that are left, or only up to step number stop_after."""
        last = self.plan.steps if stop_after is None else min(stop_after, self.plan.steps)
        if self.step < last:
            run_steps(
                self.advance,
                self.keep,
                first=self.step,
                last=last,
                seconds=self.seconds,
                keep_every_s=keep_every_s,
                label="language side",
            )

    def advance(self, step: int) -> float:
        """Take one step on freshly drawn stills and questions, and return the loss."""
        plan, joint = self.plan, step >= self.plan.joint_from
        rng = np.random.default_rng([plan.seed, 2, step])
        stills = self.stills.draw(rng, plan.pictures)
        with nullcontext() if joint else torch.no_grad():
            seen = self.viewer.look(stills, rng)
        loss = self.asked_loss(seen, rng) + self.answer_loss(seen, rng) + self.query_loss(seen, rng)
        if joint:
            fine, coarse = targets_of(seen.truths, seen.grid_hw, merge=2)
            middle = plan.size.full_blocks[step % len(plan.size.full_blocks)]
            told = self.dense.read({middle: seen.blocks[middle]}, seen.merged)
            loss = loss + 0.5 * dense_loss(told["merged"], coarse)
            loss = loss + 0.5 * dense_loss(told[str(middle)], fine)
        if step >= plan.videos_from:
            with nullcontext() if joint else torch.no_grad():
                video = self.viewer.look_at_video(self.stills, rng)
            loss = loss + self.video_loss(*video, rng)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        share = warm_then_cosine(step, plan.steps)
        for group, peak in zip(
            self.optimizer.param_groups, (plan.peak_rate, plan.tower_rate), strict=True
        ):
            group["lr"] = peak * share
            nn.utils.clip_grad_norm_(group["params"], 1.0)
        self.optimizer.step()
        return float(loss.detach())

    def draw(
        self, seen: Seen, place: int, times_s: Sequence[float], rng: np.random.Generator
    ) -> Lesson:
        """Ask something about a picture; for what is not there when nothing else can be asked."""
        in_full = bool(rng.random() < IN_FULL_SHARE)
        for kind in (None, None, "negative"):
            lesson = draw_lesson(
                rng,
                [seen.truths[place]],
                times_s,
                seen.procedures[place],
                in_full=in_full,
                kind=kind,
            )
            if lesson is not None:
                return lesson
        raise ValueError("nothing can be asked about this picture")

    def asked_loss(self, seen: Seen, rng: np.random.Generator) -> Tensor:
        """Return how badly q_last knows what is asked for and where it is."""
        times = draw_times(rng, len(seen.truths))
        lessons = [
            [self.draw(seen, place, [time_s], rng) for _ in range(self.plan.questions)]
            for place, time_s in enumerate(times)
        ]
        asked, looks = self.ask_and_look(seen, lessons, times)
        names = torch.tensor([[lesson.name for lesson in group] for group in lessons])
        loss = F.cross_entropy(self.heads.name(asked).flatten(0, 1), names.flatten())
        there = names != NOTHING
        if not bool(there.any()):
            return loss
        flat = [lesson for group in lessons for lesson in group if lesson.name != NOTHING]
        boxes = torch.from_numpy(np.stack([lesson.boxes[0] for lesson in flat]))
        found = self.heads.box(asked[there]).sigmoid()
        loss = loss + 10.0 * (found - boxes).abs().mean() + (1 - giou(found, boxes).mean())
        rows, columns = seen.grid_hw[0] // 2, seen.grid_hw[1] // 2
        cells = torch.from_numpy(np.stack([cells_of(b, (rows, columns)) for b in boxes.numpy()]))
        pointed = self.heads.point(asked, seen.merged)[there].log_softmax(dim=-1)
        missed: Tensor = loss - (cells * pointed).sum(dim=-1).mean()
        return missed + LOOK_WEIGHT * missed_looks(looks[there], cells > 0)

    def ask(
        self, seen: Seen, lessons: Sequence[Sequence[Lesson]], times_s: Sequence[float]
    ) -> Tensor:
        """Return (B, S, D): q_last of S questions about each picture."""
        return self.ask_and_look(seen, lessons, times_s)[0]

    def ask_and_look(
        self, seen: Seen, lessons: Sequence[Sequence[Lesson]], times_s: Sequence[float]
    ) -> tuple[Tensor, Tensor]:
        """Return q_last (B, S, D), and how it attends to the cells (B, S, cells).

        The attention is that of the taught heads in the last layer but one: what they bring back,
        the last layer can still work on.
        """
        rows = [
            [self.writer.feature_row(lesson, time_s) for lesson in group]
            for group, time_s in zip(lessons, times_s, strict=True)
        ]
        watched = self._watch()
        states, lengths, _ = self.reader.read_rows(
            seen.merged, rows, None, seen.grid_hw, self.writer.image, watched=watched
        )
        last = lengths.flatten() - 1
        asked = states.flatten(0, 1)[torch.arange(len(last)), last].reshape(*lengths.shape, -1)
        first = rows[0][0].index(self.writer.image)
        picture = slice(first, first + seen.merged.shape[1])
        shares = look_shares(*watched[self._looking_layer], last[:, None], picture)
        return asked, shares[:, 0].reshape(*lengths.shape, -1)

    @property
    def _looking_layer(self) -> int:
        return self.plan.size.layers - 2

    def _watch(self) -> dict[int, tuple[Tensor, Tensor]]:
        return {self._looking_layer: (torch.empty(0), torch.empty(0))}

    def answer_loss(self, seen: Seen, rng: np.random.Generator) -> Tensor:
        """Return how badly single frames' boxes are written."""
        count = self.plan.answered
        times = draw_times(rng, count)
        size = (seen.grid_hw[1] * 14, seen.grid_hw[0] * 14)
        lessons = [
            [self.draw(seen, place, [time_s], rng) for _ in range(self.plan.answers)]
            for place, time_s in enumerate(times)
        ]
        pairs = [
            [self.writer.answer_row(lesson, [time_s], size) for lesson in group]
            for group, time_s in zip(lessons, times, strict=True)
        ]
        boxes = [lesson.boxes for group in lessons for lesson in group]
        return self._written_loss(seen.merged[:count], pairs, boxes, seen.grid_hw)

    def video_loss(
        self, seen: Seen, times_s: list[float], step_s: float, rng: np.random.Generator
    ) -> Tensor:
        """Return how badly the boxes of several frames are written."""
        size = (seen.grid_hw[1] * 14, seen.grid_hw[0] * 14)
        drawn = [
            draw_lesson(
                rng, seen.truths, times_s, seen.procedures[0], in_full=bool(rng.random() < 0.5)
            )
            for _ in range(self.plan.video_answers)
        ]
        lessons = [lesson for lesson in drawn if lesson is not None]
        if not lessons:
            return torch.zeros(())
        pairs = [self.writer.answer_row(lesson, times_s, size) for lesson in lessons]
        frames = seen.merged.flatten(0, 1)[None]  # (1, T * cells, D)
        boxes = [lesson.boxes for lesson in lessons]
        return self._written_loss(frames, [pairs], boxes, seen.grid_hw, step_s=step_s)

    def query_loss(self, seen: Seen, rng: np.random.Generator) -> Tensor:
        """Return how badly detector phrases are written."""
        rows = []
        for place in range(self.plan.queries):
            lesson = self.draw(seen, place % len(seen.truths), draw_times(rng, 1), rng)
            rows.append(self.writer.query_row(lesson))
        ids, labels = padded([r[0] for r in rows], 0), padded([r[1] for r in rows], NOT_LEARNT)
        language = self.model.model.language_model
        places = torch.arange(ids.shape[1]).expand(3, len(ids), -1)
        states, _ = read(language, language.embed_tokens(ids), places)
        return self._word_loss(states, labels)

    def _written_loss(
        self,
        merged: Tensor,
        pairs: Sequence[Sequence[tuple[list[int], list[int]]]],
        boxes: Sequence[np.ndarray],
        grid_hw: tuple[int, int],
        *,
        step_s: float = 1.0,
    ) -> Tensor:
        """Return how badly answers are written, and how far their writer looks from the thing."""
        rows = [[row for row, _ in group] for group in pairs]
        labels = [[label for _, label in group] for group in pairs]
        watched = self._watch()
        states, _, tail_labels = self.reader.read_rows(
            merged, rows, labels, grid_hw, self.writer.video, step_s=step_s, watched=watched
        )
        written = tail_labels.flatten(0, 1)
        loss = self._word_loss(states.flatten(0, 1), written)
        cells_hw = (grid_hw[0] // 2, grid_hw[1] // 2)
        at, places, wanted = answer_looks(written, boxes, cells_hw, closing=self.writer.closing)
        if not len(at):
            return loss
        first = rows[0][0].index(self.writer.video)
        queries, keys = watched[self._looking_layer]
        every = torch.arange(queries.shape[2]).expand(len(queries), -1)
        picture = slice(first, first + merged.shape[1])
        shares = look_shares(queries, keys, every, picture)[at, places]
        return loss + LOOK_WEIGHT * missed_looks(shares, wanted)

    def _word_loss(self, states: Tensor, labels: Tensor) -> Tensor:
        wanted = labels[:, 1:]
        learnt = wanted != NOT_LEARNT
        logits = self.model.lm_head(states[:, :-1][learnt])
        return F.cross_entropy(logits, wanted[learnt])


def plan_json(plan: LanguagePlan) -> dict[str, Any]:
    """Return a plan as plain values, as it comes back from a file."""
    told = asdict(plan)
    told["size"]["full_blocks"] = list(plan.size.full_blocks)
    return told
