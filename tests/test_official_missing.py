"""Without groundingdino-py: one sentence that says what to do, and nothing else needs it."""

import sys

import pytest

from refinerank_core.errors import ModelError
from refinerank_core.models.official_detector import build_official
from refinerank_core.models.official_names import official_as_transformers, transformers_config
from refinerank_core.models.random_models import SIZES

SMALL = SIZES["random-small"].detector


@pytest.fixture(autouse=True)
def _not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name in sys.modules if name.split(".")[0] == "groundingdino"]
    for name in {"groundingdino", *names}:
        monkeypatch.setitem(sys.modules, name, None)


def test_the_backend_says_what_to_install_or_to_convert() -> None:
    with pytest.raises(ModelError) as caught:
        build_official("small.pth", {}, SMALL, None, cache_bytes=0)

    assert "pip install groundingdino-py==0.4.0" in str(caught.value)
    assert "convert-detector" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_converter_does_not_need_it() -> None:
    assert transformers_config(SMALL).num_queries == SMALL.queries
    with pytest.raises(Exception, match="tensors are missing"):
        official_as_transformers("small.pth", {}, SMALL)
