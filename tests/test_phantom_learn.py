"""The proof that reviews teach, in small: random weights learn from a simulated reviewer."""

import json
from pathlib import Path

import pytest

from refinerank_core.learning.learn import LearnPlan
from refinerank_core.phantom.learn_study import DATABASE, REVIEWER, LearnStudyPlan, learn_study
from refinerank_core.profiles import variants
from refinerank_core.reviews.store import Store
from refinerank_core.reviews.worklist import Wanted

PLAN = LearnStudyPlan(corrections=9, questions=1, unseen=1)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learn")


def test_videos_reviews_training_and_figures(untrained_profile: Path, work: Path) -> None:
    lines: list[str] = []

    figures = learn_study(
        str(untrained_profile), work, PLAN, LearnPlan(epochs=1), told=lines.append
    )

    assert figures["reviewer"]["corrected"] == 9
    assert figures["unseen"]["videos"] == 3
    assert set(figures["procedures"]) == {"laparoscopy", "endoscopic dissection", "open surgery"}
    assert figures["learned"]["reviews"]["corrected"] == 9
    assert figures["learned"]["left_out"] == []
    assert "9 corrections: mIoU on 3 unseen shifted videos" in figures["say"]
    assert json.loads(json.dumps(figures)) == figures
    (folder,) = {path.parent for path in work.glob(f"*/{DATABASE}")}
    (variant,) = variants(folder / "variants")
    assert variant.learned is not None
    assert variant.learned.reviews_sha256 == figures["learned"]["reviews"]["sha256"]
    with Store(folder / DATABASE) as store:
        views = list(store.views(Wanted(status=("fixed",))))
        assert len(views) == 9
        assert {view.state.current.reviewer for view in views if view.state.current} == {REVIEWER}
        assert store.verify().sound


def test_a_second_run_reviews_nothing_anew(untrained_profile: Path, work: Path) -> None:
    (database,) = work.glob(f"*/{DATABASE}")
    with Store(database) as store:
        before = store.counts()

    learn_study(str(untrained_profile), work, PLAN, LearnPlan(epochs=1))

    with Store(database) as store:
        assert store.counts() == before
