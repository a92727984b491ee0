"""The command line: outputs, exit codes, one sentence for each fault."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PillowImage
from safetensors.torch import load_file, save_file

from refinerank_core import bench
from refinerank_core.__main__ import build_parser, main
from refinerank_core.grounding import Grounding
from refinerank_core.pipeline import RefineRank

QUESTION = "Which instrument is dissecting the gallbladder from 1 to 2 seconds, every 1 second?"


def test_ground_writes_json_drawing_and_maps(
    clip_path: Path, untrained_profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = {name: tmp_path / name for name in ("out.json", "out.png", "out.npz")}
    argv = ["ground", str(clip_path), QUESTION, "--profile", str(untrained_profile)]
    argv += ["--device", "cpu", "--json", str(out["out.json"])]
    argv += ["--draw", str(out["out.png"]), "--maps", str(out["out.npz"])]

    assert main(argv) == 0

    printed = capsys.readouterr()
    assert "UNTRAINED" in printed.out
    assert printed.out.count("RefineRank [") == 2
    grounding = Grounding.load(out["out.json"])
    assert [one.requested_s for one in grounding.times] == [1.0, 2.0]
    with PillowImage.open(out["out.png"]) as picture:
        assert picture.size[0] > 1280
    with np.load(out["out.npz"], allow_pickle=False) as maps:
        assert set(maps) == {
            f"t{k}_{raw}{name}"
            for k in (0, 1)
            for raw in ("", "raw_")
            for name in ("block1", "block3", "block5", "block7", "final")
        }
        assert all(maps[name].dtype == np.float16 for name in maps)
        stretched = maps["t0_block5"]
        assert (float(stretched.min()), float(stretched.max())) == (0.0, 1.0)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(out)


def test_the_json_holds_every_field_of_the_contract(
    clip_path: Path, untrained_profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["ground", str(clip_path), "Where is the hook?", "--time", "0:01", "--json", "-"]

    assert main([*argv, "--profile", str(untrained_profile), "--device", "cpu"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == 1
    assert set(data["video"]) == {"name", "sha256", "width", "height", "frames", "duration_s"}
    assert {"text", "times_s"} <= set(data["question"])
    facts = {"name", "medvlm", "detector", "refinenet", "phantom", "untrained"}
    assert facts <= set(data["profile"])
    assert {"phrases", "source"} <= set(data["query"])
    assert isinstance(data["seconds"], dict)
    assert isinstance(data["warnings"], list)
    one = data["times"][0]
    assert {"requested_s", "frame_index", "frame_s", "candidates", "answers"} <= set(one)
    assert {
        "id",
        "box",
        "source",
        "phrase",
        "confidence",
        "score_original",
        "score_refined",
        "refined_box",
        "kept_original",
        "kept_refined",
    } <= set(one["candidates"][0])
    answers = one["answers"]
    assert set(answers["refinerank"]) == {"box", "score", "candidate_id", "refined", "margin"}
    assert set(answers["medvlm"]) == {"box", "text"}
    assert set(answers["medvlm_groundingdino"]) == {"box", "confidence", "candidate_id"}


def test_info_prints_the_frame_table(clip_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(clip_path)]) == 0

    printed = capsys.readouterr().out
    assert "30 (0 to 29)" in printed
    assert "280x168 shown" in printed
    assert "constant, 5.000 frames/s" in printed


def test_make_untrained_writes_a_profile_that_grounds(
    clip_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["make-untrained", "--out", str(tmp_path / "models"), "--seed", "4"]) == 0

    profile = capsys.readouterr().out.strip()
    assert main(["ground", str(clip_path), "Where?", "--profile", profile, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"]["untrained"] is True


def _broken_video(folder: Path) -> Path:
    path = folder / "notes.mp4"
    path.write_text("these are notes\n" * 50)
    return path


def _empty_video(folder: Path) -> Path:
    path = folder / "empty.mp4"
    path.touch()
    return path


def _missing_video(folder: Path) -> Path:
    return folder / "missing.mp4"


@pytest.mark.parametrize("make", [_broken_video, _empty_video, _missing_video])
@pytest.mark.parametrize("command", ["ground", "info"])
def test_a_bad_video_is_one_line_on_stderr(
    make: object, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(make)
    path = make(tmp_path)
    argv = [command, str(path)] + (["Where is the hook?"] if command == "ground" else [])

    assert main(argv) == 1

    _one_sentence(capsys, path.name)


def _one_sentence(capsys: pytest.CaptureFixture[str], words: str) -> None:
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("refinerank: ")
    assert words in printed.err
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([""], "empty", id="empty question"),
        pytest.param(["x" * 10_000], "10000 characters", id="long question"),
        pytest.param(["Where is the hook at 99 seconds?"], "past the end", id="past the end"),
        pytest.param(["Where every 1 second from 4 to 2 seconds?"], "4", id="reversed span"),
        pytest.param(["Where?", "--time", "soon"], "not a time", id="no time"),
        pytest.param(["Where?", "--profile", "best"], "unknown", id="unknown profile"),
        pytest.param(["Where?", "--json", "nowhere/out.json"], "cannot be written", id="no folder"),
        pytest.param(["Where?", "--maps", "."], "cannot be written", id="a folder"),
    ],
)
def test_a_bad_argument_is_one_line_on_stderr(
    clip_path: Path,
    untrained_profile: Path,
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ["ground", str(clip_path)]
    argv += [] if "--profile" in arguments else ["--profile", str(untrained_profile)]

    assert main([*argv, *arguments]) == 1

    _one_sentence(capsys, words)


@pytest.mark.parametrize("model", ["medvlm", "detector"])
def test_weights_that_are_not_numbers_are_one_line_on_stderr(
    model: str,
    clip_path: Path,
    untrained_profile: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(untrained_profile.parent, tmp_path / "models")
    path = tmp_path / "models" / model / "model.safetensors"
    tensors = load_file(path)
    for name, tensor in tensors.items():
        if "norm" in name and tensor.is_floating_point():
            tensor.fill_(float("nan"))
    save_file(tensors, path, metadata={"format": "pt"})

    profile = str(tmp_path / "models" / "profile.json")
    assert main(["ground", str(clip_path), "Where?", "--profile", profile]) == 1

    _one_sentence(capsys, "not finite")


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["ground"],
        ["nonsense"],
        ["ground", "a", "b", "--device", "tpu"],
        ["bench", "--repeats", "0"],
    ],
    ids=str,
)
def test_a_wrong_command_line_exits_with_2(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)

    assert caught.value.code == 2


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("ground", "info", "bench", "make-untrained"):
        with pytest.raises(SystemExit) as caught:
            build_parser().parse_args([command, "--help"])
        assert caught.value.code == 0
        assert command in capsys.readouterr().out


def test_the_bench_measures_every_line(
    system: RefineRank, clip_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "_TIMES", 2)  # eight as in the command take longer, not other code

    lines = bench.run(system, clip_path, repeats=1, two_hours=False)

    assert all(line.value > 0 for line in lines)
    assert {
        "open and table",
        "read_frame cold",
        "read_frame warm",
        "step forward within a group of pictures",
        "step back within a group of pictures",
        "stepping against the OpenCV seek",
        "encode cold",
        "encode, vision features cached",
        "detect",
        "pool, RefineNet, decode for 128 candidates",
        "ground, 1 time",
        "ground, 2 times together",
        "another question against the first",
        "together against one by one",
        "peak memory of the process",
    } <= {line.name for line in lines}
