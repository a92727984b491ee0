"""Train, predict, submit, evaluate on cached features, by the commands; splits hold by video."""

import importlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from refinerank_core.__main__ import main
from refinerank_core.cached_training import NetSize, annotated_sets, config_of
from refinerank_core.errors import RefineRankError
from refinerank_core.feature_cache import open_cache
from refinerank_core.folds import fold_of_videos, require_folds, split_fold
from refinerank_core.training import TrainingPlan, fit
from tests.caches import cache, write_rows
from tests.test_training import feature_set

TRAIN = {"EgoSurgery": ("e1", "e2", "e3"), "CoPESD": ("c1", "c2", "c3")}
TEST = {"EgoSurgery": ("e8", "e9"), "CoPESD": ("c8", "c9")}
SMALL = ["--d-model", "16", "--hidden", "32", "--device", "cpu"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two caches: train and test, with their rows beside them."""
    folder = tmp_path_factory.mktemp("cached")
    sides: tuple[tuple[str, Mapping[str, Sequence[str]], int], ...]
    sides = (("train", TRAIN, 0), ("test", TEST, 1))
    for name, videos, seed in sides:
        cache(write_rows(folder / f"{name}-rows", videos, seed=seed), folder / name)
    return folder


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(list(words)) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_train_predict_submit_evaluate(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, stg = tmp_path / "net.safetensors", tmp_path / "stg.json"
    submission, figures = tmp_path / "submission.json", tmp_path / "figures.json"
    rows = str(home / "test-rows" / "rows.json")

    told = run_json(
        capsys, "train", "--features", str(home / "train"), "--held-out", str(home / "test"),
        "--work", str(tmp_path / "work"), "--out", str(net), "--epochs", "30", *SMALL,
    )  # fmt: skip
    card = json.loads(net.with_suffix(".card.json").read_text())
    codes = [
        main(["predict", "--features", str(home / "test"), "--refinenet", str(net),
              "--out", str(stg)]),
        main(["submit", "--rows", rows, "--stg", str(stg), "--out", str(submission)]),
        main(["evaluate", "--rows", rows, "--predictions", str(submission),
              "--json", str(figures), "--features", str(home / "test"),
              "--refinenet", str(net)]),
    ]  # fmt: skip

    found = json.loads(figures.read_text())
    assert codes == [0, 0, 0]
    assert len(card["losses"]) == card["epochs"] == 30
    assert card["losses"][-1] < card["losses"][0]
    assert card["videos"] == sorted(f"{name}/{v}" for name, videos in TRAIN.items() for v in videos)
    # Boxes went to the canvas of each data set, through text and back: scored on both sides alike.
    scores = card["held_out"]["refinerank"]
    assert found["strict"]["datasets"] == pytest.approx(
        {name: scores[name] for name in TEST}, abs=1e-3
    )
    assert found["strict"]["average"] > 0.3  # the most confident box of each frame scores below 0.2
    assert found["oracle"]["original"]["average"] >= 0.5
    assert found["oracle"]["joint"]["average"] >= found["strict"]["average"]
    assert not found["problems"] or all(
        "occurs again" in one["what"] for one in found["problems"]
    )  # the two rows about a video share its id
    assert told["seeds"]["20260719"]["held_out"] == card["held_out"]  # type: ignore[index]


def test_predictions_of_a_row_that_cannot_be_used_are_empty(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = write_rows(tmp_path / "rows", {"EgoSurgery": ("e5",)})
    items = json.loads(rows.read_text())
    items[0]["question"] = "Where is the grasper?"
    rows.write_text(json.dumps(items))
    cache(rows, tmp_path / "cache")
    net = tmp_path / "net.safetensors"
    train = ["train", "--features", str(home / "train"), "--work", str(tmp_path), "--out", str(net)]
    assert main([*train, "--epochs", "1", *SMALL]) == 0

    out = tmp_path / "stg.json"
    code = main(["predict", "--features", str(tmp_path / "cache"), "--refinenet", str(net),
                 "--out", str(out)])  # fmt: skip

    first, second = json.loads(out.read_text())
    assert code == 0
    assert first == {"source_index": 0, "id": "e5", "qa_type": "stg", "prediction": ""}
    assert second["prediction"].startswith("0.0 seconds: [")
    assert "2 rows, 1 of them without a box" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["train", "predict"])
def test_a_shared_video_is_refused_by_name(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    net = tmp_path / "net.safetensors"
    train = ["train", "--features", str(home / "train"), "--work", str(tmp_path), "--out", str(net)]
    train += ["--epochs", "1", *SMALL]
    if command == "train":
        code = main([*train, "--held-out", str(home / "train")])
    else:
        assert main(train) == 0
        code = main(["predict", "--features", str(home / "train"), "--refinenet", str(net),
                     "--out", str(tmp_path / "stg.json")])  # fmt: skip

    told = capsys.readouterr().err
    assert code == 1
    assert "6 video(s) stand on both sides of the split: CoPESD/c1, CoPESD/c2" in told


def test_out_of_fold_predicts_every_row_once(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "oof.json"

    told = run_json(
        capsys, "train", "--features", str(home / "train"), "--work", str(tmp_path / "work"),
        "--folds", "3", "--predictions", str(out), "--epochs", "2", *SMALL,
    )  # fmt: skip

    documents = json.loads(out.read_text())
    assert set(told["out_of_fold"]) == {"EgoSurgery", "CoPESD", "average"}  # type: ignore[call-overload]
    assert [one["source_index"] for one in documents] == list(range(12))
    assert all(one["prediction"].count("seconds") == 2 for one in documents)
    assert len(list((tmp_path / "work").glob("fold*.pt"))) == 3


def test_no_video_stands_on_both_sides_of_a_fold() -> None:
    sets = [feature_set(name, 20, seed=k) for k, name in enumerate("ab")]
    held_out: list[set[str]] = []
    for fold in range(3):
        training, held = split_fold(sets, fold, folds=3, seed=1)
        seen = {video for features, _ in training for video in features.videos}
        out = {f.videos[k] for (f, _), places in zip(sets, held, strict=True) for k in places}
        assert not seen & out
        held_out.append(out)

    assert set.union(*held_out) == {video for features, _ in sets for video in features.videos}
    assert sum(map(len, held_out)) == 10


def test_folds_are_even_and_follow_the_seed() -> None:
    videos = [f"v{k}" for k in range(10)]

    one, other = (fold_of_videos(videos, folds=3, seed=seed) for seed in (1, 2))

    assert sorted(np.bincount(list(one.values()))) == [3, 3, 4]
    assert one != other
    assert one == fold_of_videos(videos[::-1], folds=3, seed=1)


@pytest.mark.parametrize("folds", [1, 6])
def test_more_folds_than_videos_are_refused(folds: int) -> None:
    with pytest.raises(RefineRankError, match="folds need at least 2"):
        require_folds([feature_set("a", 20)], folds)


def test_features_on_disk_train_the_very_same_weights_as_features_in_memory(home: Path) -> None:
    sets = annotated_sets([open_cache(home / "train")])
    every = [np.arange(len(features)) for features, _ in sets]
    dense = [
        (
            replace(
                features,
                r_final=features.r_final[places],
                r_blocks={b: grid[places] for b, grid in features.r_blocks.items()},
            ),
            labels,
        )
        for (features, labels), places in zip(sets, every, strict=True)
    ]
    config = config_of(sets, 3, NetSize(8, 16))
    plan = TrainingPlan(epochs=2, batch=8)

    nets = [fit(config, plan, side, device=torch.device("cpu")).net for side in (sets, dense)]

    for name, tensor in nets[0].state_dict().items():
        assert torch.equal(tensor, nets[1].state_dict()[name]), name


def test_a_training_goes_on_only_with_its_own_data(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--work", str(tmp_path), "--out", str(tmp_path / "net.safetensors"), *SMALL]
    first = main(["train", "--features", str(home / "train"), "--epochs", "1", *words])

    again = main(["train", "--features", str(home / "train"), "--epochs", "1", *words])
    other = main(["train", "--features", str(home / "test"), "--epochs", "1", *words])

    assert (first, again, other) == (0, 0, 1)
    assert "another plan or data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--block", "7", "--out", "n.safetensors"], "Block 7 is not in the cache"),
        (["--folds", "9"], "folds need"),
    ],
)
def test_a_training_that_cannot_be_is_one_sentence(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], what: str
) -> None:
    code = main(["train", "--features", str(home / "train"), "--work", str(tmp_path), *words])

    assert code == 1
    assert what in capsys.readouterr().err


CACHES, REVIEWS = ["--features", "cache"], ["--reviews", "r.db", "--variants", "v"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([], "either --features or --reviews"),
        ([*CACHES, *REVIEWS], "either --features or --reviews"),
        (CACHES, "Nothing to make"),
        ([*CACHES, "--out", "n.safetensors", "--predictions", "p.json"], "need --folds"),
        ([*CACHES, "--folds", "2", "--held-out", "h"], "--held-out scores the file of --out"),
        ([*CACHES, "--out", "n", "--videos", "v"], "--videos does nothing with --features"),
        ([*CACHES, "--out", "n", "--profile", "phantom"], "--profile does nothing"),
        ([*REVIEWS, "--out", "n", "--hidden", "256"], "--out, --hidden does nothing with --rev"),
        ([*REVIEWS, "--folds", "2"], "--folds does nothing with --reviews: leave it out, or"),
        ([*REVIEWS, "--seeds", "1", "2"], "--reviews trains with one seed, got 2"),
        ([*REVIEWS, "--held-out-share", "1"], "--held-out-share is 1"),
        (["--reviews", "r.db"], "give --variants FOLDER"),
    ],
)
def test_options_that_would_have_no_effect_are_a_wrong_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], what: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "--work", str(tmp_path), *words])

    assert ended.value.code == 2
    assert what in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is not None, reason="tensorboard is installed"
)
def test_curves_without_tensorboard_say_how_to_get_it(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(
        ["train", "--features", str(home / "train"), "--work", str(tmp_path), "--out",
         str(tmp_path / "n.safetensors"), "--tensorboard", str(tmp_path / "log"), *SMALL]
    )  # fmt: skip

    assert code == 1
    assert "pip install tensorboard" in capsys.readouterr().err


@pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None,
    reason="tensorboard, an optional extra, is not installed",
)
def test_curves_are_logged_by_run(home: Path, tmp_path: Path) -> None:
    reader = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    code = main(
        ["train", "--features", str(home / "train"), "--work", str(tmp_path), "--out",
         str(tmp_path / "n.safetensors"), "--tensorboard", str(tmp_path / "log"), "--epochs", "2",
         *SMALL]
    )  # fmt: skip

    assert code == 0
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["refinenet-20260719"]
    curves = reader.EventAccumulator(str(tmp_path / "log" / "refinenet-20260719")).Reload()
    told = json.loads((tmp_path / "n.card.json").read_text())["losses"]
    losses = curves.Scalars("loss")
    assert [one.step for one in losses] == [1, 2]
    assert [one.value for one in losses] == pytest.approx(told, rel=1e-5)
