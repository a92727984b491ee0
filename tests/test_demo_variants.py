"""The header's other RefineNets: found while the app runs, answering by the same frozen models."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import app
from demo.lookup import Lookup
from demo.runs import Pace
from demo.services import Limits
from demo.sessions import Sessions
from refinerank_core.errors import RefineRankError
from refinerank_core.learning.variant import write_variant
from refinerank_core.pipeline import RefineRank
from refinerank_core.profiles import Learned, Profile
from refinerank_core.progress import Grounded
from refinerank_core.refinenet import RefineNet
from refinerank_core.video import Video, open_video
from tests.clips import encode, numbered

LEARNED = Learned(variant_of="untrained", started_from="a@1", reviews_sha256="ab", cases=9)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Video:
    path = tmp_path_factory.mktemp("clip") / "numbers.mp4"
    encode(path, (numbered(k, (96, 64)) for k in range(12)))
    return open_video(path)


def teach(system: RefineRank, folder: Path, name: str, profile: Profile | None = None) -> None:
    """Leave a variant with random weights."""
    assert system.net is not None
    torch.manual_seed(len(name))
    net = RefineNet(system.net.config)
    write_variant(folder, name, profile or system.profile, net, LEARNED, {})


def test_a_variant_answers_with_its_own_refinenet_and_the_loaded_models(
    system: RefineRank, video: Video, tmp_path: Path
) -> None:
    services = app.wire(system, tmp_path, Limits(), variants=tmp_path / "variants")
    assert list(services.variants()) == []

    teach(system, tmp_path / "variants", "taught")
    (card,) = services.variants()
    assert services.ground_as is not None
    own, other = (
        list(ground(video, "where is the hook?", [0.2], 0.0, False))[-1]
        for ground in (services.ground, services.ground_as("taught"))
    )

    assert (card.name, card.medvlm) == ("taught", services.profile.medvlm)
    assert card.refinenet.startswith("taught@")
    assert isinstance(own, Grounded)
    assert isinstance(other, Grounded)
    assert other.grounding.profile.refinenet == card.refinenet
    assert own.grounding.profile.refinenet == services.profile.refinenet
    boxes = [[one.box for one in each.grounding.times[0].candidates] for each in (own, other)]
    assert np.array_equal(boxes[0], boxes[1])  # the detector is the same
    scores = [each.grounding.times[0].candidates[0].score_original for each in (own, other)]
    assert scores[0] != scores[1]


def test_a_variant_that_is_trained_again_is_loaded_again(
    system: RefineRank, tmp_path: Path
) -> None:
    services = app.wire(system, tmp_path, Limits(), variants=tmp_path)
    teach(system, tmp_path, "taught")
    before = services.variants()[0].refinenet

    assert system.net is not None
    torch.manual_seed(99)
    write_variant(tmp_path, "taught", system.profile, RefineNet(system.net.config), LEARNED, {})

    assert services.variants()[0].refinenet != before


def test_variants_of_other_models_are_not_offered(system: RefineRank, tmp_path: Path) -> None:
    other = system.profile.medvlm.model_copy(update={"max_pixels": 12_345})
    teach(system, tmp_path, "foreign", system.profile.model_copy(update={"medvlm": other}))
    services = app.wire(system, tmp_path, Limits(), variants=tmp_path)

    assert list(services.variants()) == []
    assert services.ground_as is not None
    with pytest.raises(RefineRankError, match="no variant of"):
        services.ground_as("foreign")
    with pytest.raises(RefineRankError, match="no longer there"):
        services.ground_as("gone")


def test_the_page_is_told_of_them(system: RefineRank, tmp_path: Path) -> None:
    teach(system, tmp_path, "taught")
    services = app.wire(system, tmp_path, Limits(), variants=tmp_path)
    sessions = Sessions(replace(services, samples=tmp_path))
    look = Lookup(services, sessions, None, Pace())  # type: ignore[arg-type]

    (row,) = look.variants({})["rows"]
    sessions.close()

    assert row["name"] == "taught"
    assert "taught by 9 reviewed boxes" in row["label"]
    assert row["ids"][2].startswith("taught@")
