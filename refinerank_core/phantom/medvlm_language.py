"""Stages 2 and 3 of the small MedVLM: its language side on what the tower sees, then both at once.

Beside the answers in words, temporary heads ask q_last which thing is meant, where it is, and
which cells show it; they are dropped when the model is written.
"""

from __future__ import annotations

import itertools
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
from refinerank_core.phantom.batched_qwen import read, see, vision_angles
from refinerank_core.phantom.medvlm_cells import FIELDS, NOTHING, cells_of
from refinerank_core.phantom.medvlm_lessons import (
    NOT_LEARNT,
    Lesson,
    Writer,
    draw_lesson,
    draw_times,
    shared_length,
    spread,
)
from refinerank_core.phantom.medvlm_pictures import balanced, cut_patches, varied
from refinerank_core.phantom.medvlm_texts import build_phantom_medvlm
from refinerank_core.phantom.medvlm_tower import (
    SIZE,
    DenseHeads,
    dense_loss,
    targets_of,
)
from refinerank_core.phantom.run_state import keep_state, read_state, run_steps, warm_then_cosine
from refinerank_core.phantom.stills import Still, StillSet
from refinerank_core.phantom.truth import FrameTruth

IN_FULL_SHARE = 0.4
MOST_FRAMES = 6
LOOKING_HEADS = 2
LOOK_WEIGHT = 0.5


@dataclass(frozen=True)
class LanguagePlan:
    """How the language side is trained.

    Attributes:
        steps: updates in all.
        joint_from: the step from which the tower learns too.
        videos_from: the step from which several frames are asked about at once.
        pictures, questions: stills of a step, and q_last questions about each.
        answered, answers: stills of them with direct answers, and how many each.
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


@dataclass(frozen=True, eq=False)
class Seen:
    """Pictures of a step after the tower.

    Attributes:
        truths: of the pictures.
        procedures: of the pictures.
        blocks: block outputs.
        merged: (B, cells, D).
        grid_hw: of patches.
    """

    truths: Sequence[FrameTruth]
    procedures: Sequence[str]
    blocks: dict[int, Tensor]
    merged: Tensor
    grid_hw: tuple[int, int]


class LanguageRun:
    """A training of the language side under way."""

    def __init__(
        self, plan: LanguagePlan, stills: StillSet, folder: Path, *, tower: Path | None
    ) -> None:
        """Start from a trained tower, or where the checkpoint in folder stands.

        Args:
            plan: how to train.
            stills: to train on.
            folder: of the checkpoint.
            tower: checkpoint of stage 1; None starts from random weights.

        Raises:
            ValueError: the checkpoint belongs to another plan.
        """
        self.plan, self.stills, self.path = plan, stills, folder / "language.pt"
        self.model, self.processor = build_phantom_medvlm(plan.size, seed=plan.seed)
        self.model.train()
        self.writer = Writer(self.processor)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed + 1)
            self.heads = AskHeads(plan.size.width)
            self.dense = DenseHeads(plan.size)
        if tower is not None:
            learnt = torch.load(tower, weights_only=True)
            self.model.model.visual.load_state_dict(learnt["visual"])
            self.dense.load_state_dict(learnt["heads"])
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
        state = read_state(self.path, plan_json(plan))
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.heads.load_state_dict(state["heads"])
            self.dense.load_state_dict(state["dense"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.seconds = state["step"], state["seconds"]

    def keep(self, step: int, seconds: float) -> None:
        state = {
            "plan": plan_json(self.plan),
            "model": self.model.state_dict(),
            "heads": self.heads.state_dict(),
            "dense": self.dense.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": step,
            "seconds": seconds,
        }
        keep_state(state, self.path)
        self.step, self.seconds = step, seconds

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
        stills = balanced(self.stills, rng, plan.pictures)
        with nullcontext() if joint else torch.no_grad():
            seen = self.look(stills, rng)
        loss = self.asked_loss(seen, rng) + self.answer_loss(seen, rng) + self.query_loss(seen, rng)
        if joint:
            fine, coarse = targets_of(seen.truths, seen.grid_hw, merge=2)
            middle = plan.size.full_blocks[step % len(plan.size.full_blocks)]
            told = self.dense.read({middle: seen.blocks[middle]}, seen.merged)
            loss = loss + 0.5 * dense_loss(told["merged"], coarse)
            loss = loss + 0.5 * dense_loss(told[str(middle)], fine)
        if step >= plan.videos_from:
            with nullcontext() if joint else torch.no_grad():
                video = self.look_at_video(rng)
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

    def look(self, stills: Sequence[Still], rng: np.random.Generator | None) -> Seen:
        """Pass stills through the tower, varied when a stream is given."""
        pairs = [
            (still.image, still.truth) if rng is None else varied(still, rng) for still in stills
        ]
        return self._see(
            [p[0] for p in pairs], [p[1] for p in pairs], [s.procedure for s in stills]
        )

    def look_at_video(self, rng: np.random.Generator) -> tuple[Seen, list[float], float]:
        """Pass some stills of one scene through the tower: seen, their times, mean distance."""
        place = int(rng.integers(len(self.stills)))
        places = self.stills.scene_places(place)
        count = int(rng.integers(2, min(MOST_FRAMES, len(places)) + 1))
        start = int(rng.integers(len(places) - count + 1))
        stills = [self.stills[p] for p in places[start : start + count]]
        look = int(rng.integers(1 << 30))  # one light and one mirror for all
        pairs = [varied(still, np.random.default_rng(look)) for still in stills]
        times = [round(still.truth.time_s, 1) for still in stills]
        seen = self._see(
            [image for image, _ in pairs], [truth for _, truth in pairs], [stills[0].procedure]
        )
        return seen, times, float(np.mean(np.diff(times)))

    def _see(
        self, images: Sequence[np.ndarray], truths: Sequence[FrameTruth], procedures: Sequence[str]
    ) -> Seen:
        visual = self.model.model.visual
        patches, grid_hw = cut_patches(self.processor.image_processor, images)
        blocks, merged = see(
            visual, patches, vision_angles(visual, grid_hw), self.plan.size.full_blocks
        )
        return Seen(truths, procedures, blocks, merged, grid_hw)

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
        looked = (looks[there] * (cells > 0)).sum(dim=-1)
        missed: Tensor = loss - (cells * pointed).sum(dim=-1).mean()
        return missed - LOOK_WEIGHT * looked.clamp(min=1e-6).log().mean()

    def ask(
        self, seen: Seen, lessons: Sequence[Sequence[Lesson]], times_s: Sequence[float]
    ) -> Tensor:
        """Return (B, S, D): q_last of S questions about each picture."""
        return self.ask_and_look(seen, lessons, times_s)[0]

    def ask_and_look(
        self, seen: Seen, lessons: Sequence[Sequence[Lesson]], times_s: Sequence[float]
    ) -> tuple[Tensor, Tensor]:
        """Return q_last (B, S, D), and how it attends to the cells (B, S, cells).

        The attention is that of the first LOOKING_HEADS heads in the last layer but one: what they
        bring back, the last layer can still work on.
        """
        rows = [
            [self.writer.feature_row(lesson, time_s) for lesson in group]
            for group, time_s in zip(lessons, times_s, strict=True)
        ]
        merged, grid_hw = seen.merged, seen.grid_hw
        layer = self.plan.size.layers - 2
        watched = {layer: (torch.empty(0), torch.empty(0))}
        states, lengths, _ = self._read_rows(
            merged, rows, None, grid_hw, self.writer.image, watched=watched
        )
        last = lengths.flatten() - 1
        at_end = states.flatten(0, 1)[torch.arange(len(last)), last]
        asked = at_end.reshape(*lengths.shape, -1)
        queries, keys = (part[:, :LOOKING_HEADS] for part in watched[layer])
        query = queries[torch.arange(len(last)), :, last]  # (B * S, heads, head)
        scores = torch.einsum("nhd,nhkd->nhk", query, keys) * query.shape[-1] ** -0.5
        begun = keys.shape[2] - states.shape[2]
        unread = torch.arange(keys.shape[2]) > begun + last[:, None]
        scores = scores.masked_fill(unread[:, None], float("-inf"))
        first = rows[0][0].index(self.writer.image)
        shares = scores.softmax(dim=-1)[..., first : first + merged.shape[1]].mean(dim=1)
        return asked, shares.unflatten(0, lengths.shape)

    def answer_loss(self, seen: Seen, rng: np.random.Generator) -> Tensor:
        """Return how badly single frames' boxes are written."""
        count = self.plan.answered
        times = draw_times(rng, count)
        size = (seen.grid_hw[1] * 14, seen.grid_hw[0] * 14)
        pairs = [
            [
                self.writer.answer_row(self.draw(seen, place, [time_s], rng), [time_s], size)
                for _ in range(self.plan.answers)
            ]
            for place, time_s in enumerate(times)
        ]
        return self._written_loss(seen.merged[:count], pairs, seen.grid_hw)

    def video_loss(
        self, seen: Seen, times_s: list[float], step_s: float, rng: np.random.Generator
    ) -> Tensor:
        """Return how badly the boxes of several frames are written."""
        size = (seen.grid_hw[1] * 14, seen.grid_hw[0] * 14)
        lessons = [
            draw_lesson(
                rng, seen.truths, times_s, seen.procedures[0], in_full=bool(rng.random() < 0.5)
            )
            for _ in range(self.plan.answers)
        ]
        pairs = [self.writer.answer_row(one, times_s, size) for one in lessons if one is not None]
        if not pairs:
            return torch.zeros(())
        frames = seen.merged.flatten(0, 1)[None]  # (1, T * cells, D)
        return self._written_loss(frames, [pairs], seen.grid_hw, step_s=step_s)

    def query_loss(self, seen: Seen, rng: np.random.Generator) -> Tensor:
        """Return how badly detector phrases are written."""
        rows = []
        for place in range(self.plan.queries):
            lesson = self.draw(seen, place % len(seen.truths), draw_times(rng, 1), rng)
            rows.append(self.writer.query_row(lesson))
        ids, labels = _padded([r[0] for r in rows], 0), _padded([r[1] for r in rows], NOT_LEARNT)
        language = self.model.model.language_model
        places = torch.arange(ids.shape[1]).expand(3, len(ids), -1)
        states, _ = read(language, language.embed_tokens(ids), places)
        return self._word_loss(states, labels)

    def _written_loss(
        self,
        merged: Tensor,
        pairs: Sequence[Sequence[tuple[list[int], list[int]]]],
        grid_hw: tuple[int, int],
        *,
        step_s: float = 1.0,
    ) -> Tensor:
        rows = [[row for row, _ in group] for group in pairs]
        labels = [[label for _, label in group] for group in pairs]
        states, _, tail_labels = self._read_rows(
            merged, rows, labels, grid_hw, self.writer.video, step_s=step_s
        )
        return self._word_loss(states.flatten(0, 1), tail_labels.flatten(0, 1))

    def _word_loss(self, states: Tensor, labels: Tensor) -> Tensor:
        wanted = labels[:, 1:]
        learnt = wanted != NOT_LEARNT
        logits = self.model.lm_head(states[:, :-1][learnt])
        return F.cross_entropy(logits, wanted[learnt])

    def _read_rows(
        self,
        merged: Tensor,
        rows: Sequence[Sequence[list[int]]],
        labels: Sequence[Sequence[list[int]]] | None,
        grid_hw: tuple[int, int],
        placeholder: int,
        *,
        step_s: float = 1.0,
        watched: dict[int, tuple[Tensor, Tensor]] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read rows about (B, tokens, D) pictures: states, lengths and labels of their own parts.

        What all rows of a picture begin with is read once; the rest is (B, S, L).
        """
        tokens = merged.shape[1]
        shared = min(shared_length(group) for group in rows)
        prefix = torch.tensor([spread(group[0][:shared], placeholder, tokens) for group in rows])
        tails = [row[shared:] for group in rows for row in group]
        branches = len(rows[0])
        ids = _padded(tails, 0)
        lengths = torch.tensor([len(tail) for tail in tails]).reshape(len(rows), branches)
        language = self.model.model.language_model
        begun = language.embed_tokens(prefix)
        pictures = (prefix == placeholder)[..., None].expand_as(begun)
        begun = begun.masked_scatter(pictures, merged)
        places = self._places(prefix[:1], placeholder, tokens, grid_hw, step_s)
        own = language.embed_tokens(ids).reshape(len(rows), branches, ids.shape[1], -1)
        _, states = read(language, begun, places.expand(-1, len(rows), -1), own, watched)
        if states is None:
            raise ValueError("no rows to read")
        if labels is None:
            return states, lengths, torch.empty(0)
        flat = [label[shared:] for group in labels for label in group]
        return states, lengths, _padded(flat, NOT_LEARNT).reshape(len(rows), branches, -1)

    def _places(
        self,
        prefix: Tensor,
        placeholder: int,
        tokens: int,
        grid_hw: tuple[int, int],
        step_s: float,
    ) -> Tensor:
        """Return the (3, 1, P) rotary places of a beginning, as the library counts them."""
        steps = tokens // (grid_hw[0] // 2 * (grid_hw[1] // 2))
        places, _ = self.model.model.get_rope_index(
            prefix,
            mm_token_type_ids=(prefix == placeholder).int() * 2,
            video_grid_thw=torch.tensor([[steps, *grid_hw]]),
            second_per_grid_ts=torch.tensor([step_s]),
        )
        found: Tensor = places
        return found


def _padded(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
    return torch.tensor(list(zip(*itertools.zip_longest(*rows, fillvalue=filler), strict=True)))


def plan_json(plan: LanguagePlan) -> dict[str, Any]:
    """Return a plan as plain values, as it comes back from a file."""
    told = asdict(plan)
    told["size"]["full_blocks"] = list(plan.size.full_blocks)
    return told
