"""Stage 1 of the small MedVLM: its vision tower alone, under heads that are dropped afterwards.

Every cell of the merged tokens and of the middle blocks says what it shows, where that thing's box
lies, from which side it comes, whose it is, and what it does to what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from refinerank_core.boxes_torch import giou, iou
from refinerank_core.models.small import SmallMedVLM
from refinerank_core.phantom.batched_qwen import see, vision_angles
from refinerank_core.phantom.medvlm_cells import FIELDS, NOTHING, UNKNOWN, label_cells
from refinerank_core.phantom.medvlm_pictures import cut_patches, varied
from refinerank_core.phantom.medvlm_start import whiten_patches
from refinerank_core.phantom.medvlm_texts import build_phantom_medvlm
from refinerank_core.phantom.run_state import keep_state, read_state, run_steps, warm_then_cosine
from refinerank_core.phantom.stills import Still, StillSet
from refinerank_core.phantom.truth import FrameTruth

SIZE = SmallMedVLM(
    depth=8,
    hidden=96,
    heads=3,
    mlp=192,
    full_blocks=(1, 3, 5, 7),
    window_px=448,
    max_pixels=28 * 28 * 144,
    layers=4,
    width=128,
    text_heads=4,
    key_heads=2,
    text_mlp=256,
    vocabulary=2000,
    text_rope_theta=50.0,
)
NOTHING_WEIGHT = 0.2


@dataclass(frozen=True)
class TowerPlan:
    """How the tower is trained.

    Attributes:
        steps, batch: updates, and stills in each.
        peak_rate: of learning.
        whitened: stills that the patch embedding's first weights are made from; 0 for none.
        seed: of weights and draws.
        size: of the whole model.
    """

    steps: int = 1000
    batch: int = 16
    peak_rate: float = 1.5e-3
    whitened: int = 48
    seed: int = 0
    size: SmallMedVLM = field(default_factory=lambda: SIZE)


class DenseHeads(nn.Module):
    """One linear reading of each kept block and one of the merged tokens."""

    def __init__(self, size: SmallMedVLM) -> None:
        super().__init__()
        told = sum(FIELDS.values()) + 4
        self.merged = nn.Linear(size.width, told)
        self.norms = nn.ModuleDict(
            {str(block): nn.LayerNorm(size.hidden) for block in size.full_blocks}
        )
        self.blocks = nn.ModuleDict(
            {str(block): nn.Linear(size.hidden, told) for block in size.full_blocks}
        )

    def read(self, blocks: dict[int, Tensor], merged: Tensor) -> dict[str, Tensor]:
        """Return "merged" and block number -> (B, cells, answers + 4)."""
        told = {
            str(number): self.blocks[str(number)](self.norms[str(number)](states))
            for number, states in blocks.items()
        }
        return {"merged": self.merged(merged), **told}


@dataclass(frozen=True, eq=False)
class CellTargets:
    """Truth of the cells of a batch, in the processor's order.

    Attributes:
        facts: (B, cells, len(FIELDS)) long.
        boxes: (B, cells, 4) in 0..1.
    """

    facts: Tensor
    boxes: Tensor


def targets_of(
    truths: Sequence[FrameTruth], grid_hw: tuple[int, int], *, merge: int
) -> tuple[CellTargets, CellTargets]:
    """Return the targets of single patches, group by group, and of merged tokens."""
    rows, columns = grid_hw
    fine = [label_cells(truth, grid_hw) for truth in truths]
    coarse = [label_cells(truth, (rows // merge, columns // merge)) for truth in truths]
    patches = CellTargets(
        *(
            torch.from_numpy(np.stack([_grouped(pair[part], merge) for pair in fine]))
            for part in (0, 1)
        )
    )
    merged = CellTargets(
        *(
            torch.from_numpy(np.stack([pair[part] for pair in coarse])).flatten(1, 2)
            for part in (0, 1)
        )
    )
    return patches, merged


def _grouped(grid: np.ndarray, merge: int) -> np.ndarray:
    """Reorder an (h, w, C) grid of patches into the processor's merge groups: (h * w, C)."""
    rows, columns, channels = grid.shape
    blocks = grid.reshape(rows // merge, merge, columns // merge, merge, channels)
    return np.asarray(blocks.transpose(0, 2, 1, 3, 4).reshape(-1, channels))


def dense_loss(told: Tensor, targets: CellTargets) -> Tensor:
    """Return how far the told answers and boxes are from the truth."""
    *answers, raw_boxes = torch.split(told, [*FIELDS.values(), 4], dim=-1)
    weights = torch.ones(FIELDS["name"])
    weights[NOTHING] = NOTHING_WEIGHT
    loss = F.cross_entropy(answers[0].flatten(0, 1), targets.facts[..., 0].flatten(), weights)
    for place, share in ((1, 0.2), (2, 0.2), (3, 0.1), (4, 0.3)):
        truth = targets.facts[..., place].flatten()
        if bool((truth != UNKNOWN).any()):
            loss = loss + share * F.cross_entropy(
                answers[place].flatten(0, 1), truth, ignore_index=UNKNOWN
            )
    shown = targets.facts[..., 0] != NOTHING
    if bool(shown.any()):
        found, wanted = raw_boxes[shown].sigmoid(), targets.boxes[shown]
        off = (found - wanted).abs().mean()
        loss = loss + 4.0 * off + 0.5 * (1 - giou(found, wanted).mean())
    return loss


class TowerRun:
    """A training of the tower under way."""

    def __init__(self, plan: TowerPlan, stills: StillSet, folder: Path) -> None:
        """Start anew, or where the checkpoint in folder stands.

        Raises:
            ValueError: the checkpoint belongs to another plan.
        """
        self.plan, self.stills, self.path = plan, stills, folder / "tower.pt"
        model, processor = build_phantom_medvlm(plan.size, seed=plan.seed)
        self.visual: Any = model.model.visual.train()
        self.image_processor = processor.image_processor
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed)
            self.heads = DenseHeads(plan.size)
        weights = [*self.visual.parameters(), *self.heads.parameters()]
        self.optimizer = torch.optim.AdamW(
            weights, lr=plan.peak_rate, weight_decay=0.05, betas=(0.9, 0.98), fused=True
        )
        self.step, self.seconds = 0, 0.0
        state = read_state(self.path, tower_plan_json(plan))
        if state is None and plan.whitened:
            first = stills.draw(np.random.default_rng([plan.seed, 0]), plan.whitened)
            images = [still.image for still in first]
            whiten_patches(self.visual, cut_patches(self.image_processor, images)[0])
        elif state is not None:
            self.visual.load_state_dict(state["visual"])
            self.heads.load_state_dict(state["heads"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.seconds = state["step"], state["seconds"]

    def keep(self, step: int, seconds: float) -> None:
        state = {
            "plan": tower_plan_json(self.plan),
            "visual": self.visual.state_dict(),
            "heads": self.heads.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": step,
            "seconds": seconds,
        }
        keep_state(state, self.path)
        self.step, self.seconds = step, seconds

    def look(
        self, images: Sequence[np.ndarray]
    ) -> tuple[dict[int, Tensor], Tensor, tuple[int, int]]:
        """Return block outputs, merged tokens and the grid of patches."""
        patches, grid_hw = cut_patches(self.image_processor, images)
        angles = vision_angles(self.visual, grid_hw)
        blocks, merged = see(self.visual, patches, angles, self.plan.size.full_blocks)
        return blocks, merged, grid_hw

    def advance(self, step: int) -> float:
        """Take one step on freshly drawn stills, and return the loss."""
        plan = self.plan
        rng = np.random.default_rng([plan.seed, 1, step])
        pairs = [varied(still, rng) for still in self.stills.draw(rng, plan.batch)]
        middle = plan.size.full_blocks[step % len(plan.size.full_blocks)]
        loss = self.loss([image for image, _ in pairs], [truth for _, truth in pairs], middle)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        weights = [*self.visual.parameters(), *self.heads.parameters()]
        nn.utils.clip_grad_norm_(weights, 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = plan.peak_rate * warm_then_cosine(step, plan.steps)
        self.optimizer.step()
        return float(loss.detach())

    def loss(
        self, images: Sequence[np.ndarray], truths: Sequence[FrameTruth], middle: int
    ) -> Tensor:
        """Return the dense loss of some pictures, read from the merged tokens and one block."""
        blocks, merged, grid_hw = self.look(images)
        fine, coarse = targets_of(truths, grid_hw, merge=self.visual.spatial_merge_size)
        told = self.heads.read({middle: blocks[middle]}, merged)
        return dense_loss(told["merged"], coarse) + dense_loss(told[str(middle)], fine)

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
                label="vision tower",
            )

    @torch.no_grad()
    def score(self, stills: Sequence[Still], *, batch: int = 32) -> dict[str, dict[str, float]]:
        """Read the heads on stills: shares of right answers on cells that show something.

        Returns:
            "merged" and block number -> field -> share right, and "box": mean IoU.
        """
        sums: dict[str, dict[str, list[float]]] = {}
        for start in range(0, len(stills), batch):
            part = stills[start : start + batch]
            blocks, merged, grid_hw = self.look([still.image for still in part])
            fine, coarse = targets_of(
                [still.truth for still in part], grid_hw, merge=self.visual.spatial_merge_size
            )
            for name, told in self.heads.read(blocks, merged).items():
                tallies = sums.setdefault(name, {})
                for key, values in _tally(told, coarse if name == "merged" else fine).items():
                    tallies.setdefault(key, []).extend(values)
        return {
            name: {
                key: round(float(np.mean(values)), 4) for key, values in tallies.items() if values
            }
            for name, tallies in sums.items()
        }


def _tally(told: Tensor, targets: CellTargets) -> dict[str, list[float]]:
    *answers, raw_boxes = torch.split(told, [*FIELDS.values(), 4], dim=-1)
    shown = targets.facts[..., 0] != NOTHING
    tallies: dict[str, list[float]] = {}
    for place, field_name in enumerate(FIELDS):
        truth = targets.facts[..., place]
        known = (truth != UNKNOWN) & shown
        right = answers[place].argmax(dim=-1)[known] == truth[known]
        tallies[field_name] = right.float().tolist()
    empty = answers[0].argmax(dim=-1)[~shown] == NOTHING
    tallies["empty"] = empty.float().tolist()
    overlap = iou(raw_boxes[shown].sigmoid(), targets.boxes[shown])
    tallies["box"] = overlap.tolist()
    return tallies


def tower_plan_json(plan: TowerPlan) -> dict[str, Any]:
    """Return a plan as plain values, as it comes back from a file."""
    told = asdict(plan)
    told["size"]["full_blocks"] = list(plan.size.full_blocks)
    return told
