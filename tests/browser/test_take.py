"""What one takes away."""

from __future__ import annotations

from pathlib import Path

from refinerank_core.grounding import Grounding
from tests.browser.conftest import QUESTION, OpenPage, wait_for


def test_the_answer_can_be_taken_away(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page()
    wait_for(page, "r.stage.k !== null")
    sizes = {}
    for kind in ("json", "csv", "npz", "png"):
        page.click(".menu summary")
        with page.expect_download() as coming:
            page.click(f'[data-take="{kind}"]')
        path = tmp_path / coming.value.suggested_filename
        coming.value.save_as(path)
        sizes[path.suffix] = path.stat().st_size
        assert "UNTRAINED" in path.name

    taken = Grounding.load(next(tmp_path.glob("*.json")))

    assert taken.question.text == QUESTION
    assert all(size > 500 for size in sizes.values())
