"""The detector's captions, losses and training loop."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from refinerank_core.boxes import iou as box_iou
from refinerank_core.models.detector import DetectorSettings, GroundingDino
from refinerank_core.models.small import SmallDetector, build_detector, save
from refinerank_core.phantom.detector_batches import prepare, things_of, vary
from refinerank_core.phantom.detector_captions import (
    KIN,
    caption_words,
    draw_caption,
    owed,
    phrases_of,
    read_caption,
)
from refinerank_core.phantom.detector_loss import (
    Wanted,
    assign,
    corners,
    dense_loss,
    encoder_tokens,
    nearest_tokens,
    set_loss,
    varifocal,
)
from refinerank_core.phantom.detector_training import (
    DetectorPlan,
    DetectorRun,
    Stage,
    detector_loss,
    finish_detector,
    rate_at,
    train_detector,
)
from refinerank_core.phantom.stills import StillPlan, StillSet, make_stills
from refinerank_core.phantom.vocabulary import LADDERS, PROCEDURES
from refinerank_core.structures import Frame

TINY = SmallDetector(
    embed=16, depths=(1, 1, 1, 1), heads=(1, 1, 2, 2), width=32, queries=12, encoder_layers=1,
    decoder_layers=2, feed_forward=32, text_width=32, text_layers=1, short_side=72, long_side=128,
)  # fmt: skip
PLAN = DetectorPlan(
    stages=(Stage(0, 3, (64, 36)), Stage(1, 3, (128, 72))), steps=3, warm_steps=1,
    cool_steps=1, keep_every=1, threads=1, size=TINY,
)  # fmt: skip


@pytest.fixture(scope="module")
def stills(tmp_path_factory: pytest.TempPathFactory) -> StillSet:
    folder = tmp_path_factory.mktemp("stills")
    plan = StillPlan(
        "tests", PROCEDURES, first_scene=600, scenes=1, stills_per_scene=2, shard_scenes=1,
        size_wh=(160, 90),
    )  # fmt: skip
    make_stills(plan, folder)
    return StillSet(folder, "tests")


@pytest.mark.parametrize(
    ("name", "phrase", "due"),
    [
        pytest.param("hook", "surgical instrument", 1.0, id="general"),
        pytest.param("hook", "energy instrument", 1.0, id="category"),
        pytest.param("hook", "surgical hook", 1.0, id="as the rules write it"),
        pytest.param("hook", "grasper", KIN, id="another tool"),
        pytest.param("hook", "hand", 0.0, id="another kind"),
        pytest.param("own left hand", "assistant's left hand", KIN, id="another hand"),
        pytest.param("liver", "gallbladder", 0.0, id="another structure"),
    ],
)
def test_a_thing_owes_a_phrase_what_the_ladder_says(name: str, phrase: str, due: float) -> None:
    assert owed(name, phrase) == due


def test_every_drawn_caption_is_clean_and_made_of_known_words() -> None:
    words = set(caption_words())

    for seed in range(200):
        phrases = draw_caption(np.random.default_rng(seed), ["hook", "own left hand", "liver"])
        assert 1 <= len(phrases) <= 6
        assert {word for phrase in phrases for word in phrase.split()} <= words


def test_tokens_of_a_caption_carry_what_is_owed_to_their_phrase(tmp_path: Path) -> None:
    _, processor = build_detector(TINY, caption_words(), tmp_path, seed=0)

    caption = read_caption(processor.tokenizer, ("hook cautery", "grasper"))
    due = caption.owed_by(["hook", "liver"])

    # [CLS] hook cautery . grasper . [SEP]
    assert caption.phrase_of_token.tolist() == [-1, 0, 0, -1, 1, -1, -1]
    assert due[0].tolist() == pytest.approx([0, 1, 1, 0, KIN, 0, 0])
    assert due[1].tolist() == [0] * 7


def test_the_token_grid_is_the_models_own(tmp_path: Path) -> None:
    model, processor = build_detector(TINY, caption_words(), tmp_path, seed=0)
    text = read_caption(processor.tokenizer, ("hook",)).inputs

    with torch.inference_mode():
        output = model(pixel_values=torch.zeros(1, 3, 90, 140), **text)
    tokens = encoder_tokens((90, 140))

    assert output.enc_outputs_class.shape[1] == len(tokens.centres) == len(tokens.sides)


def test_varifocal_of_two_logits_is_the_value_worked_out_by_hand() -> None:
    loss = varifocal(torch.tensor([0.0, 0.0]), torch.tensor([0.8, 0.0]))

    assert float(loss) == pytest.approx((0.8 + 0.75 * 0.25) * np.log(2), rel=1e-5)


def test_a_box_is_answered_by_tokens_near_its_centre_and_of_its_size() -> None:
    tokens = encoder_tokens((128, 128))
    boxes = torch.tensor([[0.25, 0.25, 0.06, 0.06], [0.75, 0.75, 0.4, 0.4]])

    chosen, box = nearest_tokens(boxes, tokens)

    assert len(set(chosen.tolist())) == len(chosen)
    small, large = (tokens.sides[chosen[box == k]] for k in range(2))
    assert float(small.mean()) < float(large.mean())
    away = (tokens.centres[chosen] - boxes[box, :2]).abs().amax(dim=1)
    assert float(away.max()) < 0.25


def test_the_assignment_is_the_cheapest_of_all() -> None:
    from itertools import permutations

    rng = np.random.default_rng(0)
    logits = torch.tensor(rng.normal(0, 1, (4, 3)), dtype=torch.float32)
    boxes = torch.tensor(rng.uniform(0.2, 0.5, (4, 4)), dtype=torch.float32)
    one = Wanted(
        torch.tensor(rng.uniform(0.2, 0.5, (2, 4)), dtype=torch.float32),
        torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
    )

    query, box = assign(logits, boxes, one)

    def cost(q: int, b: int) -> float:
        from refinerank_core.boxes_torch import giou

        share = one.owed[b] / one.owed[b].sum()
        overlap = float(giou(corners(boxes[q]), corners(one.boxes[b])))
        distance = float((boxes[q] - one.boxes[b]).abs().sum())
        return -2 * float(logits[q].sigmoid() @ share) + 5 * distance - 2 * overlap

    cheapest = min(cost(p[0], 0) + cost(p[1], 1) for p in permutations(range(4), 2))
    found = sum(cost(int(q), int(b)) for q, b in zip(query, box, strict=True))
    assert found == pytest.approx(cheapest, abs=1e-5)


def test_perfect_boxes_and_scores_cost_next_to_nothing() -> None:
    tokens = encoder_tokens((64, 64))
    one = Wanted(torch.tensor([[0.5, 0.5, 0.2, 0.3]]), torch.tensor([[1.0, 0.0]]))
    chosen, _ = nearest_tokens(one.boxes, tokens)
    boxes = one.boxes.expand(1, len(tokens.centres), 4).clone()
    logits = torch.full((1, len(tokens.centres), 2), -20.0)
    logits[0, chosen, 0] = 20.0

    assert float(dense_loss(logits, boxes, [one], tokens)) < 1e-3
    assert float(set_loss(logits[:, chosen[:1]], boxes[:, :1], [one])) < 1e-3


def test_a_picture_without_anything_asked_for_still_gives_a_finite_loss(stills: StillSet) -> None:
    tokens = encoder_tokens((64, 64))
    none = Wanted(torch.zeros(0, 4), torch.zeros(0, 2))

    loss = dense_loss(
        torch.zeros(1, len(tokens.centres), 2),
        torch.rand(1, len(tokens.centres), 4),
        [none],
        tokens,
    )

    assert bool(torch.isfinite(loss))


def test_a_varied_picture_keeps_its_things_where_they_are(stills: StillSet) -> None:
    still = next(s for s in stills if s.truth.in_view("tool"))
    width, height = still.truth.size_wh
    names, boxes = things_of(still.truth, (0.0, 0.0, float(width), float(height)))

    assert set(names) <= set(LADDERS)
    for thing in still.truth.in_view("tool"):
        want = thing.box / np.tile(np.array(still.truth.size_wh), 2)
        found = np.concatenate(
            (boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2), 1
        )
        assert box_iou(found, want).max() > 0.99
    for seed in range(8):
        image, _, moved = vary(np.random.default_rng(seed), still, (128, 72))
        assert image.shape == (72, 128, 3)
        assert (moved[:, :2] >= 0).all()
        assert (moved[:, :2] <= 1).all()


def test_a_fresh_detector_scores_low_and_its_decoder_moves_no_box(tmp_path: Path) -> None:
    run = DetectorRun.start(PLAN, tmp_path)
    text = read_caption(run.processor.tokenizer, ("hook", "grasper")).inputs

    with torch.inference_mode():
        output = run.model.eval()(pixel_values=torch.zeros(1, 3, 72, 128), **text)

    scores = output.enc_outputs_class[..., : text["input_ids"].shape[1]].sigmoid()
    assert 0.002 < float(scores.median()) < 0.1
    assert torch.allclose(output.pred_boxes, output.encoder_pred_boxes, atol=1e-5)
    assert float(output.pred_boxes.std(dim=1).max()) > 0.05


def test_the_rate_rises_stays_and_falls() -> None:
    plan = replace(PLAN, steps=100, warm_steps=10, cool_steps=20, peak_rate=1.0)

    assert rate_at(0, plan) == pytest.approx(0.1)
    assert rate_at(50, plan) == 1.0
    assert rate_at(50, replace(plan, steps=500)) == 1.0
    assert rate_at(99, plan) == pytest.approx(0.05)


def test_a_stopped_training_goes_on_to_the_very_same_weights(
    stills: StillSet, tmp_path: Path
) -> None:
    whole = train_detector(PLAN, stills, tmp_path / "whole")

    train_detector(PLAN, stills, tmp_path / "parts", stop_after=2)
    resumed = train_detector(PLAN, stills, tmp_path / "parts")

    assert resumed.step == whole.step == 3
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name]), name
    with pytest.raises(ValueError, match="another plan"):
        train_detector(replace(PLAN, seed=9), stills, tmp_path / "parts")


def test_a_training_may_go_on_from_finished_weights(stills: StillSet, tmp_path: Path) -> None:
    first = train_detector(PLAN, stills, tmp_path / "first")
    finish_detector(first, stills, None, tmp_path / "out")

    begun = DetectorRun.start(PLAN, tmp_path / "second", tmp_path / "out")
    card = finish_detector(
        train_detector(PLAN, stills, tmp_path / "second", weights=tmp_path / "out"),
        stills, None, tmp_path / "again",
    )  # fmt: skip

    assert begun.step == 0
    for name, tensor in begun.model.state_dict().items():
        assert torch.equal(tensor, first.model.state_dict()[name]), name
    assert card["started_from"].startswith("out@")
    with pytest.raises(ValueError, match="another plan"):
        train_detector(PLAN, stills, tmp_path / "second")


def test_weights_of_other_words_are_not_gone_on_from(tmp_path: Path) -> None:
    model, processor = build_detector(TINY, caption_words()[:-1], tmp_path / "words", seed=0)
    save(model, processor, tmp_path / "out")

    with pytest.raises(ValueError, match="other words"):
        DetectorRun.start(PLAN, tmp_path / "work", tmp_path / "out")


def test_the_finished_checkpoint_is_what_the_adapter_loads(
    stills: StillSet, tmp_path: Path
) -> None:
    run = train_detector(PLAN, stills, tmp_path / "work")

    card = finish_detector(run, stills, stills, tmp_path / "out")
    detector = GroundingDino(
        DetectorSettings(source=str(tmp_path / "out"), box_threshold=0.0), torch.device("cpu")
    )
    found = detector.detect([Frame(stills[0].image, 0, 0.0)], ["hook"])

    assert len(found[0]) == TINY.queries
    assert json.loads((tmp_path / "out" / "card.json").read_text()) == json.loads(json.dumps(card))
    assert set(card["scores"]) <= set(PROCEDURES)


def test_the_loss_reaches_every_part_that_answers(stills: StillSet, tmp_path: Path) -> None:
    model, processor = build_detector(TINY, caption_words(), tmp_path, seed=0)
    picked = [stills[k] for k in range(len(stills))]
    batch = prepare(np.random.default_rng(1), picked, processor, (128, 72))
    everything = Wanted(
        torch.tensor([[0.5, 0.5, 0.2, 0.2]]),
        torch.ones(1, len(batch.caption.phrase_of_token)),
    )

    loss = detector_loss(
        model.train(),
        replace(batch, wanted=(everything,) * len(picked)),
        decoder_share=1.0,
        copies=2,
    )
    loss.backward()  # type: ignore[no-untyped-call]

    silent = {n for n, p in model.named_parameters() if p.grad is None and p.requires_grad}
    unused = "model.backbone.conv_encoder.model.swin.layernorm"  # the library's own leftover
    assert silent <= {f"{unused}.weight", f"{unused}.bias"}


def test_phrases_never_name_two_unrelated_classes_as_the_same() -> None:
    general = set(LADDERS["hook"].general)

    for phrase in set(phrases_of("hook")) & set(phrases_of("liver")):
        assert phrase in general
