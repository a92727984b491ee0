"""The bundled sample clips are what their sidecars say."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinerank_core.phantom.samples import SIZE_WH
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.seeds import purpose_of
from refinerank_core.phantom.vocabulary import PROCEDURES
from refinerank_core.question import parse_question
from refinerank_core.video import open_video

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "samples"
CLIPS = sorted(FOLDER.glob("*.mp4"))


def sidecar(clip: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(clip.with_suffix(".json").read_text(encoding="utf-8"))
    return data


def test_there_are_two_clips_of_each_procedure() -> None:
    shown = [sidecar(clip)["procedure"] for clip in CLIPS]

    assert sorted(shown) == sorted(PROCEDURES * 2)


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: clip.stem)
def test_a_clip_is_small_and_plays_everywhere(clip: Path) -> None:
    assert clip.stat().st_size <= 700_000
    with open_video(clip) as video:
        assert video.codec == "h264"
        assert video.size_wh == SIZE_WH
        assert 15 <= video.duration_s <= 30
        assert video.warnings == ()


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: clip.stem)
def test_truth_of_every_question_is_that_of_the_scene(clip: Path) -> None:
    facts = sidecar(clip)
    assert facts["phantom"] is True
    assert purpose_of(facts["seed"]) == "samples"
    scene = Scene.from_seed(facts["seed"], facts["procedure"])

    assert len(facts["questions"]) == 4
    for question in facts["questions"]:
        times = parse_question(question["text"]).requested_s
        assert [round(time * scene.fps) for time in times] == [int(k) for k in question["truth"]]
        for index, box in question["truth"].items():
            boxes = [
                thing.box for thing in scene.truth_at(int(index) / scene.fps, SIZE_WH).in_view()
            ]
            assert any(np.allclose(box, other, atol=0.01) for other in boxes)
