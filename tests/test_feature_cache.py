"""The feature cache: content-addressed, resumable, without answers, the same whoever builds it."""

import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from refinerank_core.errors import FormatError, ModelError, RefineRankError
from refinerank_core.feature_answers import ANSWERS, compute_answer
from refinerank_core.feature_build import local_engine
from refinerank_core.feature_cache import LABELS, MANIFEST, SHARDS, CachedRegions, open_cache
from refinerank_core.feature_plan import Chunk
from refinerank_core.feature_sets import Example
from refinerank_core.feature_shards import open_shard, write_shard
from refinerank_core.frame_folder import read_picture
from refinerank_core.frozen_steps import ask_frozen
from refinerank_core.models.protocols import AnswerText
from refinerank_core.structures import Frame
from tests.caches import FakeMedVLM, cache, fake_backbones, write_rows

VIDEOS = {"EgoSurgery": ("e1", "e2"), "CoPESD": ("c1", "c2")}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Eight rows with 16 annotated times."""
    return write_rows(tmp_path / "data", VIDEOS)


def shards_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / SHARDS).iterdir()}


def test_what_comes_back_is_what_the_frozen_steps_gave(rows: Path, tmp_path: Path) -> None:
    cache(rows, tmp_path / "cache", shard_examples=5)

    found = open_cache(tmp_path / "cache")

    assert [one.features.dataset for one in found.sets] == ["CoPESD", "EgoSurgery"]
    ego = found.sets[1]
    example = ego.examples[1]
    picture = read_picture(rows.parent / "e1" / "e1_0002.png")
    wanted = ask_frozen(
        fake_backbones(),
        "Where is the grasper every 2 seconds from 0 to 2 seconds?",
        [Frame(picture, 2, 2.0)],
        [2.0],
        row="0",
        video="e1",
        video_key="k",
        duration_s=None,
    ).examples[0]
    assert (example.place, example.time_s, example.frame, example.size_wh) == (0, 2.0, 2, (96, 64))
    count = len(wanted.pool)
    assert ego.features.valid[1].sum() == count
    assert np.array_equal(ego.features.boxes[1, :count], wanted.pool.boxes)
    assert np.allclose(ego.features.q_last[1], wanted.q_last, atol=1e-3)
    assert np.allclose(ego.features.r_final[np.array([1])][0, :count], wanted.r_final, atol=1e-3)
    assert np.allclose(ego.features.r_blocks[3][1, np.arange(count)], wanted.r_blocks[3], atol=1e-3)
    assert ego.labels is not None
    assert ego.labels.boxes[1, 2] - ego.labels.boxes[1, 0] == 24


def test_answers_lie_in_a_file_of_their_own(rows: Path, tmp_path: Path) -> None:
    told = cache(rows, tmp_path / "a")
    text = (tmp_path / "a" / MANIFEST).read_text()
    items = json.loads(rows.read_text())
    for item in items:
        del item["struc_info"]
    rows.write_text(json.dumps(items))

    again = cache(rows, tmp_path / "b")

    assert (tmp_path / "a" / LABELS).is_file()
    assert not (tmp_path / "b" / LABELS).exists()
    assert again["digest"] == told["digest"]  # nothing but labels.json follows from the answers
    assert (tmp_path / "b" / MANIFEST).read_text() == text
    assert shards_of(tmp_path / "a") == shards_of(tmp_path / "b")
    with pytest.raises(RefineRankError, match="no annotation"):
        open_cache(tmp_path / "b").sets[0].annotated()


def test_an_unchanged_input_is_never_computed_again(rows: Path, tmp_path: Path) -> None:
    first = cache(rows, tmp_path / "cache")
    medvlm = FakeMedVLM()
    models = fake_backbones()
    second = cache(
        rows, tmp_path / "cache", backbones=type(models)(models.profile, medvlm, models.detector)
    )

    assert (first["computed"], second["computed"]) == (16, 0)
    assert medvlm.asked == []
    assert second["digest"] == first["digest"]


def test_a_changed_frame_or_question_is_computed_again_and_nothing_else(
    rows: Path, tmp_path: Path
) -> None:
    cache(rows, tmp_path / "cache")
    frame = rows.parent / "e1" / "e1_0002.png"
    image = cv2.imread(str(frame))
    assert image is not None
    image[0, 0] = 0
    cv2.imwrite(str(frame), image)
    items = json.loads(rows.read_text())
    items[-1]["question"] = "Where is the hook at 1.0 seconds?"
    rows.write_text(json.dumps(items))

    told = cache(rows, tmp_path / "cache")

    assert told["computed"] == 3  # one time of both questions about e1, and the new question
    assert len(told["examples"]) == 15


def test_a_build_that_was_stopped_goes_on_to_the_very_same_bytes(
    rows: Path, tmp_path: Path
) -> None:
    whole = cache(rows, tmp_path / "whole", shard_examples=4)
    models = fake_backbones()

    def killed(chunks: Sequence[Chunk], folder: Path) -> Iterator[int]:
        yield from local_engine(models)(chunks[:2], folder)
        (folder / ".half.part").write_bytes(b"half a shard")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache(rows, tmp_path / "stopped", engine=killed, shard_examples=4)
    with pytest.raises(RefineRankError, match="missing or damaged"):
        open_cache(tmp_path / "stopped")
    resumed = cache(rows, tmp_path / "stopped", shard_examples=4)

    assert resumed["computed"] == 8
    assert resumed["digest"] == whole["digest"]
    assert shards_of(tmp_path / "stopped") == shards_of(tmp_path / "whole")


def test_shards_done_out_of_order_give_the_same_cache(rows: Path, tmp_path: Path) -> None:
    whole = cache(rows, tmp_path / "whole", shard_examples=5)
    models = fake_backbones()

    def backwards(chunks: Sequence[Chunk], folder: Path) -> Iterator[int]:
        return local_engine(models)(chunks[::-1], folder)

    other = cache(rows, tmp_path / "other", engine=backwards, shard_examples=5)

    assert other["digest"] == whole["digest"]
    assert shards_of(tmp_path / "other") == shards_of(tmp_path / "whole")


@pytest.mark.parametrize("cut", [0, 5, 100, -1])
def test_a_shard_that_is_not_whole_is_computed_again(rows: Path, tmp_path: Path, cut: int) -> None:
    first = cache(rows, tmp_path / "cache", shard_examples=4)
    path = min((tmp_path / "cache" / SHARDS).iterdir())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(RefineRankError, match="not a whole feature shard"):
        open_shard(path)

    again = cache(rows, tmp_path / "cache", shard_examples=4)

    assert again["computed"] == 4
    assert again["digest"] == first["digest"]


def test_a_damaged_frame_is_told_and_the_rest_is_cached(rows: Path, tmp_path: Path) -> None:
    (rows.parent / "c2" / "c2_0002.png").write_bytes(b"not a picture")

    told = cache(rows, tmp_path / "cache")
    again = cache(rows, tmp_path / "cache")

    assert len(told["examples"]) == 14  # two questions ask about that frame
    assert all("c2_0002.png is missing or damaged" in fault["what"] for fault in told["faults"])
    assert len(told["faults"]) == 2
    assert again["computed"] == 0


def test_rows_of_which_none_can_be_used_are_refused(rows: Path, tmp_path: Path) -> None:
    rows.write_text("[]")

    with pytest.raises(FormatError, match="None of the rows"):
        cache(rows, tmp_path / "cache")


@pytest.mark.parametrize("content", [None, "[", "{}", '{"schema": "refinerank-features-1"}'])
def test_a_folder_without_a_whole_cache_is_one_sentence(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / MANIFEST).write_text(content)

    with pytest.raises(RefineRankError):
        open_cache(tmp_path)


def test_regions_on_disk_index_like_the_array_they_stand_for() -> None:
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=(n, 3)).astype(np.float16) for n in (7, 4)]
    starts, counts = np.array([0, 5, 1]), np.array([5, 2, 3])
    homes = [parts[0], parts[0], parts[1]]
    dense = np.zeros((3, 6, 3), np.float32)
    for row, (home, start, count) in enumerate(zip(homes, starts, counts, strict=True)):
        dense[row, :count] = home[start : start + count]

    lazy = CachedRegions(homes, starts, counts, 6)

    examples = np.array([[0], [2]])
    candidates = np.array([[0, 4, 5], [2, 0, 1]])
    assert lazy.shape == dense.shape
    assert np.array_equal(np.asarray(lazy), dense)
    assert np.array_equal(lazy[np.array([2, 0, 2])], dense[[2, 0, 2]])
    assert np.array_equal(lazy[1, np.array([1, 0])], dense[1, [1, 0]])
    assert np.array_equal(lazy[examples, candidates], dense[examples, candidates])
    assert np.array_equal(np.asarray(lazy.at([2, 1])), dense[[2, 1]])


def test_a_feature_too_large_for_float16_is_refused(tmp_path: Path) -> None:
    models = fake_backbones()
    frame = Frame(np.full((64, 96, 3), 230, np.uint8), 0, 0.0)
    made = ask_frozen(
        models, "Where is it at 0 s?", [frame], [0.0], row="0", video="v", video_key="v",
        duration_s=None,
    ).examples[0]  # fmt: skip
    large = Example(
        made.row, made.video, made.time_s, made.size_wh, made.pool, made.q_last * 1e6,
        made.r_final, made.r_blocks,
    )  # fmt: skip

    with pytest.raises(ModelError, match="too large"):
        write_shard(tmp_path, ["k"], [large])


class Speaking(FakeMedVLM):
    """Answers each time but the first with one box, in thousand-free pixels of the frame."""

    spoken = 0

    def answer(
        self, frames: Sequence[Frame], times_s: Sequence[float], question: str, video_key: str
    ) -> AnswerText:
        self.spoken += 1
        said = " ".join(f"{time_s:.1f} seconds: [10, 12, 40, 44]" for time_s in times_s[1:])
        return AnswerText(said, False, ())


def test_direct_answers_are_kept_once_and_leave_the_cache_as_it_was(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows", VIDEOS)
    models = replace(fake_backbones(), medvlm=Speaking())
    plain = cache(rows, tmp_path / "cache", shard_examples=3)
    speaking = local_engine(models, compute=compute_answer)

    manifest = cache(rows, tmp_path / "cache", answers=speaking, shard_examples=3)
    spoken = models.medvlm.spoken  # type: ignore[attr-defined]
    again = cache(rows, tmp_path / "cache", answers=speaking, shard_examples=3)

    assert manifest["digest"] == plain["digest"] == again["digest"]
    assert (manifest["computed"], spoken) == (0, 8)  # a question a word and video
    assert models.medvlm.spoken == spoken  # type: ignore[attr-defined]
    for one in open_cache(tmp_path / "cache").sets:
        assert one.direct is not None
        first = np.array([example.time_s == 0.0 for example in one.examples])
        assert np.isnan(one.direct[first]).all()
        assert (one.direct[~first] == (10, 12, 40, 44)).all()
    assert all(one.direct is None for one in open_cache(_plain(rows, tmp_path / "plain")).sets)


def _plain(rows: Path, out: Path) -> Path:
    cache(rows, out)
    return out


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray, an optional extra, is not installed"
)
def test_two_workers_of_ray_give_the_identical_cache(rows: Path, tmp_path: Path) -> None:
    from refinerank_core.feature_ray import ray_engine, remote_settings, start_ray

    speaking = local_engine(fake_backbones(), compute=compute_answer)
    alone = cache(rows, tmp_path / "alone", shard_examples=4, answers=speaking)
    ray = start_ray(2)
    try:
        assert remote_settings(fake_backbones, gpus=0)["models"] == alone["settings"]["models"]
        engine = ray_engine(fake_backbones, workers=2, gpus=0)
        answers = ray_engine(fake_backbones, workers=2, gpus=0, compute=compute_answer)
        shared = cache(rows, tmp_path / "shared", engine=engine, shard_examples=4, answers=answers)
    finally:
        ray.shutdown()

    assert shared["computed"] == 16
    assert shared["digest"] == alone["digest"]
    assert shards_of(tmp_path / "shared") == shards_of(tmp_path / "alone")
    kept = [sorted(p.name for p in (tmp_path / n / ANSWERS).iterdir()) for n in ("shared", "alone")]
    assert kept[0] == kept[1]
    assert len(kept[0]) == 8


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_without_ray_the_engine_says_how_to_get_it() -> None:
    from refinerank_core.feature_ray import start_ray

    with pytest.raises(RefineRankError, match="pip install"):
        start_ray(2)
