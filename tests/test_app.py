"""The app's door: its command line, and the models behind the screen's services."""

from pathlib import Path

import pytest

import app
from demo.services import Limits
from refinerank_core.pipeline import RefineRank
from refinerank_core.progress import Grounded, Passed
from refinerank_core.reviews.accounts import add_account
from refinerank_core.video import Video


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


def test_a_database_that_cannot_be_opened_is_one_line_and_code_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "reviews.db").write_bytes(b"not a database" * 100)

    assert app.main(["--db", str(tmp_path / "reviews.db")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


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
