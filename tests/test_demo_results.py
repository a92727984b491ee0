"""The Results tab's server side: files, tables beside the published ones, figures, learning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from demo import results_facts, results_plots
from demo import results_published as published
from demo.events import answered
from demo.findings_desk import FindingsDesk
from demo.identity import Identity
from demo.results_desk import NO_FILES, ResultsDesk
from demo.results_learning import UNAVAILABLE, Learning
from demo.results_read import document, read_document
from demo.results_services import ResultsSetup
from refinerank_core.errors import FormatError, RefineRankError
from tests.desks import Desk, samples
from tests.results import VIDEO, card, cells, evaluation, study
from tests.stores import case
from tests.test_demo_findings import GOOD

__all__ = ["samples"]  # a fixture

ROOT = Path(__file__).resolve().parent.parent


def facts_of(told: dict[str, Any]) -> dict[str, Any]:
    return results_facts.document_facts(document("file.json", told))


def row(table: dict[str, Any], name: str) -> list[str]:
    """The texts of a table's row."""
    found = next(one for one in table["rows"] if one["name"] == name)
    return [cell["text"] for cell in found["cells"]]


def test_published_figures_stand_beside_ours_and_say_whose_they_are() -> None:
    table = facts_of(study())["first"]

    assert [one["kind"] for one in table["groups"]] == ["published", "ours"]
    assert table["groups"][0]["name"].startswith("Published")
    assert "PHANTOM" in table["groups"][1]["name"]
    assert row(table, "RefineRank") == [
        "0.396", "0.597", "0.367", "0.453", "0.730",
        "0.400 ± 0.010", "0.700 ± 0.010", "0.550 ± 0.010", "0.800 ± 0.010",
    ]  # fmt: skip
    assert table["rows"][2]["cells"][5]["small"] == "[0.350, 0.450]"
    assert len(table["heads"]) == sum(one["span"] for one in table["groups"])


def test_the_published_averages_are_those_of_their_data_sets() -> None:
    for lines in (published.METHODS, published.SELECTORS, published.FEATURES):
        for line, values in lines.items():
            assert sum(values[:3]) / 3 == pytest.approx(values[3], abs=6e-4), line
    assert published.METHODS["refinerank"][3] + published.RANKING_LOSS == pytest.approx(
        1 - published.CANDIDATE_LOSS, abs=1e-3
    )
    for place in range(4):
        parts = [counts[place] for name, counts in published.SPLIT.items() if name != "total"]
        assert sum(parts) == published.SPLIT["total"][place]


def test_blocks_of_the_feature_study_are_paired_by_their_place() -> None:
    tables = {one["title"]: one for one in facts_of(study())["tables"]}
    table = tables["Features (Table 5)"]

    assert [one["name"] for one in table["rows"]] == [
        "f_dino", "+ q_last", "+ block 7 (here block 1)", "+ block 15 (here block 3)",
        "+ block 23 (here block 5)", "+ block 31 (here block 7)",
    ]  # fmt: skip
    assert tables["RefineRank less the others"]["rows"][0]["cells"][0] == {
        "text": "+0.250", "small": "[+0.200, +0.300] p < 0.001"
    }  # fmt: skip


def test_the_origin_names_models_split_seeds_and_command() -> None:
    origin = dict(facts_of(study())["origin"])

    assert origin["Models"] == "phantom-medvlm@1, phantom-detector@2"
    assert origin["Split by video"] == (
        "training 200 videos, 1800 examples; evaluation 40 videos, 360 examples"
    )
    assert origin["Seeds"] == "1, 2"
    assert origin["Command"].startswith("python -m refinerank_core phantom study")


def test_an_older_study_says_what_it_lacks() -> None:
    new = ("intervals", "differences", "videos", "reliability", "curves", "worst")
    old = {name: value for name, value in study().items() if name not in new}

    facts = facts_of(old)

    assert "older version" in facts["older"]
    assert facts["figures"] == ["methods"]
    assert facts_of(study())["older"] == ""


def test_the_study_that_ships_is_read_whole() -> None:
    found = read_document(ROOT / "assets" / "study" / "study.json")

    facts = results_facts.document_facts(found)
    assert facts["badge"] == "PHANTOM"
    assert set(results_plots.figures(found)) == set(facts["figures"])


def test_an_evaluation_is_laid_out_by_the_names_of_its_data_sets() -> None:
    facts = facts_of(evaluation())

    table = facts["first"]
    assert table["heads"] == ["CholecTrack20", "CoPESD", "EgoSurgery", "Mine", "average"]
    assert row(table, "This method, strict") == ["\u2013", "0.600", "\u2013", "0.400", "0.500"]
    assert row(table, "RefineRank (published)") == ["0.396", "0.597", "0.367", "\u2013", "0.453"]
    assert facts["problems"] == ["line 3 of rows: id x has no prediction"]
    shares = facts["tables"][0]
    assert row(shares, "all rows") == ["0.800", "0.600", "\u2013"]


def test_a_card_shows_its_curve_and_its_held_out_scores() -> None:
    facts = facts_of(card())

    assert facts["figures"] == ["curves"]
    assert row(facts["first"], "RefineRank") == ["0.600", "0.600"]
    assert facts_of(card(losses=[]))["figures"] == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param("no json", "is not JSON", id="not JSON"),
        pytest.param("[1, 2]", "holds no results", id="another list"),
        pytest.param('{"strict": 1, "leaderboard": 2}', "is damaged at strict", id="damaged"),
        pytest.param('{"a": NaN}', "holds no results", id="not a number"),
        pytest.param("[" * 5000, "is not JSON", id="too deep"),
        pytest.param(
            json.dumps(study(methods={"refinerank": {"laparoscopy": {"mean": 0.5}}})),
            "refinerank has no average",
            id="a column is missing",
        ),
        pytest.param(json.dumps(study(oracle={})), "its oracle is missing", id="no oracle"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)

    with pytest.raises(FormatError, match=what) as caught:
        read_document(path)

    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none\.json cannot be read"):
        read_document(tmp_path / "none.json")


def test_figures_hold_the_intervals_of_the_tables() -> None:
    found = results_plots.figures(document("s.json", study()))

    assert set(found) == {"methods", "videos", "reliability", "curves"}
    ours = next(one for one in found["methods"].data if one.name == "RefineRank")
    assert list(ours.y) == [0.4, 0.7, 0.55]
    assert list(ours.error_y.array) == pytest.approx([0.05] * 3)
    assert len(found["videos"].data[0].y) == 16
    assert [one.name for one in found["curves"].data] == ["seed 1", "seed 2"]
    assert [one.name for one in found["reliability"].data][1:] == [
        "answers (off by 0.150)", "whole pool (off by 0.150)"
    ]  # fmt: skip


def test_options_are_shown_with_their_calibration() -> None:
    bins = [{"low": 0.0, "high": 1.0, "count": 4, "predicted": 0.8, "correct": 0.5}]
    gap = {"mean": 0.01, "low": -0.01, "high": 0.03, "p": 0.2, "videos": 20}
    told = {
        "options": {"paper": cells(0.4, 0.6), "smooth": cells(0.41, 0.6)},
        "differences": {"smooth": {"average": gap}},
        "calibration": {"bins": {"before": bins, "after": study()["reliability"]["all"]["pool"]}},
    }

    facts = facts_of(told)
    figures = results_plots.figures(document("beyond.json", told))

    assert row(facts["first"], "Smoothed over time")[-1] == "0.505 ± 0.010"
    assert row(facts["tables"][0], "Smoothed over time") == ["\u2013", "\u2013", "+0.010"]
    assert [one.name for one in figures["reliability"].data][1:] == [
        "before (off by 0.300)", "after (off by 0.150)"
    ]  # fmt: skip
    with pytest.raises(FormatError, match="damaged"):
        document("b.json", told | {"calibration": {"bins": {"before": [{"low": 0}]}}})


@dataclass
class Counted:
    accepted: int = 3
    corrected: int = 2
    videos: int = 2


@dataclass
class Ran:
    status: str = "running"
    stage: str = "training"
    done: int = 5
    total: int = 20
    losses: tuple[float, ...] = (2.0, 1.0)
    message: str = ""
    result: dict[str, Any] | None = None


@dataclass
class FakeRuns:
    """A training that is started and stopped and does nothing."""

    now: Ran | None = None
    names: list[str] = field(default_factory=list)

    def start(self, name: str) -> Ran:
        if self.now is not None and self.now.status == "running":
            raise RefineRankError("A training runs already. Wait for it, or stop it first.")
        self.names.append(name)
        self.now = Ran()
        return self.now

    def state(self) -> Ran | None:
        return self.now

    def cancel(self) -> Ran | None:
        self.now = Ran(status="cancelled", message="Stopped; nothing was changed.")
        return self.now

    def learning(self) -> Learning:
        return Learning(Counted, self.start, self.state, self.cancel)


@pytest.fixture
def desk(samples: Path, tmp_path: Path) -> Iterator[Desk]:
    opened = Desk(samples, tmp_path / "reviews.db")
    yield opened
    opened.close()


def tab(desk: Desk, *files: Path, learning: Learning | None = None) -> ResultsDesk:
    setup = ResultsSetup(files, learning)
    return ResultsDesk(setup, FindingsDesk(desk.reviews, desk.shelf), Identity())


def written(folder: Path, name: str, told: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text(json.dumps(told))
    return path


def test_files_and_folders_are_listed_and_bad_ones_told(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    first = written(tmp_path, "study.json", study())
    written(folder, "mine.json", evaluation())
    (folder / "bad.json").write_text("{")
    results = tab(desk, first, folder)

    reply = results.results({})

    assert [one["words"] for one in reply["documents"]] == [
        "study.json (PHANTOM study)", "mine.json (evaluation)"
    ]  # fmt: skip
    assert reply["document"]["kind"] == "study"
    assert len(reply["faults"]) == 1
    assert "bad.json is not JSON" in reply["faults"][0]
    other = results.results({"document": reply["documents"][1]["token"]})
    assert other["document"]["kind"] == "evaluation"


def test_without_files_the_tab_says_how_to_get_one(desk: Desk) -> None:
    reply = tab(desk).results({})

    assert reply["document"] is None
    assert reply["say"] == NO_FILES
    assert reply["published"]["leaderboard"]["rows"][0]["name"] == "RefineRank"


def test_an_opened_file_is_known_by_a_secret_and_removed(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    path = written(tmp_path, "own.json", evaluation())
    results = tab(desk)

    opened = results.results_open({"path": str(path)})

    assert not path.exists()
    assert results.results({"document": opened["token"]})["document"]["name"] == "own.json"
    with pytest.raises(FormatError, match="no longer open"):
        results.results({"document": "guessed"})


def test_the_frame_of_a_low_answer_is_drawn_again(desk: Desk, tmp_path: Path) -> None:
    other = study()
    other["worst"]["laparoscopy"].append(other["worst"]["laparoscopy"][0] | {"video": "VID110"})
    results = tab(desk, written(tmp_path, "study.json", other))

    results.results({})
    token = {"document": "file:0"}
    seen = results.results_picture({**token, "dataset": "laparoscopy", "place": 0})["src"]
    assert seen.startswith("data:image/jpeg")
    assert results.results_picture({**token, "dataset": "laparoscopy", "place": 1})["src"] is None
    gone = answered(results.results_picture)({**token, "dataset": "laparoscopy", "place": 2})
    assert "no such answer" in gone["error"]


def test_a_video_leads_to_its_cases(desk: Desk, tmp_path: Path) -> None:
    mine = case(1.0, dataset="A").model_copy(update={"video_name": f"{VIDEO}.mp4"})
    desk.store.add([mine], by="import", truths=[GOOD])
    results = tab(desk, written(tmp_path, "study.json", study()))

    videos = results.results({})["document"]["videos"]

    assert videos[0]["stem"] == VIDEO
    assert results.results_cases({})["cases"] == {VIDEO: 1}
    found = FindingsDesk(desk.reviews, desk.shelf).findings(
        {"method": "refinerank", "video": VIDEO}
    )
    assert found["shown"] == 1
    other = FindingsDesk(desk.reviews, desk.shelf).findings({"method": "refinerank", "video": "x"})
    assert other["shown"] == 0


def test_learning_is_started_watched_and_stopped(desk: Desk) -> None:
    runs = FakeRuns()
    results = tab(desk, learning=runs.learning())
    who = {"name": "Dr A"}
    before = results.learn_state({})
    assert before["say"].startswith("5 reviewed boxes of 2 videos to learn from: 3 accepted")
    assert before["run"] is None

    started = results.learn_start({"who": who, "name": " mine "})

    assert runs.names == ["mine"]
    assert started["run"]["say"] == "Training: 5 of 20."
    assert started["run"]["share"] == 0.25
    again = answered(results.learn_start)({"who": who})
    assert again["error"].startswith("A training runs already")
    assert results.learn_stop({"who": who})["run"]["status"] == "cancelled"


def test_nobody_starts_a_training_without_a_name(desk: Desk) -> None:
    results = tab(desk, learning=FakeRuns().learning())

    reply = answered(results.learn_start)({"who": {}})

    assert reply == {"error": "Say who you are first: decisions carry a name."}


def test_an_app_without_a_place_for_profiles_says_so(desk: Desk) -> None:
    results = tab(desk)

    assert results.learn_state({}) == {"available": False, "say": UNAVAILABLE, "run": None}
    assert answered(results.learn_start)({"who": {"name": "A"}}) == {"error": UNAVAILABLE}


def test_a_finished_training_reports_before_and_after(desk: Desk) -> None:
    side = {"miou": 0.4, "low": 0.3, "high": 0.5}
    result = {
        "name": "learned", "started_from": "refinenet@1", "say": "It got better.",
        "verdict": "better", "reviews": {"sha256": "a" * 64, "cases": 200, "videos": 9},
        "training": {"cases": 150, "videos": 7}, "left_out": [{"video": "v", "why": "not here"}],
        "held_out": {"cases": 50, "videos": 2, "before": side, "after": side | {"miou": 0.5},
                     "difference": {"mean": 0.1, "low": 0.05, "high": 0.15, "p": 0.01}},
    }  # fmt: skip
    runs = FakeRuns(Ran(status="done", message="Done.", result=result))

    report = tab(desk, learning=runs.learning()).learn_state({})["run"]["report"]

    assert report["say"] == "It got better."
    assert row(report["table"], "After less before") == ["+0.100", "[+0.050, +0.150]", "0.010"]
    assert report["left_out"] == ["v: not here"]
    runs.now = Ran(status="done", message="Done.", result=result | {"held_out": None})
    again = tab(desk, learning=runs.learning()).learn_state({})["run"]["report"]
    assert again["table"] is None
