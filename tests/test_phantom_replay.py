"""A scene comes back from its video's name, and its short clip has every frame that was asked."""

from pathlib import Path

import numpy as np
import pytest

from refinerank_core.errors import RefineRankError
from refinerank_core.phantom.replay import CLIP_FPS, frame_at, scene_named, write_short_clip
from refinerank_core.phantom.rows import video_id
from refinerank_core.phantom.scene import Scene
from refinerank_core.phantom.seeds import seed_for
from refinerank_core.video import open_video

SIZE_WH = (224, 126)


def test_a_name_gives_the_scene_that_has_it() -> None:
    scene = Scene.from_seed(seed_for("evaluation", 3), "endoscopic dissection")

    again = scene_named(video_id(scene))

    assert again is not None
    assert (again.seed, again.procedure) == (scene.seed, scene.procedure)
    assert np.array_equal(frame_at(again, 2.4, SIZE_WH), frame_at(scene, 2.4, SIZE_WH))


@pytest.mark.parametrize(
    "name",
    ["VID110", "phantom-laparoscopy-", "phantom-dance-3000001", "phantom-laparoscopy-7777777"],
)
def test_other_names_give_none(name: str) -> None:
    assert scene_named(name) is None


def test_a_short_clip_shows_the_asked_frame_at_its_time(tmp_path: Path) -> None:
    scene = Scene.from_seed(seed_for("evaluation", 0), "laparoscopy")
    path = tmp_path / "clip.mp4"

    write_short_clip(scene, path, size_wh=SIZE_WH, until_s=1.4)

    with open_video(path) as video:
        index, _ = video.nearest(1.4)
        seen = video.read_frame(index)
        assert seen.time_s == pytest.approx(1.4)
        assert len(video) == int(2.4 * CLIP_FPS) + 1
    wanted = frame_at(scene, 1.4, SIZE_WH).astype(np.float64)
    assert np.abs(seen.image - wanted).mean() < 6  # it was compressed


def test_an_odd_size_is_one_sentence(tmp_path: Path) -> None:
    scene = Scene.from_seed(seed_for("evaluation", 0), "laparoscopy")

    with pytest.raises(RefineRankError, match="even size"):
        write_short_clip(scene, tmp_path / "c.mp4", size_wh=(225, 126), until_s=1.0)
