"""What keeps the repository from being a Space, one sentence each."""

import subprocess
from pathlib import Path

import pytest

from refinerank_core.__main__ import main
from refinerank_core.space import check_space, size_faults

ROOT = Path(__file__).resolve().parent.parent
FRONT = """---
title: RefineRank
sdk: gradio
sdk_version: {sdk_version}
python_version: "{python}"
app_file: app.py
fullWidth: true
license: apache-2.0
short_description: {description}
tags: [surgery]
models: [{models}]
colorFrom: {colour}
---
"""
MODELS = "UII-AI/uAI-NEXUS-MedVLM-1.0a-7B-RL, IDEA-Research/grounding-dino-base, linzher/RefineRank"
GOOD = {
    "sdk_version": "6.31.0",
    "description": "Surgical grounding",
    "models": MODELS,
    "colour": "blue",
    "python": "3.12",
}


def repository(folder: Path, **told: str) -> Path:
    """A repository that is a Space but for what is told."""
    (folder / "README.md").write_text(FRONT.format(**(GOOD | told)))
    (folder / "requirements.txt").write_text("numpy>=2.1,<3  # arrays\ngradio>=6.31,<7\n")
    (folder / "app.py").write_text("")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    return folder


def test_this_repository_can_be_pushed_as_a_space(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("groundingdino", reason="groundingdino-py is not installed")
    assert main(["space", "--check", "--no-build"]) == 0
    assert "can be pushed as a Space" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, ""),
        ({"sdk_version": "5.0"}, "sdk_version 5.0 and requirements.txt"),
        ({"sdk_version": "new"}, "sdk_version 'new' is no version"),
        ({"description": "x" * 61}, "short_description has 61 letters"),
        ({"python": "3.11"}, "python_version is 3.11, wanted 3.12"),
        ({"colour": "mauve"}, "colorFrom mauve is no colour"),
        ({"models": "linzher/RefineRank"}, "models lacks IDEA-Research/grounding-dino-base"),
    ],
    ids=["good", "other version", "no version", "long", "python", "colour", "models"],
)
def test_a_fault_of_the_front_matter_is_named(
    tmp_path: Path, told: dict[str, str], words: str
) -> None:
    faults = check_space(repository(tmp_path, **told), build=False)

    assert bool(faults) == bool(words)
    assert words in " ".join(faults)


def test_requirements_that_are_not_met_here_are_named(tmp_path: Path) -> None:
    repository(tmp_path)
    (tmp_path / "requirements.txt").write_text("numpy<1\nno-such-package-here\n!!\n")

    told = " ".join(check_space(tmp_path, build=False))

    assert "requirements.txt: numpy<1, and " in told
    assert "no-such-package-here is not installed here" in told
    assert "'!!' is no requirement" in told


def test_a_large_file_is_named_unless_lfs_tracks_it(tmp_path: Path) -> None:
    repository(tmp_path)
    with (tmp_path / "big.bin").open("wb") as file:
        file.truncate(10_000_001)
    subprocess.run(["git", "add", "big.bin"], cwd=tmp_path, check=True)

    assert size_faults(tmp_path) == ["big.bin: 10.0 MB, more than 10 MB. Track it with LFS."]
    (tmp_path / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    assert size_faults(tmp_path) == []


def test_a_clip_without_a_kept_answer_is_named(tmp_path: Path) -> None:
    samples = repository(tmp_path) / "assets" / "samples"
    samples.mkdir(parents=True)
    for name in ("one.mp4", "two.mp4", "one.grounding.json"):
        (samples / name).write_text("")

    (fault,) = check_space(tmp_path, build=False)

    assert fault.startswith("assets/samples/two.mp4: no answer is kept beside it.")


def test_the_page_is_built_as_a_space_builds_it(tmp_path: Path) -> None:
    (repository(tmp_path) / "app.py").write_text(
        "import os, sys\nsys.exit(os.environ['SPACE_ID'] + ' ' + ' '.join(sys.argv[1:3]))\n"
    )

    (fault,) = check_space(tmp_path, build=True)

    assert "(owner/refinerank --check --profile)" in fault


def test_packages_txt_is_not_needed(tmp_path: Path) -> None:
    (repository(tmp_path) / "packages.txt").write_text("libgl1\n")

    assert check_space(tmp_path, build=False) == [
        "packages.txt: the Space's image has libGL and FFmpeg. Remove the file."
    ]


def test_a_page_that_cannot_be_built_is_named_with_its_last_words(tmp_path: Path) -> None:
    (repository(tmp_path) / "app.py").write_text("raise SystemExit('no page today')\n")

    faults = check_space(tmp_path, build=True)

    assert faults == ["app.py: its page cannot be built (no page today)."]
