"""Response maps: cosine similarity with the target, on the right cells."""

import numpy as np
import pytest
import torch

from refinerank_core.models.protocols import VisionFeatures
from refinerank_core.responses import ResponseMaps, as_arrays, response_maps


def features(grid: torch.Tensor, final: torch.Tensor) -> VisionFeatures:
    return VisionFeatures(blocks={3: grid}, final=final, resized_wh=(280, 140))


def one_hot(height: int, width: int, row: int, column: int) -> torch.Tensor:
    grid = torch.zeros(height, width, 4)
    grid[..., 0] = 1.0
    grid[row, column] = torch.tensor([0.0, 1.0, 0.0, 0.0])
    return grid


def test_the_cell_of_the_target_lights_and_no_other() -> None:
    vision = features(one_hot(10, 20, 3, 7), one_hot(5, 10, 1, 3))

    # Frame of 400x200 px: block cell (3, 7) covers x 140..160, y 60..80.
    maps = response_maps(vision, (142.0, 62.0, 158.0, 78.0), size_wh=(400, 200))

    block = maps.raw["block3"]
    assert block.dtype == np.float16
    assert block.shape == (10, 20)
    assert block[3, 7] == pytest.approx(1.0)
    assert np.count_nonzero(block) == 1
    assert maps.raw["final"][1, 3] == pytest.approx(1.0)
    assert np.count_nonzero(maps.raw["final"]) == 1


def test_each_map_is_stretched_on_its_own_or_on_one_range() -> None:
    low = np.array([[0.0, 0.25]], dtype=np.float16)
    high = np.array([[0.5, 1.0]], dtype=np.float16)
    maps = ResponseMaps(target=(0, 0, 1, 1), raw={"block1": low, "final": high})

    own, shared = maps.scaled(), maps.scaled(shared=True)

    np.testing.assert_allclose(own["block1"], [[0, 1]])
    np.testing.assert_allclose(shared["block1"], [[0, 0.25]])
    np.testing.assert_allclose(shared["final"], [[0.5, 1]])


def test_a_flat_map_is_dark_and_not_nan() -> None:
    flat = np.full((2, 3), 0.7, dtype=np.float16)

    scaled = ResponseMaps(target=(0, 0, 1, 1), raw={"final": flat}).scaled()

    assert (scaled["final"] == 0).all()


def test_arrays_carry_the_names_of_the_contract() -> None:
    flat = np.array([[0.1, 0.3]], dtype=np.float16)
    maps = ResponseMaps(target=(0, 0, 1, 1), raw={"block7": flat, "final": flat})

    arrays = as_arrays({0: maps, 2: maps})

    assert set(arrays) == {
        f"t{k}_{kind}{name}"
        for k in (0, 2)
        for kind in ("", "raw_")
        for name in ("block7", "final")
    }
    assert arrays["t2_block7"].max() == 1.0
    np.testing.assert_array_equal(arrays["t0_raw_final"], flat)
