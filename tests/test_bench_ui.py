"""`bench --ui`: where the page cannot be measured, one sentence says what is missing."""

import sys

import pytest

from refinerank_core.__main__ import main


def test_without_playwright_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "playwright", None)

    assert main(["bench", "--ui"]) == 1

    printed = capsys.readouterr()
    assert printed.out == ""
    assert "pip install -r .ci/requirements.txt" in printed.err
    assert printed.err.count("\n") == 1
