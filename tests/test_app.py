"""The app's door: its command line, and the models behind the screen's services."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants

import app
from demo import place, zero_gpu
from demo.services import Limits
from refinerank_core.errors import QuestionError
from refinerank_core.pipeline import RefineRank
from refinerank_core.profiles import PROFILE_FOLDER
from refinerank_core.progress import Grounded, Passed
from refinerank_core.reviews.accounts import add_account
from refinerank_core.video import Video
from tests.fake_spaces import FakeSpaces


def test_every_flag_has_help() -> None:
    parser = app.build_parser()

    assert all(action.help for action in parser._actions)


def test_the_environment_names_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERANK_PROFILE", "other")

    assert app.build_parser().parse_args([]).profile == "other"


def test_an_unknown_profile_is_one_line_and_code_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = app.main(["--profile", "nowhere", "--db", str(tmp_path / "reviews.db")])

    assert code == 1
    assert capsys.readouterr().err.startswith("refinerank: Profile 'nowhere' is unknown")


def test_who_may_decide_and_what_is_kept_follow_the_place(tmp_path: Path) -> None:
    db = ["--db", str(tmp_path / "reviews.db")]
    args = app.build_parser().parse_args(db)
    accounts = tmp_path / "reviewers.txt"
    add_account(accounts, "Dr A", "correct horse")
    space = {"SPACE_ID": "a/b"}

    found = [
        app.open_reviews(args, {}),
        app.open_reviews(args, space),
        app.open_reviews(args, space | {"OAUTH_CLIENT_ID": "x"}),
        app.open_reviews(app.build_parser().parse_args([*db, "--auth", str(accounts)]), {}),
    ]

    assert [(one.identity.mode, one.ephemeral) for one in found] == [
        ("open", False),
        ("open", True),
        ("hub", True),
        ("accounts", False),
    ]
    for one in found:
        one.store.close()


@pytest.mark.parametrize(
    ("environment", "on"),
    [
        ({}, True),
        ({"SPACE_ID": "a/b"}, False),
        ({"SPACE_ID": "a/b", "REFINERANK_UPLOADS": "1"}, True),
        ({"REFINERANK_UPLOADS": "0"}, False),
    ],
)
def test_a_space_takes_no_uploads_unless_told_to(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], on: bool
) -> None:
    for name in ("SPACE_ID", "REFINERANK_UPLOADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert app.build_parser().parse_args([]).uploads is on
    assert app.build_parser().parse_args(["--uploads"]).uploads is True
    assert app.build_parser().parse_args(["--no-uploads"]).uploads is False


def test_a_space_with_storage_keeps_its_reviews_there(tmp_path: Path) -> None:
    storage, space = tmp_path / "data", {"SPACE_ID": "a/b"}
    given = str(tmp_path / "other.db")

    assert place.database(None, space, storage) == ("refinerank-reviews.db", False)
    storage.mkdir()
    assert place.database(None, space, storage) == (str(storage / "refinerank-reviews.db"), True)
    assert place.database(given, space, storage) == (given, False)
    assert place.database(str(storage / "mine.db"), space, storage)[1]
    assert place.database("postgresql://host/reviews", space, storage)[1]
    assert place.database(None, {}, storage) == ("refinerank-reviews.db", True)


def test_models_that_are_missing_are_fetched_first_where_told_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    reviews = ["--db", str(tmp_path / "reviews.db"), "--profile", "full"]

    assert app.main([*reviews, "--no-fetch"]) == 1
    assert "fetch --profile full" in capsys.readouterr().err
    assert app.main([*reviews, "--fetch"]) == 1
    assert "the model hub cannot be reached" in capsys.readouterr().err


def test_with_zero_gpu_a_card_is_lent_to_each_call_and_models_are_loaded_before(
    video: Video, tmp_path: Path
) -> None:
    spaces, here = FakeSpaces(), os.getpid()
    loaded = PretendedRank()
    services = app.wire(loaded, tmp_path, Limits(), spaces)  # type: ignore[arg-type]
    assert len(spaces.decorated) == 1
    assert loaded.ran_in is None

    asked = "every 1 second from 0 to 4 seconds"
    news: list[Any] = list(services.ground(video, asked, None, 0.0, False))
    maps: Any = services.maps_at(video, 3, (0.0, 0.0, 9.0, 9.0))

    assert news[0] == ("process", news[0][1], video.sha256, None)
    assert news[0][1] != here
    assert maps == ("maps", 3)
    assert spaces.asked_s == [22, 12]
    assert loaded.ran_in is None  # nothing ran in the process that serves the page
    with pytest.raises(QuestionError, match="asks for 60 times; this Space lends its card for 44"):
        services.ground(video, asked, [k / 20 for k in range(60)], 0.0, False)


def test_zero_gpu_refuses_a_compiled_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads((PROFILE_FOLDER / "untrained.json").read_text())
    told["medvlm"]["compile"] = True
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(told))
    monkeypatch.setattr(zero_gpu, "package", lambda environment: FakeSpaces())

    assert app.main(["--db", str(tmp_path / "reviews.db"), "--profile", str(path)]) == 1

    assert "ZeroGPU runs no compiled models" in capsys.readouterr().err


class PretendedRank:
    """Loaded models that remember in which process they ran."""

    def __init__(self) -> None:
        self.ran_in: int | None = None
        self.facts = SimpleNamespace(medvlm="m@1", detector="d@1", refinenet="r@1", device="cuda")
        self.profile = SimpleNamespace(name="full", label="", phantom=False, untrained=False)

    def steps(self, video: Video, question: str, times: object, **how: object) -> Iterator[Any]:
        self.ran_in = os.getpid()
        yield ("process", self.ran_in, video.sha256, times)

    def maps_at(self, video: Video, frame_index: int, target: object) -> tuple[str, int]:
        self.ran_in = os.getpid()
        return ("maps", frame_index)

    def frames_in_cache(self, video: Video, indices: object) -> int:
        return 0


def test_a_database_that_cannot_be_opened_is_one_line_and_code_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "reviews.db").write_bytes(b"not a database" * 100)

    assert app.main(["--db", str(tmp_path / "reviews.db")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_what_may_be_uploaded_is_said_by_flags() -> None:
    told = ["--max-upload-mb", "3", "--max-upload-s", "9.5", "--no-uploads"]

    limits = app.upload_limits(app.build_parser().parse_args(told))

    assert limits == Limits(upload_mb=3, duration_s=9.5, uploads=False)


def test_the_services_answer_with_the_loaded_models(
    system: RefineRank, video: Video, tmp_path: Path
) -> None:
    services = app.wire(system, tmp_path, Limits())

    *news, grounded = services.ground(video, "where is the hook?", [0.4], 0.0, False)

    stages = [one.stage for one in news if isinstance(one, Passed)]
    assert stages == list(services.stages)
    assert isinstance(grounded, Grounded)
    assert services.profile.badge == "UNTRAINED random weights"
    assert "@" in services.profile.refinenet
    assert services.seen(video, [grounded.grounding.times[0].frame_index]) == 1
    box = grounded.grounding.times[0].answers.refinerank.box
    maps = services.maps_at(video, grounded.grounding.times[0].frame_index, box)
    assert sorted(services.map_arrays({0: maps})) == sorted(services.map_arrays(grounded.maps))
