"""What the options beyond the paper are worth, measured on the phantom study's evaluation side.

Every option is laid beside the paper's defaults on the same RefineNets and the same questions:
re-encoding of refined boxes, smoothing over time, an ensemble of the seeds, calibrated scores. The
calibration is fitted on the validation side alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from refinerank_core.boxes import iou
from refinerank_core.calibration import Calibration, fit_calibration
from refinerank_core.decode import filter_and_choose, smooth_over_time
from refinerank_core.errors import RefineRankError
from refinerank_core.frozen_steps import Backbones
from refinerank_core.intervals import paired_difference, row_scores
from refinerank_core.joint_pool import Outcome, chosen_boxes, outcomes
from refinerank_core.models.protocols import Encoding
from refinerank_core.phantom.examples import ExamplePlan, ExampleSet, ask_scene
from refinerank_core.phantom.refinenet_training import (
    EVALUATION,
    QUICK_EVALUATION,
    QUICK_TRAINING,
    TRAINING,
    VALIDATION,
    config_for,
    side_of,
    widths_of,
)
from refinerank_core.phantom.rows import video_id
from refinerank_core.phantom.run_state import command_line, revision
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.seeds import seed_for
from refinerank_core.phantom.study import require_split
from refinerank_core.phantom.study_figures import Side, split_facts
from refinerank_core.profiles import load_profile
from refinerank_core.reencode import reencoded
from refinerank_core.refinenet import RefineNet
from refinerank_core.reliability import as_share, reliability
from refinerank_core.structures import Frame
from refinerank_core.study import SEEDS, StudyPlan, StudySet, train
from refinerank_core.study_figures import line_of

PAPER = "paper"
OPTIONS = (PAPER, "reencode", "smooth", "ensemble")
_DIGITS = 4

Found = list[list[Outcome]]
"""What one RefineNet, or an ensemble, says of each data set."""


def beyond_of_profile(
    profile_name: str,
    work: Path,
    *,
    quick: bool,
    scenes: int | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure every option; features and RefineNets are those of the study in its work folder.

    Args:
        profile_name: profile of the frozen models.
        work: as given to the study; what is missing there is made.
        quick: the quick study's sides.
        scenes: training videos of each procedure, None for the plan's own.
        told: called with a line now and then.
    """
    began = time.perf_counter()
    profile = load_profile(profile_name)
    backbones = Backbones.load(profile, torch.device("cpu"))
    plan = QUICK_EVALUATION if quick else EVALUATION
    taught = QUICK_TRAINING if quick else TRAINING
    training = side_of(backbones, replace(taught, scenes=scenes or taught.scenes), work)
    evaluation, validation = side_of(backbones, plan, work), side_of(backbones, VALIDATION, work)
    require_split(training, evaluation)
    require_split(training, validation)
    require_split(validation, evaluation)
    config = config_for(profile, widths_of(training))
    nets = [
        train(training.for_study(), config, StudyPlan(seed, work=work)).net.eval() for seed in SEEDS
    ]
    del training
    told(f"{len(nets)} RefineNets are there")
    found = option_outcomes(backbones, nets, evaluation, plan)
    told("options measured")
    figures = compare_options(found, evaluation.for_study())
    answers = [outcomes(net, one.features) for net in nets for one in validation.sets]
    labels = [one.labels.boxes for _ in nets for one in validation.sets]
    scores, reached = _answers(answers, labels)
    calibration = fit_calibration(scores.tolist(), reached.tolist())
    return {
        **figures,
        "calibration": calibration_figures(calibration, found[PAPER], evaluation),
        "procedures": list(evaluation.names),
        "seeds": list(SEEDS),
        "split": {"validation": split_facts(validation), "eval": split_facts(evaluation)},
        "quick": quick,
        "models": list(backbones.model_ids),
        "seconds": round(time.perf_counter() - began),
        "command": command_line(),
        "revision": revision(),
    }


def option_outcomes(
    backbones: Backbones, nets: Sequence[RefineNet], side: Side, plan: ExamplePlan
) -> dict[str, list[Found]]:
    """What each option says: option -> one entry a seed (an ensemble has one) -> data sets."""
    paper = [[outcomes(net, one.features) for one in side.sets] for net in nets]
    return {
        PAPER: paper,
        "reencode": reencoded_outcomes(backbones, nets, paper, side, plan),
        "smooth": [
            [smoothed_outcomes(each, one) for each, one in zip(found, side.sets, strict=True)]
            for found in paper
        ],
        "ensemble": [[outcomes(nets, one.features) for one in side.sets]],
    }


def smoothed_outcomes(found: Sequence[Outcome], one: ExampleSet) -> list[Outcome]:
    """The choices of each question along its times, made so that the box does not jump."""
    smooth = list(found)
    rows = np.array(one.features.rows)
    for row in dict.fromkeys(one.features.rows):
        at = np.flatnonzero(rows == row)
        places = [int(k) for k in at[np.argsort(one.features.times_s[at], kind="stable")]]
        mine = [found[place] for place in places]
        chosen = smooth_over_time(
            [each.ranking for each in mine],
            [each.pool for each in mine],
            [each.refinement for each in mine],
        )
        for place, each, ranking in zip(places, mine, chosen, strict=True):
            smooth[place] = replace(each, ranking=ranking)
    return smooth


def reencoded_outcomes(
    backbones: Backbones,
    nets: Sequence[RefineNet],
    paper: Sequence[Found],
    side: Side,
    plan: ExamplePlan,
) -> list[Found]:
    """Every refined box scored by the features inside it; the frames are drawn again for that.

    Raises:
        RefineRankError: the examples are not those of this plan.
    """
    again: list[Found] = [[[] for _ in side.sets] for _ in nets]
    for place, one in enumerate(side.sets):
        for k, (frame, video) in enumerate(_frames(plan, one)):
            vision = backbones.medvlm.see([frame], video)[0]
            encoding = Encoding(torch.from_numpy(one.features.q_last[k]), vision)
            for net, found, outs in zip(nets, paper, again, strict=True):
                outs[place].append(_reencoded(net, found[place][k], encoding, frame.size_wh))
    return again


def _reencoded(
    net: RefineNet, one: Outcome, encoding: Encoding, size_wh: tuple[int, int]
) -> Outcome:
    block = net.config.inter_block
    refinement = reencoded(
        net, encoding, one.pool, one.refinement, size_wh=size_wh, inter_block=block
    )
    return Outcome(one.pool, refinement, filter_and_choose(one.pool, refinement))


def _frames(plan: ExamplePlan, one: ExampleSet) -> list[tuple[Frame, str]]:
    """The frame behind each example, drawn again, and its video."""
    drawn = list(_drawn(plan, one.features.dataset))
    times = [frame.time_s for frame, _ in drawn]
    videos = tuple(video for _, video in drawn)
    if videos != one.features.videos or not np.allclose(times, one.features.times_s, atol=1e-3):
        raise RefineRankError("The kept examples are of another plan. Use another work folder.")
    return drawn


def _drawn(plan: ExamplePlan, procedure: str) -> Iterator[tuple[Frame, str]]:
    for number in range(plan.first_scene, plan.first_scene + plan.scenes):
        scene = Scene.from_seed(seed_for(plan.purpose, number), procedure)
        for _, frames in ask_scene(scene, plan):
            yield from ((frame, video_id(scene)) for frame in frames)


def compare_options(
    found: Mapping[str, Sequence[Found]], sets: Sequence[StudySet]
) -> dict[str, Any]:
    """Tables of the options, and each less the paper's defaults.

    Returns:
        options: option -> data set or "average" -> {mean, spread} over seeds; differences: option
        -> the same -> {mean, low, high, p, videos} over videos, of each row's mean over the seeds;
        changed: option -> share of the answers that are other boxes than the paper's.
    """
    reached = {
        option: {
            one.features.dataset: np.array(
                [iou(chosen_boxes(each[k]), one.labels.boxes) for each in seeds]
            )
            for k, one in enumerate(sets)
        }
        for option, seeds in found.items()
    }
    scores = {
        option: {
            one.features.dataset: row_scores(
                columns[one.features.dataset].mean(axis=0), one.features.rows, one.features.videos
            )
            for one in sets
        }
        for option, columns in reached.items()
    }
    return {
        "options": {option: line_of(columns, sets) for option, columns in reached.items()},
        "differences": {
            option: {
                name: {key: _plain(value) for key, value in asdict(gap).items()}
                for name, gap in paired_difference(scores[option], scores[PAPER]).items()
            }
            for option in found
            if option != PAPER
        },
        "changed": {
            option: round(_changed(seeds, found[PAPER]), _DIGITS)
            for option, seeds in found.items()
            if option != PAPER
        },
    }


def _changed(seeds: Sequence[Found], paper: Sequence[Found]) -> float:
    """Share of answers whose box is another than the paper's, over the seeds that there are."""
    other = [
        not np.array_equal(box, before)
        for one, base in zip(seeds, paper, strict=False)
        for mine, theirs in zip(one, base, strict=True)
        for box, before in zip(chosen_boxes(mine), chosen_boxes(theirs), strict=True)
    ]
    return float(np.mean(other))


def calibration_figures(
    calibration: Calibration, found: Sequence[Found], side: Side
) -> dict[str, Any]:
    """Reliability of the evaluation side's answers before and after, all seeds together."""
    labels = [one.labels.boxes for _ in found for one in side.sets]
    scores, reached = _answers([each for seed in found for each in seed], labels)
    before = reliability(as_share(scores), reached).as_json()
    after = reliability(calibration.expected_iou(scores), reached).as_json()
    return {
        "method": "isotonic",
        "meaning": "expected IoU of an answer, against the IoU that it reaches",
        "fitted_on": "validation",
        "knots": [list(knot) for knot in calibration.knots],
        "ece": {"before": before["error"], "after": after["error"]},
        "bins": {"before": before, "after": after},
    }


def _answers(
    found: Sequence[Sequence[Outcome]], labels: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the answers and the IoU that they reach."""
    scores = [one.ranking.chosen.score for each in found for one in each]
    reached = [iou(chosen_boxes(each), boxes) for each, boxes in zip(found, labels, strict=True)]
    return np.array(scores), np.concatenate(reached)


def _plain(value: float) -> float:
    return round(value, _DIGITS) if isinstance(value, float) else value
