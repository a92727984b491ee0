"""Fixtures shared by all tests: small random models and a small clip, made once."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from refinerank_core.frame_writer import write_video
from refinerank_core.models.untrained import write_untrained
from refinerank_core.pipeline import RefineRank
from refinerank_core.structures import Frame, Image
from refinerank_core.video import Video, open_video

REAL_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "real"


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(2)


@pytest.fixture(scope="session")
def untrained_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile file of small checkpoints with random weights."""
    return write_untrained(tmp_path_factory.mktemp("untrained"), seed=7)


@pytest.fixture(scope="session")
def system(untrained_profile: Path) -> RefineRank:
    """The three small models, on the CPU."""
    return RefineRank.load(str(untrained_profile), device="cpu")


def picture(k: int, size_wh: tuple[int, int] = (280, 168)) -> Image:
    """A textured picture with a bright square whose place depends on k."""
    width, height = size_wh
    rng = np.random.default_rng(3)
    image = rng.integers(40, 120, (height, width, 3)).astype(np.uint8)
    left = (17 * k) % (width - 40)
    image[30:70, left : left + 40] = (220, 210, 190)
    return image


def frame(k: int, size_wh: tuple[int, int] = (280, 168)) -> Frame:
    """The k-th picture as a frame at k / 5 s."""
    return Frame(image=picture(k, size_wh), index=k, time_s=k / 5)


@pytest.fixture(scope="session")
def clip_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip of 30 frames at 5 frames/s, 280x168."""
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    write_video(path, (picture(k) for k in range(30)), np.arange(30) / 5)
    return path


@pytest.fixture
def video(clip_path: Path) -> Iterator[Video]:
    """The clip, open."""
    with open_video(clip_path) as opened:
        yield opened


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, and say why."""
    no_card = pytest.mark.skip(reason="no CUDA device on this machine")
    no_clips = pytest.mark.skip(reason="the local real clips are not on this machine")
    for item in items:
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(no_card)
        if item.get_closest_marker("real") and not REAL_DATA.is_dir():
            item.add_marker(no_clips)
