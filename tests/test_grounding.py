"""The Grounding contract."""

from pathlib import Path

import pytest

from refinerank_core.errors import FormatError
from refinerank_core.grounding import Grounding, MedVLMAnswer


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_hold_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        MedVLMAnswer(box=(0.0, 0.0, number, 1.0), text="")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 2}', '{"schema": 1}', "\x00"], ids=repr
)
def test_what_is_no_grounding_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(FormatError, match="Not a RefineRank grounding") as caught:
        Grounding.from_json(text)

    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"nothing\.json: cannot be read"):
        Grounding.load(tmp_path / "nothing.json")
