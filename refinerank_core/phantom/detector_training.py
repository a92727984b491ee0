"""Train the embedded GroundingDINO on phantom stills."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from refinerank_core.models.detector import DetectorSettings, GroundingDino
from refinerank_core.models.small import SmallDetector, build_detector, save
from refinerank_core.phantom.detector_batches import Batch, prepare
from refinerank_core.phantom.detector_captions import caption_words
from refinerank_core.phantom.detector_loss import (
    Wanted,
    dense_loss,
    encoder_tokens,
    layer_outputs,
    set_loss,
)
from refinerank_core.phantom.detector_scores import score_detector
from refinerank_core.phantom.run_state import keep_state, load_weights, revision, write_card
from refinerank_core.phantom.stills import StillSet

SMALL = SmallDetector(
    embed=32,
    depths=(1, 1, 2, 1),
    heads=(1, 2, 4, 8),
    width=64,
    queries=60,
    encoder_layers=1,
    decoder_layers=2,
    feed_forward=128,
    short_side=198,
    long_side=352,
)

FINE = replace(SMALL, short_side=252, long_side=448)

_NORM_SCALE = 0.25
_SCORED = 144  # validation stills that a finished detector is scored on


@dataclass(frozen=True)
class Stage:
    """What the updates of a training look at, from a step on.

    Attributes:
        first: the step that it begins with.
        batch: stills in an update.
        size_wh: of the pictures in pixels.
    """

    first: int
    batch: int
    size_wh: tuple[int, int]


FROM_SEED = (Stage(0, 8, (256, 144)), Stage(1750, 4, (352, 198)))
GOING_ON = (Stage(0, 4, (448, 252)),)


@dataclass(frozen=True)
class DetectorPlan:
    """How a detector is trained.

    Attributes:
        stages: what is looked at, in order, the first from step 0.
        steps: all updates.
        copies: queries that each thing is assigned to in the set loss; 12 raw boxes are kept of a
            frame, so a few near-doubles of each tool do more for recall than one box does.
        peak_rate: learning rate between warm-up and cooling.
        warm_steps: steps of rising rate, in which the set loss counts little.
        cool_steps: last steps, in which the rate falls to a hundredth.
        seed: of the weights and of every draw.
        keep_every: steps between checkpoints.
        threads: of torch; part of the plan because sums depend on it in the last bit.
    """

    stages: tuple[Stage, ...] = FROM_SEED
    steps: int = 3000
    copies: int = 3
    peak_rate: float = 7e-4
    weight_decay: float = 1e-4
    warm_steps: int = 100
    cool_steps: int = 300
    seed: int = 0
    keep_every: int = 100
    threads: int = 1
    size: SmallDetector = field(default_factory=lambda: SMALL)

    def stage_at(self, step: int) -> Stage:
        """Return the last stage that has begun."""
        return [stage for stage in self.stages if stage.first <= step][-1]


@dataclass(eq=False)
class DetectorRun:
    """A training under way: everything that a checkpoint holds.

    Attributes:
        started_from: the name and hash of the weights it began with, "" for seeded ones.
    """

    plan: DetectorPlan
    model: Any
    processor: Any
    optimizer: torch.optim.Optimizer
    step: int = 0
    seconds: float = 0.0
    started_from: str = ""

    @classmethod
    def start(cls, plan: DetectorPlan, folder: Path, weights: Path | None = None) -> DetectorRun:
        """Seeded weights or given ones, or the checkpoint in folder when there is one.

        Args:
            plan: how to train.
            folder: of the training's own checkpoint.
            weights: a finished detector of the same size to go on from.

        Raises:
            ValueError: the checkpoint belongs to another plan.
        """
        folder.mkdir(parents=True, exist_ok=True)
        torch.set_num_threads(plan.threads)
        model, processor = build_detector(plan.size, caption_words(), folder, seed=plan.seed)
        start_rarely(model, plan.size.width)
        wake_boxes(model, seed=plan.seed)
        started_from = ""
        if weights is not None:
            started_from = load_weights(model, processor, weights)
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=plan.peak_rate, weight_decay=plan.weight_decay
        )
        run = cls(plan, model.train(), processor, optimizer, started_from=started_from)
        path = folder / "state.pt"
        if path.is_file():
            state = torch.load(path, weights_only=True)
            same_start = state.get("started_from", "") == started_from
            if _fixed(state["plan"]) != _fixed(_as_json(plan)) or not same_start:
                raise ValueError(f"{folder.name} holds a checkpoint of another plan. Empty it.")
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            run.step, run.seconds = state["step"], state["seconds"]
        return run

    def keep(self, folder: Path) -> None:
        """Write the checkpoint, whole or not at all."""
        state = {
            "plan": _as_json(self.plan),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "started_from": self.started_from,
        }
        keep_state(state, folder / "state.pt")

    def advance(self, stills: StillSet) -> float:
        """One update on freshly drawn stills; returns the loss.

        Every draw follows from the seed and the step, so a resumed run is the run.
        """
        plan = self.plan
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(self.step, plan)
        torch.manual_seed(plan.seed * 1_000_003 + self.step)
        rng = np.random.default_rng([plan.seed, self.step])
        stage = plan.stage_at(self.step)
        picked = stills.draw(rng, stage.batch)
        batch = prepare(rng, picked, self.processor, stage.size_wh)
        share = 0.1 if self.step < plan.warm_steps else 1.0
        loss = detector_loss(self.model, batch, decoder_share=share, copies=plan.copies)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        return float(loss.detach())


def train_detector(
    plan: DetectorPlan,
    stills: StillSet,
    folder: Path,
    *,
    weights: Path | None = None,
    stop_after: int | None = None,
) -> DetectorRun:
    """Train, or go on after the last checkpoint in folder.

    Args:
        plan: how.
        stills: training stills of all procedures.
        folder: of the checkpoint and the tokenizer.
        weights: a finished detector to go on from; None starts from the seed.
        stop_after: leave after this many steps in all, with a checkpoint.
    """
    run = DetectorRun.start(plan, folder, weights)
    last = plan.steps if stop_after is None else min(stop_after, plan.steps)
    recent: list[float] = []
    with tqdm(total=plan.steps, initial=run.step, desc="detector", unit="step") as bar:
        while run.step < last:
            started = time.perf_counter()
            recent = [*recent[-49:], run.advance(stills)]
            run.seconds += time.perf_counter() - started
            bar.set_postfix(loss=f"{np.mean(recent):.3f}", refresh=False)
            bar.update()
            if run.step % plan.keep_every == 0 or run.step == last:
                run.keep(folder)
    return run


def start_rarely(model: Any, width: int) -> None:
    """Set the norms before the class heads so that every first score is near 0.02.

    The heads are dot products without a bias: a constant in the text features times its opposite
    in the picture's gives the -4 that focal losses want to start from.
    """
    text = model.model.encoder.layers[-1].text_enhancer_layer.layer_norm_after
    with torch.no_grad():
        text.bias.fill_(0.5)
        for norm in (model.model.enc_output_norm, model.model.decoder.layer_norm):
            norm.weight.fill_(_NORM_SCALE)
            norm.bias.fill_(-4.0 / (0.5 * width))


def wake_boxes(model: Any, *, seed: int) -> None:
    """Give the encoder's box head first weights that let shape through; hold the decoder's at 0.

    The library starts the last layers at 0, and `start_rarely` makes the encoder head's inputs
    small: from there the sides of a box stay at their mean for a thousand steps. The decoder's
    queries begin without any content, and in trainings as short as this its moves made the
    encoder's boxes worse (best box of all 0.69 without, 0.59 with them): it scores and does not
    move.
    """
    head = model.model.encoder_output_bbox_embed
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for layer, gain in zip(head.layers, (2**0.5 / _NORM_SCALE, 2**0.5, 0.1), strict=True):
            torch.nn.init.normal_(layer.weight, std=gain / layer.in_features**0.5)
            torch.nn.init.zeros_(layer.bias)
        for head in model.bbox_embed:
            torch.nn.init.zeros_(head.layers[-1].weight)
            torch.nn.init.zeros_(head.layers[-1].bias)
    model.bbox_embed.requires_grad_(False)


def rate_at(step: int, plan: DetectorPlan) -> float:
    """Learning rate of a step: a linear rise, a plateau, a linear fall to a hundredth.

    On the plateau nothing depends on the number of steps: a run may go on with more or fewer.
    """
    rise = (step + 1) / plan.warm_steps
    fall = (plan.steps - step) / plan.cool_steps
    return plan.peak_rate * max(0.01, min(rise, 1.0, fall))


def detector_loss(model: Any, batch: Batch, *, decoder_share: float, copies: int) -> Tensor:
    """Dense loss of the encoder plus the set losses of all decoder layers.

    Args:
        model: GroundingDinoForObjectDetection.
        batch: pictures under one caption.
        decoder_share: weight of the set losses.
        copies: queries that each thing is assigned to.
    """
    count, tokens = len(batch.pixels), len(batch.caption.phrase_of_token)
    inputs = {name: tensor.expand(count, -1) for name, tensor in batch.caption.inputs.items()}
    output = model(pixel_values=batch.pixels, **inputs)
    height, width = batch.pixels.shape[-2:]
    loss = dense_loss(
        output.enc_outputs_class[..., :tokens],
        output.enc_outputs_coord_logits.sigmoid(),
        batch.wanted,
        encoder_tokens((height, width)),
    )
    repeated = [Wanted(w.boxes.repeat(copies, 1), w.owed.repeat(copies, 1)) for w in batch.wanted]
    for logits, boxes in layer_outputs(model, output, inputs["attention_mask"]):
        loss = loss + decoder_share * set_loss(logits[..., :tokens], boxes, repeated)
    return loss


def finish_detector(
    run: DetectorRun,
    stills: StillSet,
    validation: StillSet | None,
    folder: Path,
    *,
    command: str = "",
) -> dict[str, Any]:
    """Write the checkpoint that the adapter loads, score it, and write its card.

    Args:
        run: a training that is done.
        stills: what it was trained on.
        validation: what it is scored on, None for no scores.
        folder: of the checkpoint.
        command: as typed, for the card.

    Returns:
        The card.
    """
    save(run.model.eval(), run.processor, folder)
    settings = DetectorSettings(source=str(folder))
    card: dict[str, Any] = {
        "plan": _as_json(run.plan),
        "steps": run.step,
        "seconds": round(run.seconds),
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "data": {"purpose": "training", "stills": len(stills), "seeds": seeds_of(stills)},
        "revision": revision(),
        "started_from": run.started_from,
        "command": command,
    }
    if validation is not None:
        detector = GroundingDino(settings, torch.device("cpu"))
        step = max(1, len(validation) // _SCORED)
        card["scores"] = score_detector(
            detector, [validation[k] for k in range(0, len(validation), step)]
        )
    write_card(card, folder / "card.json")
    return card


def seeds_of(stills: StillSet) -> dict[str, list[int]]:
    """First and last scene seed of each procedure, and how many scenes."""
    found: dict[str, set[int]] = {}
    for record in stills.records:
        found.setdefault(record["procedure"], set()).add(record["seed"])
    return {name: [min(seeds), max(seeds), len(seeds)] for name, seeds in sorted(found.items())}


def _fixed(plan: dict[str, Any]) -> dict[str, Any]:
    """What of a plan must not change between a checkpoint and its going on."""
    free = ("steps", "stages", "cool_steps")
    return {name: value for name, value in plan.items() if name not in free}


def _as_json(plan: DetectorPlan) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(asdict(plan)))
    return plain
