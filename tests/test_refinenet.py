"""RefineNet: size, bounds, and agreement with a plain reimplementation."""

import math

import numpy as np
import pytest
import torch

from refinerank_core.bench import random_detections
from refinerank_core.candidates import build_pool
from refinerank_core.errors import ModelError
from refinerank_core.refinenet import RefineNet, RefineNetConfig, RegionFeatures, refine

SMALL = RefineNetConfig(
    query_dim=12, final_dim=10, inter_dim=8, inter_block=3, d_model=16, hidden_dim=32
)


def small_net(seed: int = 0) -> RefineNet:
    torch.manual_seed(seed)
    return RefineNet(SMALL).eval()


def inputs(count: int, seed: int = 1) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    metadata = torch.randn(count, 12, generator=generator)
    metadata[0, :4] = math.nan
    return (
        torch.randn(12, generator=generator),
        torch.randn(count, 10, generator=generator),
        torch.randn(count, 8, generator=generator),
        metadata,
    )


def test_the_published_size_has_1251334_parameters() -> None:
    net = RefineNet(RefineNetConfig())

    assert sum(p.numel() for p in net.parameters()) == 1_251_334


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return np.asarray((x - x.mean()) / np.sqrt(x.var() + 1e-5) * weight + bias)


def gelu(x: np.ndarray) -> np.ndarray:
    return np.asarray(x * 0.5 * (1 + np.array([math.erf(v / math.sqrt(2)) for v in x])))


def test_one_candidate_equals_the_formula_written_out() -> None:
    net = small_net()
    net.standardizer_mean += 0.3
    net.standardizer_std *= 2.0
    q, final, inter, metadata = inputs(5)

    with torch.no_grad():
        scores, delta = net(q, final, inter, metadata)

    w = {name: tensor.double().numpy() for name, tensor in net.state_dict().items()}
    for k in range(5):
        raw = metadata[k].double().numpy()
        missing = np.isnan(raw)
        structure = np.concatenate([np.where(missing, 0, (raw - 0.3) / 2.0), missing.astype(float)])
        unit = {
            name: vector.double().numpy() / np.linalg.norm(vector.double().numpy())
            for name, vector in (("query", q), ("final", final[k]), ("inter", inter[k]))
        }
        unit["structure"] = structure
        projected = {
            name: w[f"{name}_projection.weight"] @ vector + w[f"{name}_projection.bias"]
            for name, vector in unit.items()
        }
        query = layer_norm(projected["query"], w["query_norm.weight"], w["query_norm.bias"])
        summed = projected["final"] + projected["inter"] + projected["structure"]
        candidate = layer_norm(summed, w["candidate_norm.weight"], w["candidate_norm.bias"])
        x = np.concatenate([candidate, query, candidate * query])
        x = gelu(w["fusion.0.weight"] @ x + w["fusion.0.bias"])
        x = gelu(w["fusion.3.weight"] @ x + w["fusion.3.bias"])
        expected_scores = w["quality_head.weight"] @ x + w["quality_head.bias"]
        moved = np.tanh(w["delta_head.weight"] @ x + w["delta_head.bias"])
        expected_delta = moved * np.array([0.5, 0.5, math.log(2), math.log(2)])
        np.testing.assert_allclose(scores[k].numpy(), expected_scores, atol=1e-5)
        np.testing.assert_allclose(delta[k].numpy(), expected_delta, atol=1e-5)


def test_candidates_do_not_see_each_other() -> None:
    net = small_net()
    q, final, inter, metadata = inputs(6)

    with torch.no_grad():
        together, _ = net(q, final, inter, metadata)
        alone, _ = net(q, final[2:3], inter[2:3], metadata[2:3])

    assert torch.allclose(together[2], alone[0], atol=1e-6)


def test_a_batch_of_questions_equals_one_by_one() -> None:
    net = small_net()
    one, two = inputs(4, seed=1), inputs(4, seed=2)

    with torch.no_grad():
        both = net(*(torch.stack(pair) for pair in zip(one, two, strict=True)))
        single = net(*two)

    assert torch.allclose(both[0][1], single[0], atol=1e-6)
    assert torch.allclose(both[1][1], single[1], atol=1e-6)


def test_the_question_changes_the_scores() -> None:
    net = small_net()
    q, final, inter, metadata = inputs(4)

    with torch.no_grad():
        first, _ = net(q, final, inter, metadata)
        second, _ = net(-q, final, inter, metadata)

    assert not torch.allclose(first, second, atol=1e-3)


def features_of(count: int) -> RegionFeatures:
    q, final, inter, metadata = inputs(count)
    return RegionFeatures(q_last=q, r_final=final, r_inter=inter, metadata=metadata)


def test_refined_boxes_lie_inside_the_frame() -> None:
    pool = build_pool(random_detections(12, (640, 360)), (640, 360))

    result = refine(small_net(), features_of(len(pool)), pool, size_wh=(640, 360))

    good = result.boxes[result.valid]
    assert len(good) > 0
    assert (good >= 0).all()
    assert (good[:, 2] <= 640).all()
    assert (good[:, 3] <= 360).all()
    assert (good[:, 2:] > good[:, :2]).all()


def test_scores_that_are_not_numbers_are_refused() -> None:
    net = small_net()
    net.quality_head.bias.data[0] = math.nan
    pool = build_pool(random_detections(3, (640, 360)), (640, 360))

    with pytest.raises(ModelError, match="scores that are not numbers"):
        refine(net, features_of(len(pool)), pool, size_wh=(640, 360))
