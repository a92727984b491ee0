"""A training in a process of its own: found again, stopped, and known when it died."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from refinerank_core.errors import RefineRankError
from refinerank_core.learning.runner import LearnAsk, Reporter, Runner, RunState, read_state


class Scripted(Runner):
    """Runs a script of ours in place of the training."""

    script = ""

    def _command(self, ask: LearnAsk) -> list[str]:
        return [sys.executable, "-c", self.script, str(self._folder)]


SLEEPING = "import time; time.sleep(60)"
WORKING = """
import sys
from pathlib import Path
from refinerank_core.learning.runner import Reporter
reporter = Reporter(Path(sys.argv[1]))
reporter.told("features", 3, 3, None)
reporter.told("training", 1, 2, 0.5)
reporter.end("done", "Better.", {"verdict": "better"})
"""
DYING = "print('out of memory'); raise SystemExit(3)"


def runner(folder: Path, script: str) -> Runner:
    made = Scripted(folder)
    made.script = script
    return made


def ask(tmp_path: Path) -> LearnAsk:
    return LearnAsk(
        reviews=str(tmp_path / "r.db"),
        videos=(str(tmp_path),),
        profile="phantom",
        variants=str(tmp_path / "variants"),
    )


def wait_for(check: Callable[[], bool]) -> None:
    for _ in range(1200):
        if check():
            return
        time.sleep(0.05)
    pytest.fail("it did not come to that")


def status(one: Runner) -> str:
    state = one.state()
    assert state is not None
    return state.status


def test_a_run_tells_its_stages_and_its_result(tmp_path: Path) -> None:
    one = runner(tmp_path / "run", WORKING)
    assert one.state() is None

    begun = one.start(ask(tmp_path))
    wait_for(lambda: status(one) != "running")

    state = one.state()
    assert state is not None
    assert begun.status == "running"
    assert (state.run_id, state.status, state.stage) == (begun.run_id, "done", "training")
    assert (state.losses, state.message) == ((0.5,), "Better.")
    assert state.result == {"verdict": "better"}
    assert state.ended_at


def test_a_second_run_waits_and_a_new_door_finds_the_first(tmp_path: Path) -> None:
    first = runner(tmp_path / "run", SLEEPING)
    begun = first.start(ask(tmp_path))

    reloaded = runner(tmp_path / "run", SLEEPING)
    with pytest.raises(RefineRankError, match="runs already"):
        reloaded.start(ask(tmp_path))
    found = reloaded.state()
    reloaded.cancel()
    wait_for(lambda: status(reloaded) != "running")

    assert found is not None
    assert (found.run_id, found.status) == (begun.run_id, "running")
    assert status(first) == "cancelled"


def test_a_process_that_died_is_a_failure_with_its_last_words(tmp_path: Path) -> None:
    one = runner(tmp_path / "run", DYING)

    one.start(ask(tmp_path))
    wait_for(lambda: status(one) != "running")

    state = one.state()
    assert state is not None
    assert state.status == "failed"
    assert "out of memory" in state.message
    again = one.start(ask(tmp_path))
    assert again.run_id != state.run_id


def test_the_kernels_kill_is_seen_too(tmp_path: Path) -> None:
    one = runner(tmp_path / "run", SLEEPING)
    one.start(ask(tmp_path))

    os.kill(int((tmp_path / "run" / "pid").read_text()), signal.SIGKILL)
    wait_for(lambda: status(one) != "running")

    assert status(one) == "failed"


def test_the_real_command_reports_why_it_cannot_learn(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = [sys.executable, "-m", "refinerank_core", "train", "--reviews", str(tmp_path / "r.db")]
    words += ["--videos", str(tmp_path), "--variants", str(tmp_path / "variants")]
    words += ["--work", str(tmp_path / "work"), "--state", str(folder), "--device", "cpu"]

    done = subprocess.run(words, capture_output=True, text=True, check=False)

    state = read_state(folder)
    assert done.returncode == 1
    assert state is not None
    assert state.status == "failed"
    assert state.message.startswith("0 of 0 reviewed boxes can be learned from")
    assert state.message in done.stderr


def test_the_command_line_holds_no_database(tmp_path: Path) -> None:
    asked = ask(tmp_path).model_copy(update={"reviews": "postgresql://me:secret@host/db"})

    words = Runner(tmp_path)._command(asked)

    assert not any("secret" in word for word in words)
    assert words[3:5] == ["train", "--reviews"]


def test_a_reporter_goes_on_with_the_run_that_waits_for_it(tmp_path: Path) -> None:
    begun = RunState(run_id="abc", started_at="2026-11-30T09:00:00+00:00")
    tmp_path.joinpath("state.json").write_text(begun.model_dump_json())

    Reporter(tmp_path).told("features", 1, 9, None)

    state = read_state(tmp_path)
    assert state is not None
    assert (state.run_id, state.done, state.total) == ("abc", 1, 9)


def test_a_name_that_no_profile_can_have_starts_nothing(tmp_path: Path) -> None:
    one = runner(tmp_path / "run", WORKING)

    with pytest.raises(RefineRankError, match="choose small letters"):
        one.start(ask(tmp_path).model_copy(update={"name": "By Dr A"}))

    assert one.state() is None
