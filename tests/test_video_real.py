"""Real clips, where they are at hand: each frame is what plain decoding gives, in any order."""

import random
from pathlib import Path

import av
import numpy as np
import pytest

from refinerank_core.video import open_video

REAL = Path(__file__).parent.parent.parent / "shared" / "data" / "real"
CLIPS = sorted(REAL.rglob("*.mp4"))

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not CLIPS, reason="the local real clips are not here"),
]


@pytest.mark.parametrize("path", CLIPS, ids=lambda path: str(path.name))
def test_random_reads_equal_plain_decoding(path: Path) -> None:
    with av.open(str(path)) as container:
        frames = [
            (frame.time, frame.to_ndarray(format="rgb24")[::16, ::16].astype(int))
            for frame in container.decode(video=0)
        ]
    times_s = [time_s - frames[0][0] for time_s, _ in frames]
    order = random.Random(5).sample(range(len(frames)), 6)

    with open_video(path) as video:
        assert video.times_s == pytest.approx(times_s, abs=1e-6)
        assert video.warnings == ()
        for index in order:
            shown = video.read_frame(index).image[::16, ::16]
            errors = [np.abs(shown - truth).mean() for _, truth in frames]
            assert errors[index] == min(errors) < 1
