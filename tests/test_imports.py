"""Who may import whom: the app sees the demo, the demo the core, the core its lower floors."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Room of refinerank_core -> its floor. A room may import rooms on its own floor or below.
FLOORS = {
    0: {"errors", "structures", "__init__"},
    1: {
        "boxes",
        "boxes_torch",
        "roi",
        "times",
        "caption",
        "question",
        "answers",
        "answer_reader",
        "metrics",
        "intervals",
        "reliability",
        "failures",
        "failure_figures",
        "agreement",
    },
    2: {
        "grounding",
        "video",
        "video_file",
        "frame_table",
        "frame_stream",
        "frame_display",
        "frame_folder",
        "frame_writer",
        "gop_cache",
        "packet_bits",
        "shots",
        "footage",
        "device",
        "allocator",
        "whole_file",
        "models",
        "profiles",
        "hub",
        "hub_lock",
        "fetch",
        "deidentify",
        "space",
        "reviews",
        "formats",
    },
    3: {
        "candidates",
        "reencode",
        "refinenet",
        "calibration",
        "checkpoint",
        "decode",
        "losses",
        "released",
        "responses",
        "direct",
        "drawing",
        "evaluation",
    },
    4: {
        "assembly",
        "lineup",
        "progress",
        "steps",
        "pipeline",
        "bench",
        "bench_limits",
        "limits",
        "timing",
        "feature_sets",
        "feature_shards",
        "feature_cache",
        "feature_answers",
        "feature_build",
        "feature_manifest",
        "feature_plan",
        "feature_ray",
        "frozen_steps",
        "folds",
        "cached_training",
        "cached_tables",
        "training_bench",
        "joint_pool",
        "learning",
        "training",
        "selectors",
        "selector_features",
        "study",
        "study_figures",
        "study_tables",
        "phantom",
        "untrained",
    },
    5: {"commands", "__main__"},
}
# The only rooms that may know these foreign things.
FOREIGN = {
    "transformers": {"models", "phantom"},
    "av": {"video", "phantom", "bench"} | {room for room in FLOORS[2] if room != "models"},
    "ray": {"feature_ray"},
    "gradio": set(),
    "demo": set(),
    "app": set(),
}


def imports_of(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            module = node.module or ""
            if module in ("refinerank_core", "demo"):
                yield from (f"{module}.{name.name}" for name in node.names)
            else:
                yield module


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "refinerank_core").parts[0].removesuffix(".py")


CORE = sorted((ROOT / "refinerank_core").rglob("*.py"))
FLOOR_OF = {room: floor for floor, rooms in FLOORS.items() for room in rooms}


def test_every_room_of_the_core_has_a_floor() -> None:
    assert {room_of(path) for path in CORE} <= set(FLOOR_OF)


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_imports_downwards(path: Path) -> None:
    room = room_of(path)
    # models/untrained makes a whole line-up for the pipeline and stands with the wholes.
    floor = FLOOR_OF["untrained" if path.stem == "untrained" and room == "models" else room]
    for module in imports_of(path):
        parts = module.split(".")
        if parts[0] == "refinerank_core" and len(parts) > 1:
            other = FLOOR_OF["untrained" if parts[1:3] == ["models", "untrained"] else parts[1]]
            assert other <= floor, f"{path.name} (floor {floor}) imports {module} (floor {other})"
        if parts[0] in FOREIGN:
            assert room in FOREIGN[parts[0]], f"{path.name} imports {module}"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "demo").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_demo_knows_gradio_and_no_model(path: Path) -> None:
    for module in imports_of(path):
        parts = module.split(".")
        assert parts[0] not in {"torch", "transformers", "groundingdino", "app"}, module
        assert parts[:2] not in (["refinerank_core", "models"], ["refinerank_core", "refinenet"])


def test_the_presenter_knows_no_gradio() -> None:
    for name in (
        "present plots review_facts findings_facts findings_plots results_facts results_tables"
        " results_plots results_read results_learning"
    ).split():
        assert "gradio" not in set(imports_of(ROOT / "demo" / f"{name}.py"))
