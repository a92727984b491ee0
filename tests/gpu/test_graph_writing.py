"""The captured step on a real card."""

from pathlib import Path

import pytest
import torch

from refinerank_core.models.graph_decode import GraphWriter, _Step
from refinerank_core.models.greedy import write_greedily
from tests.test_graph_decode import NEVER, lively, words

pytestmark = pytest.mark.gpu


@torch.inference_mode()
def test_a_captured_text_is_that_of_the_growing_cache(untrained_profile: Path) -> None:
    model = lively(untrained_profile, attention="sdpa").to("cuda")
    prompt = {name: tensor.to("cuda") for name, tensor in words(*range(3, 40)).items()}
    writer = GraphWriter(model)

    first = writer.write(prompt, limit=60, ends=NEVER)
    again = writer.write(prompt, limit=60, ends=NEVER)

    assert first == again == write_greedily(model, prompt, limit=60, ends=NEVER)
    assert all(step._graph is not None for step in writer._steps.values())


@torch.inference_mode()
def test_a_captured_step_computes_what_the_step_does(
    untrained_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lively(untrained_profile, attention="sdpa").to("cuda", torch.bfloat16)
    prompt = {name: tensor.to("cuda") for name, tensor in words(*range(3, 40)).items()}
    captured = GraphWriter(model).write(prompt, limit=200, ends=NEVER)

    monkeypatch.setattr(_Step, "_capture", lambda self, device: None)
    uncaptured = GraphWriter(model).write(prompt, limit=200, ends=NEVER)

    assert captured == uncaptured
