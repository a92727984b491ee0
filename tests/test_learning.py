"""Learning from reviews: what teaches, what is left out and said so, what comes of it."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from refinerank_core.boxes import iou
from refinerank_core.checkpoint import load_refinenet, save_refinenet
from refinerank_core.errors import ProfileError, RefineRankError
from refinerank_core.feature_sets import FeatureSet, Labels
from refinerank_core.frozen_steps import Backbones
from refinerank_core.grounding import Box
from refinerank_core.learning import learn as learning
from refinerank_core.learning.features import reviewed_cache
from refinerank_core.learning.held_out import Comparison, compare, sentence_of, verdict_of
from refinerank_core.learning.learn import LearnPlan, LearnTask, mixed, split
from refinerank_core.learning.pictures import take_pictures
from refinerank_core.learning.targets import counts, counts_of, digest_of, targets_of
from refinerank_core.learning.variant import write_variant
from refinerank_core.profiles import Learned, load_profile, variants
from refinerank_core.refinenet import RefineNet
from refinerank_core.reviews.records import Action, Case, Judgement
from refinerank_core.reviews.store import Store
from refinerank_core.video import open_video
from tests.caches import SIZE_WH, SQUARE, fake_backbones, write_rows
from tests.stores import case
from tests.test_training import CONFIG, feature_set

BOX: Box = (12.0, 11.0, 50.0, 49.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "reviews.db") as opened:
        yield opened


def decide(
    store: Store, one: Case, decision: str, *, box: Box | None = None, not_visible: bool = False
) -> None:
    """Put a case into the store and decide it."""
    store.add([one], by="importer")
    version = store.case(one.case_id).state.version
    body = Judgement(
        decision=decision,  # type: ignore[arg-type]
        box_before=one.box_of(one.method),
        box_after=box,
        not_visible=not_visible,
    )
    store.record(
        Action(
            client_id=f"{one.case_id[:40]}-{version}",
            case_id=one.case_id,
            reviewer="Ada",
            kind="decided",
            body=body,
            based_on=version,
        )
    )


def test_accepted_and_corrected_boxes_teach_and_nothing_else(store: Store) -> None:
    cases = [case(float(k)) for k in range(5)]
    decide(store, cases[0], "accept")
    decide(store, cases[1], "fix", box=BOX)
    decide(store, cases[2], "reject")
    decide(store, cases[3], "unsure")
    store.add([cases[4]], by="importer")

    found, left_out = targets_of(store)

    assert [(one.how, one.box) for one in found] == [
        ("accept", (10.0, 10.0, 50.0, 50.0)),
        ("fix", BOX),
    ]
    assert left_out == []
    assert (counts(store).accepted, counts(store).corrected, counts(store).videos) == (1, 1, 1)
    events = {event.seq: event.hash for event in store.events()}
    assert [events[one.seq] for one in found] == [one.event for one in found]


def test_the_state_is_the_fold_an_undone_decision_teaches_nothing(store: Store) -> None:
    one = case()
    decide(store, one, "fix", box=BOX)
    before = digest_of(targets_of(store)[0])
    state = store.case(one.case_id).state
    step = {"kind": "undone", "body": {"target": 0}, "based_on": state.version}
    store.record(
        Action.model_validate(
            {"client_id": "undo-it-1", "case_id": one.case_id, "reviewer": "Ada", **step}
        )
    )

    assert targets_of(store)[0] == []
    decide(store, one, "fix", box=BOX)
    assert digest_of(targets_of(store)[0]) != before  # another decision, though the same box


def test_a_box_beyond_the_frame_teaches_its_part_inside(store: Store) -> None:
    over, outside = case(1.0), case(2.0)
    wide, high = over.width, over.height
    decide(store, over, "fix", box=(wide - 20.0, high - 30.0, wide + 5.0, high + 9.0))
    decide(store, outside, "fix", box=(wide + 5.0, 1.0, wide + 9.0, 9.0))

    found, left_out = targets_of(store)

    assert [one.box for one in found] == [(wide - 20.0, high - 30.0, wide, high)]
    assert [one.why for one in left_out] == ["its box lies outside the frame"]


def test_what_gives_no_box_is_listed(store: Store) -> None:
    hidden, first = case(1.0), case(2.0)
    again = case(2.0, grounding_id="another answer to the same picture")
    decide(store, hidden, "accept", not_visible=True)
    decide(store, first, "fix", box=BOX)
    decide(store, again, "accept")

    found, left_out = targets_of(store)

    assert [one.case.case_id for one in found] == [again.case_id]
    assert {(one.case_id, one.why) for one in left_out} == {
        (hidden.case_id, "the target is not to be seen, so there is no box to learn"),
        (first.case_id, "the same picture was decided again later"),
    }


def frame_case(video: str, *, question: str) -> Case:
    """A case about the first frame of a drawn video that was reviewed without its hash."""
    width, height = SIZE_WH
    return case(
        0.0,
        video_name=video,
        video_sha256="",
        width=width,
        height=height,
        question=question,
        target="",
        frame_index=0,
    )


@pytest.fixture
def reviewed(store: Store, tmp_path: Path) -> Path:
    """Reviews of drawn frames: each says where the bright square is. Returns the videos' folder."""
    names = tuple(f"v{k}" for k in range(8))
    videos = tmp_path / "videos"
    write_rows(videos, {"any": names}, seed=3)
    for name in names:
        with open_video(videos / name) as video:
            for index in (0, 2):
                image = video.read_frame(index).image
                ys, xs = np.nonzero(image[..., 0] > 200)
                x, y = float(xs.min()), float(ys.min())
                for word in ("grasper", "knife"):
                    one = Case.model_validate(
                        {
                            "video_name": name,
                            "video_sha256": video.sha256,
                            "width": SIZE_WH[0],
                            "height": SIZE_WH[1],
                            "question": f"Where is the {word}?",
                            "requested_s": float(video.times_s[index]),
                            "frame_index": index,
                            "answers": [{"method": "refinerank", "box": (0.0, 0.0, 30.0, 20.0)}],
                        }
                    )
                    decide(store, one, "fix", box=(x, y, x + SQUARE, y + SQUARE))
    return videos


def test_pictures_are_the_reviewed_frames_and_absent_videos_are_named(
    store: Store, reviewed: Path, tmp_path: Path
) -> None:
    decide(store, case(video_name="gone.mp4"), "accept")
    targets, _ = targets_of(store)

    pictures, left_out = take_pictures(targets, [reviewed], tmp_path / "frames")

    assert len(pictures) == 32
    assert [(one.video, one.why) for one in left_out] == [
        ("gone.mp4", "its video is in none of the folders of videos")
    ]
    for one in pictures[:3]:
        with open_video(reviewed / one.target.case.video_name) as video:
            kept = open_video(one.path.parent)
            assert np.array_equal(
                video.read_frame(one.frame).image,
                kept.read_frame([0, 2].index(one.frame)).image,
            )


def test_a_video_of_the_same_name_and_other_bytes_is_not_the_one(
    store: Store, reviewed: Path, tmp_path: Path
) -> None:
    (reviewed / "v3" / "v3_0001.png").write_bytes((reviewed / "v4" / "v4_0000.png").read_bytes())
    targets, _ = targets_of(store)

    pictures, left_out = take_pictures(targets, [reviewed], tmp_path / "frames")

    assert {one.video for one in left_out} == {"v3"}
    assert len(pictures) == 28


def test_a_video_reviewed_with_and_without_its_hash_is_one_and_never_on_both_sides(
    store: Store, reviewed: Path, tmp_path: Path
) -> None:
    for k in range(8):
        one = frame_case(f"v{k}", question="Where is the hook?")
        decide(store, one, "fix", box=BOX)
    targets, _ = targets_of(store)
    assert len({one.video for one in targets}) == 16  # nobody has seen the files yet

    pictures, left_out = take_pictures(targets, [reviewed], tmp_path / "frames")
    cache, _, _ = reviewed_cache(fake_backbones(), pictures, tmp_path / "cache")
    taught, held = split(*cache.sets[0].annotated(), share=0.5, seed=1)

    assert (len(pictures), left_out) == (40, [])
    assert counts_of(one.target for one in pictures).videos == 8
    assert held is not None
    names = {f"reviews/{one.target.video}": one.target.case.video_name for one in pictures}
    sides = [{names[video] for video in side[0].videos} for side in (taught, held)]
    assert [len(side) for side in sides] == [4, 4]
    assert not sides[0] & sides[1]


def test_two_names_of_the_same_bytes_are_one_video_and_the_last_decision_counts(
    store: Store, reviewed: Path, tmp_path: Path
) -> None:
    shutil.copytree(reviewed / "v0", reviewed / "copy")
    again = frame_case("copy", question="Where is the knife?")
    other = frame_case("copy", question="Where is the hook?")
    decide(store, again, "fix", box=BOX)
    decide(store, other, "fix", box=BOX)

    pictures, left_out = take_pictures(targets_of(store)[0], [reviewed], tmp_path / "frames")

    assert counts_of(one.target for one in pictures).videos == 8
    assert len(pictures) == 33
    assert [(one.video, one.why) for one in left_out] == [
        ("v0", "the same picture was decided again later")
    ]
    boxes = {one.target.case.case_id: one.target.box for one in pictures}
    assert boxes[again.case_id] == boxes[other.case_id] == BOX


def test_a_case_of_another_frame_size_than_its_video_is_left_out(
    store: Store, reviewed: Path, tmp_path: Path
) -> None:
    known = next(one.case for one in targets_of(store)[0] if one.case.video_name == "v5")
    for one in (known, frame_case("v5", question="")):
        larger = one.model_copy(update={"width": 640, "height": 360, "question": "Where is it?"})
        decide(store, larger, "fix", box=BOX)

    pictures, left_out = take_pictures(targets_of(store)[0], [reviewed], tmp_path / "frames")

    assert len(pictures) == 32
    why = "its video has frames of 96x64, but a frame of 640x360 was reviewed"
    assert [(one.video, one.why) for one in left_out] == [("v5", why)] * 2


def test_reviewed_pictures_get_the_features_of_the_build(
    store: Store, reviewed: Path, tmp_path: Path
) -> None:
    pictures, _ = take_pictures(targets_of(store)[0], [reviewed], tmp_path / "frames")

    cache, used, failed = reviewed_cache(fake_backbones(), pictures, tmp_path / "cache")

    features, labels = cache.sets[0].annotated()
    assert (len(features), failed) == (32, [])
    assert [one.target.box for one in used] == [tuple(box) for box in labels.boxes.tolist()]
    assert len(set(features.videos)) == 8
    assert cache.manifest["settings"]["models"] == ["fake-medvlm@0", "fake-detector@0"]


def test_a_split_holds_whole_videos_out() -> None:
    features, labels = feature_set("reviews", 40)

    taught, held = split(features, labels, share=0.3, seed=1)

    assert held is not None
    assert not set(taught[0].videos) & set(held[0].videos)
    assert len(set(held[0].videos)) == 3
    assert len(taught[0]) + len(held[0]) == 40


def test_one_video_cannot_be_split() -> None:
    features, labels = feature_set("reviews", 4)

    taught, held = split(features, labels, share=0.5, seed=1)

    assert (len(taught[0]), held) == (4, None)


@pytest.mark.parametrize(
    ("videos", "difference", "p", "verdict"),
    [
        (5, 0.3, 0.06, "too few to tell"),
        (12, 0.1, 0.001, "better"),
        (12, -0.1, 0.001, "worse"),
        (12, 0.01, 0.4, "no difference"),
    ],
)
def test_the_verdict_says_no_more_than_the_figures(
    videos: int, difference: float, p: float, verdict: str
) -> None:
    ends = (difference, difference - 0.05, difference + 0.05)
    compared = Comparison(50, videos, (0.4, 0.3, 0.5), (0.4, 0.3, 0.5), ends, p)

    assert verdict_of(compared) == verdict
    assert f"{difference:+.3f}" in sentence_of(compared)


def test_without_held_out_videos_nothing_is_claimed() -> None:
    assert verdict_of(None) == "too few to tell"
    assert "at least two" in sentence_of(None)


def test_comparing_a_net_with_itself_shows_no_difference() -> None:
    features, labels = feature_set("reviews", 40)
    net = RefineNet(CONFIG).eval()

    compared = compare(net, net, [(features, labels)])

    assert compared.before == compared.after
    assert (compared.difference[0], compared.p) == (0.0, 1.0)
    assert compared.videos == 10


def test_mixed_weights_lie_between(tmp_path: Path) -> None:
    old, new = RefineNet(CONFIG), RefineNet(CONFIG)

    net = mixed(old, new, kept=0.25)

    for name, tensor in net.state_dict().items():
        wanted = 0.25 * old.state_dict()[name] + 0.75 * new.state_dict()[name]
        assert torch.allclose(tensor, wanted, atol=1e-6), name


def taught_profile(tmp_path: Path, backbones: Backbones, features: FeatureSet) -> Path:
    """A profile on disk whose RefineNet fits these features."""
    widths = (features.q_last.shape[-1], features.r_final.shape[-1], 4)
    config = replace(
        CONFIG, query_dim=widths[0], final_dim=widths[1], inter_dim=widths[2], inter_block=3
    )
    torch.manual_seed(0)
    save_refinenet(RefineNet(config), tmp_path / "models" / "start.safetensors")
    told = backbones.profile.model_dump(mode="json", exclude={"folder"})
    told["medvlm"]["source"] = "./medvlm"
    told["refinenet"] = {"source": "./models/start.safetensors", "inter_block": 3}
    path = tmp_path / "fake.json"
    path.write_text(json.dumps(told))
    return path


def test_reviews_teach_a_variant_with_its_provenance(
    store: Store, reviewed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbones = fake_backbones()
    pictures, _ = take_pictures(targets_of(store)[0], [reviewed], tmp_path / "frames")
    cache, _, _ = reviewed_cache(backbones, pictures, tmp_path / "cache")
    profile = taught_profile(tmp_path, backbones, cache.sets[0].features)
    monkeypatch.setattr(Backbones, "load", lambda *_: backbones)
    task = LearnTask(str(profile), (reviewed,), tmp_path / "work", tmp_path / "variants")
    stages: list[str] = []

    result = learning.learn(
        store,
        task,
        LearnPlan(epochs=60, rate=3e-3, kept=0.0),
        told=lambda stage, *_: stages.append(stage),
    )

    assert list(dict.fromkeys(stages)) == list(learning.STAGES)
    assert result["reviews"]["cases"] == 32
    assert result["training"] == {"cases": 24, "videos": 6}
    assert result["held_out"]["videos"] == 2
    assert result["verdict"] == "too few to tell"
    assert result["losses"][-1] < result["losses"][0]
    (variant,) = variants(tmp_path / "variants")
    assert variant.learned == Learned(
        variant_of="fake",
        started_from=result["started_from"],
        reviews_sha256=digest_of(targets_of(store)[0]),
        cases=32,
    )
    assert variant.locate(variant.medvlm.source) == str(tmp_path / "medvlm")
    net = load_refinenet(Path(variant.locate(str(variant.refinenet.source))))
    card = json.loads((tmp_path / "variants" / f"{variant.name}.card.json").read_text())
    assert len(card["decisions"]) == 32
    assert not set(card["videos"]) & set(card["held_out_videos"])
    # What was learned is where the square is: the boxes of the held-out videos show it.
    features, labels = cache.sets[0].annotated()
    held = np.array([video in card["held_out_videos"] for video in features.videos])
    part = features.subset(np.flatnonzero(held)), Labels(labels.boxes[held])
    start = load_refinenet(tmp_path / "models" / "start.safetensors")
    gained = compare(start, net, [part])
    assert gained.difference[0] > 0.05
    assert float(iou(labels.boxes, labels.boxes).min()) == 1.0


def test_too_few_reviews_are_refused_in_one_sentence(store: Store, tmp_path: Path) -> None:
    decide(store, case(video_name="gone.mp4"), "accept")
    net = tmp_path / "net.safetensors"
    save_refinenet(RefineNet(CONFIG), net)
    task = LearnTask("phantom", (tmp_path,), tmp_path / "work", tmp_path / "out", refinenet=net)

    with pytest.raises(RefineRankError, match=r"0 of 1 reviewed boxes .* none of the folders"):
        learning.learn(store, task, LearnPlan())


def test_a_variant_keeps_the_sources_of_its_profile(tmp_path: Path) -> None:
    profile = load_profile("phantom")
    learned = Learned(variant_of="phantom", started_from="a@1", reviews_sha256="ab", cases=9)
    config = replace(CONFIG, inter_block=5)

    write_variant(tmp_path / "deep" / "down", "mine", profile, RefineNet(config), learned, {})

    (variant,) = variants(tmp_path / "deep" / "down")
    for part in ("medvlm", "detector"):
        wanted = profile.locate(getattr(profile, part).source)
        assert variant.locate(getattr(variant, part).source) == wanted
    assert variant.phantom
    assert variant.detector.max_raw == profile.detector.max_raw
    assert "taught by 9 reviewed boxes" in variant.label


def test_a_folder_without_variants_has_none_and_a_broken_one_is_named(tmp_path: Path) -> None:
    assert variants(None) == variants(tmp_path / "absent") == []
    (tmp_path / "mine.json").write_text("{}")

    with pytest.raises(ProfileError, match=r"mine\.json"):
        variants(tmp_path)
