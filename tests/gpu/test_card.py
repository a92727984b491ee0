"""What only a CUDA card can show. `python -m pytest tests/gpu` on a machine that has one.

No download: weights are random and are made on the card. The speed aims are for cards of the H100
and H200 class; the table that the failing one prints is the finding.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from refinerank_core import bench
from refinerank_core.models.batches import Batches, CudaMemory
from refinerank_core.pipeline import RefineRank
from refinerank_core.timing import Line
from tests.conftest import frame

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def table() -> dict[str, Line]:
    """The bench of the published sizes, by line; the models are gone when it is there."""
    system = RefineRank.load("random-7b", device="cuda")
    lines = bench.run(system, None, repeats=5, two_hours=False)
    del system
    torch.cuda.empty_cache()
    return {line.name: line for line in lines}


@pytest.mark.parametrize(
    "name",
    [
        "encode against its limit",
        "writing against its limit",
        "detect",
        "ground, 8 times together",
    ],
)
def test_the_published_sizes_meet_the_speed_aim(table: dict[str, Line], name: str) -> None:
    line = table[name]

    assert line.met, "\n".join(f"{one.name} {one.value:.2f} {one.unit}" for one in table.values())


def test_a_card_gives_the_scores_of_the_cpu(
    untrained_profile: Path, system: RefineRank, clip_path: Path
) -> None:
    on_card = RefineRank.load(str(untrained_profile), device="cuda", dtype="float32")

    ours = on_card.ground(clip_path, "Where is the hook?", [1.0]).times[0]
    theirs = system.ground(clip_path, "Where is the hook?", [1.0]).times[0]

    np.testing.assert_allclose(
        [one.score_original for one in ours.candidates],
        [one.score_original for one in theirs.candidates],
        atol=1e-2,
    )


def test_bfloat16_keeps_the_encoding_close(untrained_profile: Path, system: RefineRank) -> None:
    on_card = RefineRank.load(str(untrained_profile), device="cuda")

    ours = on_card.medvlm.encode([frame(2)], [0.4], "Where is the hook?", "")[0].q_last
    theirs = system.medvlm.encode([frame(2)], [0.4], "Where is the hook?", "")[0].q_last

    likeness = torch.cosine_similarity(ours.float().cpu(), theirs, dim=0)
    assert float(likeness) > 0.99


def test_real_memory_running_out_halves_the_group() -> None:
    device = torch.device("cuda:0")
    each = torch.cuda.mem_get_info(device)[0] // 3

    def job(group: Sequence[int]) -> list[int]:
        held = [torch.empty(each, dtype=torch.uint8, device=device) for _ in group]
        return [len(held)] * len(group)

    batches = Batches(4, CudaMemory(device), what="frames")

    assert batches.run(range(4), job) == [2, 2, 2, 2]
    assert batches.take_notes()
