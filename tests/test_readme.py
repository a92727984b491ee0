"""The README stays true: its commands exist, and CI runs its test command."""

import re
import subprocess
from pathlib import Path

import pytest
from pydantic import BaseModel

from refinerank_core.__main__ import build_parser
from refinerank_core.profiles import (
    DetectorProfile,
    MedVLMProfile,
    Profile,
    RefineNetProfile,
)

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """The names of all sub-commands."""
    actions = [a for a in build_parser()._actions if a.dest == "command"]
    choices = actions[0].choices
    assert choices is not None
    return [str(name) for name in choices]


@pytest.mark.parametrize("name", commands())
def test_every_command_stands_in_the_readme(name: str) -> None:
    assert f"python -m refinerank_core {name}" in README


def test_every_command_of_the_readme_exists() -> None:
    named = re.findall(r"python -m refinerank_core ([a-z][a-z-]*)", README)

    assert set(named) <= set(commands())


def test_the_two_commands_install_from_the_repository() -> None:
    starts = [line for line in README.splitlines() if line.startswith("python3 -m venv")]

    assert len(starts) == 2
    assert all("pip install" in line and "-r requirements.txt" in line for line in starts)
    assert starts[0].endswith("app.py")
    assert starts[1].endswith("-m pytest")


def test_ci_runs_the_readmes_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    extract = next(line for line in script.splitlines() if line.startswith("command="))

    found = subprocess.run(
        ["bash", "-c", f'{extract}\nprintf "%s" "$command"'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert found in README.splitlines()
    assert found.endswith("-m pytest")


def test_the_fields_of_the_profile_table_exist() -> None:
    table = README.split("## Profiles")[1].split("## ")[0]
    sections: dict[str, type[BaseModel]] = {
        "medvlm": MedVLMProfile,
        "detector": DetectorProfile,
        "refinenet": RefineNetProfile,
    }
    section = ""
    for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        for name in re.findall(r"`([a-z_.]+)`", cell):
            head, _, tail = name.rpartition(".")
            section = head or section if "." in name else ""
            model: type[BaseModel] = sections[section] if section else Profile
            assert tail in model.model_fields, name


def test_the_visible_top_level_is_the_agreed_one() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    top = {Path(name).parts[0] for name in tracked}

    assert {name for name in top if not name.startswith(".")} <= {
        "demo",
        "refinerank_core",
        "assets",
        "tests",
        "app.py",
        "requirements.txt",
        "README.md",
        "pyproject.toml",
        "LICENSE",
    }
