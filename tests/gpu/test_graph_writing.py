"""The captured step on a real card."""

from pathlib import Path

import pytest
import torch

from refinerank_core.models.graph_decode import CapturedTexts, _Step
from refinerank_core.models.greedy import write_greedily
from tests.lively import NEVER, lively, words

pytestmark = pytest.mark.gpu
PROMPT = words(*range(3, 40))


@torch.inference_mode()
def test_a_captured_text_is_that_of_the_growing_one(untrained_profile: Path) -> None:
    model = lively(untrained_profile).to("cuda")
    prompt = {name: tensor.to("cuda") for name, tensor in PROMPT.items()}
    begin = CapturedTexts()

    first = write_greedily(model, prompt, limit=60, ends=NEVER, begin_text=begin)
    again = write_greedily(model, prompt, limit=60, ends=NEVER, begin_text=begin)

    assert first == again == write_greedily(model, prompt, limit=60, ends=NEVER)
    assert all(step._graph is not None for step in begin._steps.values())


@torch.inference_mode()
def test_a_captured_step_computes_what_the_step_does(
    untrained_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = lively(untrained_profile).to("cuda", torch.bfloat16)
    prompt = {name: tensor.to("cuda") for name, tensor in PROMPT.items()}
    captured = write_greedily(model, prompt, limit=200, ends=NEVER, begin_text=CapturedTexts())

    monkeypatch.setattr(_Step, "_capture", lambda self, device: None)
    uncaptured = write_greedily(model, prompt, limit=200, ends=NEVER, begin_text=CapturedTexts())

    assert captured == uncaptured
