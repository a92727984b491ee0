"""The GroundingDINO adapter."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoProcessor, GroundingDinoForObjectDetection

from refinerank_core.caption import UNKNOWN
from refinerank_core.errors import QuestionError
from refinerank_core.models.detector import DetectorSettings, GroundingDino
from tests.conftest import frame

PHRASES = ("hook", "specimen bag", "clip applier")


def detector(profile: Path, **settings: float) -> GroundingDino:
    source = str(profile.parent / "detector")
    return GroundingDino(DetectorSettings(source=source, **settings), torch.device("cpu"))  # type: ignore[arg-type]


def test_boxes_equal_the_models_own_post_processing(untrained_profile: Path) -> None:
    folder = untrained_profile.parent / "detector"
    model = GroundingDinoForObjectDetection.from_pretrained(folder).eval()
    processor = AutoProcessor.from_pretrained(folder)
    frames = [frame(2), frame(7)]
    inputs = processor(
        images=[one.image for one in frames],
        text=["hook . specimen bag . clip applier ."] * 2,
        return_tensors="pt",
    )
    with torch.inference_mode():
        output = model(**inputs)
    expected = processor.post_process_grounded_object_detection(
        output, threshold=0.3, text_threshold=0.1, target_sizes=[(168, 280)] * 2
    )

    found = detector(untrained_profile, box_threshold=0.3).detect(frames, PHRASES)

    for ours, theirs in zip(found, expected, strict=True):
        order = theirs["scores"].argsort(descending=True, stable=True)
        assert len(ours) > 0
        np.testing.assert_allclose(ours.scores, theirs["scores"][order], atol=1e-5)
        np.testing.assert_allclose(ours.boxes, theirs["boxes"][order], atol=1e-2)


def test_scores_fall_and_every_box_has_one_asked_phrase(untrained_profile: Path) -> None:
    found = detector(untrained_profile).detect([frame(2)], PHRASES)[0]

    assert len(found) > 1
    assert (np.diff(found.scores) <= 0).all()
    assert set(found.phrases) <= {*PHRASES, UNKNOWN}
    assert not any("##" in phrase for phrase in found.phrases)


def test_a_threshold_nothing_passes_gives_an_empty_result(untrained_profile: Path) -> None:
    found = detector(untrained_profile, box_threshold=1.0).detect([frame(2)], PHRASES)[0]

    assert len(found) == 0
    assert found.boxes.shape == (0, 4)


def test_a_text_threshold_nothing_passes_leaves_the_phrase_unknown(
    untrained_profile: Path,
) -> None:
    found = detector(untrained_profile, text_threshold=1.1).detect([frame(2)], PHRASES)[0]

    assert set(found.phrases) == {UNKNOWN}


def test_a_batch_equals_one_by_one(untrained_profile: Path) -> None:
    model = detector(untrained_profile, batch=2)
    frames = [frame(k) for k in range(3)]

    together = model.detect(frames, PHRASES)
    alone = [model.detect([one], PHRASES)[0] for one in frames]

    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-4)
        np.testing.assert_allclose(one.boxes, other.boxes, atol=0.1)


def test_remembered_frames_give_the_same_boxes(untrained_profile: Path) -> None:
    model = detector(untrained_profile)
    frames = [frame(k) for k in range(3)]
    fresh = model.detect(frames, PHRASES)
    assert len(model.store) == 0

    model.detect(frames[:2], ["scissors"], video_key="video")
    assert len(model.store) == 2
    warm = model.detect(frames, PHRASES, video_key="video")  # two remembered, one new

    assert len(model.store) == 3
    for one, other in zip(fresh, warm, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-4)
        np.testing.assert_allclose(one.boxes, other.boxes, atol=0.1)


class Cramped:
    """A model on a device that holds one frame at a time."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, *, pixel_values: torch.Tensor, **inputs: torch.Tensor) -> Any:
        if len(pixel_values) > 1:
            raise torch.OutOfMemoryError("out of memory")
        return self.model(pixel_values=pixel_values, **inputs)


def test_frames_that_do_not_fit_together_are_detected_one_by_one(untrained_profile: Path) -> None:
    model = detector(untrained_profile, batch=2)
    roomy = model.detect([frame(0), frame(1)], PHRASES)
    model._model = Cramped(model._model)

    cramped = model.detect([frame(0), frame(1)], PHRASES)

    assert model.take_notes() == (
        "Memory ran out with 2 frames at once: went on with 1, which is slower and changes no "
        "result.",
    )
    for one, other in zip(roomy, cramped, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-4)


def test_no_frames_give_no_results(untrained_profile: Path) -> None:
    assert detector(untrained_profile).detect([], PHRASES) == []


def test_an_empty_prompt_is_refused(untrained_profile: Path) -> None:
    with pytest.raises(QuestionError):
        detector(untrained_profile).detect([frame(2)], [" . "])
