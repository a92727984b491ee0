"""Tables 3 to 5 from feature caches, by the command: held-out rows, folds, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from demo.results_read import Study, read_document
from refinerank_core.__main__ import main
from tests.caches import cache, write_rows

TRAIN = {"EgoSurgery": ("e1", "e2", "e3"), "CoPESD": ("c1", "c2", "c3")}
TEST = {"EgoSurgery": ("e8", "e9"), "CoPESD": ("c8", "c9")}
SMALL = ["--d-model", "16", "--hidden", "32", "--device", "cpu", "--epochs", "2"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name, videos, seed in (("train", TRAIN, 0), ("test", TEST, 1)):
        cache(write_rows(folder / f"{name}-rows", videos, seed=seed), folder / name)
    return folder


def tables(home: Path, out: Path, *words: str) -> dict[str, Any]:
    command = ["tables", "--features", str(home / "train"), "--work", str(out / "work")]
    files = ["--json", str(out / "tables.json"), "--markdown", str(out / "tables.md")]
    assert main([*command, *files, *words, *SMALL]) == 0
    found: dict[str, Any] = json.loads((out / "tables.json").read_text())
    return found


def test_held_out_rows_give_the_three_tables(home: Path, tmp_path: Path) -> None:
    found = tables(home, tmp_path, "--held-out", str(home / "test"), "--seeds", "1", "2")

    assert found["procedures"] == ["CoPESD", "EgoSurgery"]
    assert {"medvlm_groundingdino", "refinerank"} <= set(found["methods"])
    assert set(found["selectors"]) == {"extra_trees", "mlp", "transformer"}
    assert list(found["features"]) == ["f_dino", "q_last", "block_1", "block_3"]
    assert set(found["videos"]["CoPESD"]) == {"CoPESD/c8", "CoPESD/c9"}
    assert found["split"]["eval"]["EgoSurgery"] == {"videos": 2, "rows": 4, "examples": 8}
    assert set(found["curves"]) == {"1", "2"}
    text = (tmp_path / "tables.md").read_text()
    assert "## Methods (Table 3)" in text
    assert "PHANTOM" not in text
    content = read_document(tmp_path / "tables.json").content  # the Results tab reads it
    assert isinstance(content, Study)
    assert not content.phantom


def test_folds_score_every_video_once(home: Path, tmp_path: Path) -> None:
    found = tables(home, tmp_path, "--folds", "3")

    videos = {name for mine in found["videos"].values() for name in mine}
    assert videos == {f"{name}/{v}" for name, mine in TRAIN.items() for v in mine}
    assert found["folds"] == 3
    assert list(found["curves"]["20260719"]) == [f"fold {k} of 3" for k in (1, 2, 3)]
    assert len(list((tmp_path / "work").glob("fold*/refinenet-*.pt"))) == 3


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([], "either --held-out or --folds"),
        (["--folds", "9"], "folds need"),
        (["--held-out", "train"], "stand on both sides of the split: CoPESD/c1"),
        (["--folds", "2", "--block", "7"], "Block 7 is not in the cache"),
        (["--folds", "2", "--json", "no/such/folder.json"], "cannot be written"),
    ],
)
def test_tables_that_cannot_be_are_one_sentence(
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    what: str,
) -> None:
    monkeypatch.chdir(home)
    command = ["tables", "--features", "train", "--work", str(tmp_path)]

    code = main([*command, *words, *SMALL])

    assert code == 1
    assert what in capsys.readouterr().err
