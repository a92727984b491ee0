"""Profiles: what the bundled ones name, and the sentence for each field that does not fit."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from refinerank_core.bench import random_detections
from refinerank_core.candidates import build_pool
from refinerank_core.decode import filter_and_choose
from refinerank_core.errors import ModelError, ProfileError
from refinerank_core.hub import parts_of
from refinerank_core.models import loading
from refinerank_core.pipeline import RefineRank
from refinerank_core.profiles import PROFILE_FOLDER, load_profile
from refinerank_core.refinenet import unrefined


@pytest.mark.parametrize(
    ("name", "repositories"),
    [
        (
            "full",
            [
                "UII-AI/uAI-NEXUS-MedVLM-1.0a-7B-RL",
                "IDEA-Research/grounding-dino-base",
                "linzher/RefineRank",
            ],
        ),
        (
            "medseq",
            [
                "MedSG-Bench/MedSeq-Grounder",
                "IDEA-Research/grounding-dino-base",
                "linzher/RefineRank",
            ],
        ),
        ("qwen", ["Qwen/Qwen2.5-VL-3B-Instruct", "IDEA-Research/grounding-dino-base"]),
    ],
)
def test_the_real_line_ups_name_their_repositories(name: str, repositories: list[str]) -> None:
    profile = load_profile(name)

    assert [part.repo for part in parts_of(profile)] == repositories
    assert profile.medvlm.blocks == (7, 15, 23, 31)
    assert profile.refinenet.inter_block == 31
    assert not profile.untrained
    assert not profile.phantom
    for part in parts_of(profile):
        assert part.revision is None or re.fullmatch("[0-9a-f]{40}", part.revision)


@pytest.mark.parametrize("path", sorted(PROFILE_FOLDER.glob("*.json")), ids=lambda p: str(p.stem))
def test_a_bundled_profile_is_at_most_thirty_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 30


BASE: dict[str, Any] = {
    "name": "mine",
    "label": "mine",
    "medvlm": {"source": "./medvlm", "blocks": [5]},
    "detector": {"source": "./detector"},
    "refinenet": {"source": "./net.safetensors", "inter_block": 5},
}


@pytest.mark.parametrize(
    ("section", "fields", "words"),
    [
        ("medvlm", {"load_bits": 3}, "is wrong at medvlm.load_bits"),
        ("medvlm", {"dtype": "int8"}, "is wrong at medvlm.dtype"),
        ("medvlm", {"batch": 0}, "is wrong at medvlm.batch"),
        ("medvlm", {"revision": "abc"}, "medvlm.revision is set and medvlm.source is no hub id"),
        ("detector", {"backend": "other"}, "is wrong at detector.backend"),
        ("detector", {"backend": "groundingdino-py"}, "reads an official .pth file"),
        ("detector", {"file": "a.pth"}, "detector.file is for the backend groundingdino-py"),
        (
            "detector",
            {"backend": "groundingdino-py", "file": "a.safetensors"},
            "is no .pth file",
        ),
        ("refinenet", {"source": "lab/net"}, "Name the file in refinenet.file"),
        ("refinenet", {"source": None, "revision": "a"}, "refinenet.source is no hub id"),
    ],
)
def test_a_field_that_does_not_fit_is_one_sentence(
    tmp_path: Path, section: str, fields: dict[str, object], words: str
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(BASE | {section: BASE[section] | fields}))

    with pytest.raises(ProfileError, match=re.escape(words)) as caught:
        load_profile(str(path))

    assert "\n" not in str(caught.value)


def test_an_official_file_in_a_repository_needs_a_tokenizer_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    detector = {
        "source": "ShilongLiu/GroundingDINO",
        "backend": "groundingdino-py",
        "file": "groundingdino_swinb_cogcoor.pth",
    }
    path.write_text(json.dumps(BASE | {"detector": detector}))

    parts = parts_of(load_profile(str(path)))

    assert [(part.role, part.repo, part.file) for part in parts] == [
        ("detector", "ShilongLiu/GroundingDINO", "groundingdino_swinb_cogcoor.pth"),
        ("tokenizer", "google-bert/bert-base-uncased", None),
    ]


def test_a_quantised_profile_is_refused_on_the_cpu() -> None:
    with pytest.raises(ModelError, match="in 8 bits, which needs a CUDA device"):
        RefineRank.load("qwen", device="cpu")


def test_quantisation_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "find_spec", lambda name: None)

    assert loading.quantisation(None, torch.bfloat16) is None
    with pytest.raises(ModelError, match="needs the package bitsandbytes"):
        loading.quantisation(4, torch.bfloat16)


def test_without_a_refinenet_the_best_native_score_wins_and_no_box_moves() -> None:
    pool = build_pool(random_detections(9, (320, 200)), (320, 200), raw_limit=9)

    word = unrefined(pool)
    ranking = filter_and_choose(pool, word)

    assert ranking.chosen.candidate == int(pool.native_scores.argmax())
    assert not ranking.chosen.refined
    assert not word.valid.any()
    native = 1 / (1 + np.exp(-word.score_original))
    np.testing.assert_allclose(native, np.clip(pool.native_scores, 1e-6, 1 - 1e-6), atol=1e-5)


def test_a_profile_without_a_refinenet_answers_and_says_so(
    untrained_profile: Path, tmp_path: Path, clip_path: Path
) -> None:
    told = json.loads(untrained_profile.read_text())
    for name in ("medvlm", "detector"):
        told[name]["source"] = str(untrained_profile.parent / name)
    told["refinenet"]["source"] = None
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(told))

    grounding = RefineRank.load(str(path), device="cpu").ground(clip_path, "hook?", [1.0])

    assert grounding.profile.refinenet == "none"
    assert any("No RefineNet is trained for medvlm@" in line for line in grounding.warnings)
    assert not any(one.answers.refinerank.refined for one in grounding.times)
    assert grounding.from_json(grounding.to_json()) == grounding
