"""Phantom clips on disk decode to the same frames, seed for seed."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from refinerank_core.errors import RefineRankError
from refinerank_core.phantom.clip import write_clip
from refinerank_core.phantom.scene import Scene

SIZE = (160, 90)


def decoded(path: Path) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def test_the_same_seed_decodes_to_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.mp4"):
        scene = Scene.from_seed(5, "laparoscopy", duration_s=0.8)
        write_clip(scene, tmp_path / name, size_wh=SIZE)

    assert np.array_equal(decoded(tmp_path / "a.mp4"), decoded(tmp_path / "b.mp4"))
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_a_clip_holds_every_frame_at_its_time_and_looks_like_the_scene(tmp_path: Path) -> None:
    scene = Scene.from_seed(5, "open surgery", duration_s=0.8)

    truths = write_clip(scene, tmp_path / "clip.mp4", size_wh=SIZE, crf=18)

    frames = decoded(tmp_path / "clip.mp4")
    assert frames.shape == (20, 90, 160, 3)
    assert [truth.time_s for truth in truths] == pytest.approx(np.arange(20) / 25)
    drawn = scene.render(10 / 25, SIZE)[0]
    assert np.abs(frames[10].astype(int) - drawn).mean() < 6


def test_an_odd_size_is_refused(tmp_path: Path) -> None:
    scene = Scene.from_seed(5, "laparoscopy", duration_s=0.2)

    with pytest.raises(RefineRankError, match="even size, got 161x90"):
        write_clip(scene, tmp_path / "clip.mp4", size_wh=(161, 90))
