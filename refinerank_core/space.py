"""Whether the repository can be pushed to Hugging Face as a Space: what is wrong, in sentences."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from huggingface_hub.repocard import metadata_load
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from refinerank_core.hub import parts_of
from refinerank_core.profiles import load_profile

LARGEST_BYTES = 10_000_000
"""What the hub takes outside of LFS."""

PYTHONS = ("3.12", "3.12.12")
"""ZeroGPU runs 3.10.13 and 3.12.12; asked for another it falls back to 3.10, which is too old."""

_NEEDED = (
    "title",
    "sdk",
    "sdk_version",
    "python_version",
    "app_file",
    "fullWidth",
    "license",
    "models",
    "short_description",
    "tags",
)
_COLOURS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
_LONGEST_DESCRIPTION = 60
_BUILD_S = 600


def check_space(root: Path, *, build: bool) -> list[str]:
    """Everything that keeps this folder from being a Space; nothing is changed.

    Args:
        root: of the repository.
        build: also build the page in a process of its own, as a Space does.

    Returns:
        One sentence per fault.
    """
    faults = front_matter_faults(root) + requirement_faults(root) + size_faults(root)
    faults += example_faults(root)
    if (root / "packages.txt").exists():
        faults.append("packages.txt: the Space's image has libGL and FFmpeg. Remove the file.")
    return faults + build_faults(root) if build else faults


def front_matter_faults(root: Path) -> list[str]:
    """What is missing or wrong in the block at the head of README.md."""
    try:
        told: dict[str, Any] = metadata_load(root / "README.md") or {}
    except (OSError, ValueError) as error:
        return [f"README.md: its front matter cannot be read ({type(error).__name__})."]
    faults = [f"README.md: {key} is missing." for key in _NEEDED if key not in told]
    if told.get("sdk") != "gradio":
        faults.append(f"README.md: sdk is {told.get('sdk')}, wanted gradio.")
    faults += _version_faults(root, str(told.get("sdk_version", "")))
    python = str(told.get("python_version", ""))
    if python not in PYTHONS:
        faults.append(
            f"README.md: python_version is {python or 'empty'}, wanted {' or '.join(PYTHONS)}: "
            "of the versions that ZeroGPU runs, those that this code takes."
        )
    if not (root / str(told.get("app_file", ""))).is_file():
        faults.append(f"README.md: app_file {told.get('app_file')} does not exist.")
    description = str(told.get("short_description", ""))
    if len(description) > _LONGEST_DESCRIPTION:
        faults.append(
            f"README.md: short_description has {len(description)} letters, "
            f"{_LONGEST_DESCRIPTION} at most."
        )
    faults += [
        f"README.md: {key} {told[key]} is no colour of a Space."
        for key in ("colorFrom", "colorTo")
        if key in told and told[key] not in _COLOURS
    ]
    wanted = {part.repo for part in parts_of(load_profile("full"))}
    absent = sorted(wanted - set(told.get("models") or ()))
    return faults + [f"README.md: models lacks {name}." for name in absent]


def requirement_faults(root: Path) -> list[str]:
    """Lines of requirements.txt that are none, or that what is installed here does not meet."""
    faults: list[str] = []
    for requirement in requirements_of(root, faults):
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            faults.append(f"requirements.txt: {requirement.name} is not installed here.")
            continue
        if not requirement.specifier.contains(found, prereleases=True):
            faults.append(f"requirements.txt: {requirement}, and {found} is installed here.")
    return faults


def requirements_of(root: Path, faults: list[str]) -> list[Requirement]:
    """The requirements; lines that are none are added to the faults."""
    found = []
    for line in (root / "requirements.txt").read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            faults.append(f"requirements.txt: {text!r} is no requirement.")
    return found


def size_faults(root: Path) -> list[str]:
    """Tracked files that the hub takes only through LFS."""
    return [
        f"{path.relative_to(root)}: {path.stat().st_size / 1e6:.1f} MB, more than 10 MB. "
        "Track it with LFS."
        for path in _tracked(root)
        if path.is_file() and path.stat().st_size > LARGEST_BYTES and not _in_lfs(root, path)
    ]


def example_faults(root: Path) -> list[str]:
    """Bundled clips whose first question has no kept answer: a visitor would wait for it."""
    return [
        f"{clip.relative_to(root)}: no answer is kept beside it. "
        "Run 'python -m refinerank_core phantom samples assets/samples --answers phantom'."
        for clip in sorted((root / "assets" / "samples").glob("*.mp4"))
        if not clip.with_suffix(".grounding.json").is_file()
    ]


def build_faults(root: Path) -> list[str]:
    """What the app says when it builds its page as a Space does; nothing is served."""
    command = [sys.executable, "app.py", "--check", "--profile", "untrained", "--device", "cpu"]
    with tempfile.TemporaryDirectory(prefix="refinerank-") as folder:
        told = {"SPACE_ID": "owner/refinerank", "REFINERANK_DB": f"{folder}/reviews.db"}
        try:
            done = subprocess.run(
                command,
                cwd=root,
                env=os.environ | told,
                capture_output=True,
                text=True,
                timeout=_BUILD_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [f"app.py: its page was not built within {_BUILD_S} s."]
    if done.returncode == 0:
        return []
    said = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
    return [f"app.py: its page cannot be built ({said[:200]})."]


def _version_faults(root: Path, told: str) -> list[str]:
    try:
        wanted = Version(told)
    except InvalidVersion:
        return [f"README.md: sdk_version {told!r} is no version."]
    gradio = [one for one in requirements_of(root, []) if one.name == "gradio"]
    if gradio and not gradio[0].specifier.contains(wanted):
        return [f"README.md: sdk_version {told} and requirements.txt ({gradio[0]}) exclude it."]
    return []


def _tracked(root: Path) -> Iterable[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:  # no checkout: everything that is there
        return [path for path in root.rglob("*") if ".git" not in path.parts]
    return [root / name for name in done.stdout.split("\0") if name]


def _in_lfs(root: Path, path: Path) -> bool:
    done = subprocess.run(
        ["git", "check-attr", "filter", "--", str(path)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip().endswith(": lfs")
