"""Visitors are kept apart, uploads are bounded and removed."""

import json
from collections.abc import Iterator
from pathlib import Path

import gradio.utils
import pytest

from demo.explore import uploaded_file
from demo.samples import list_samples
from demo.services import Limits
from demo.sessions import Answer, SessionError, Sessions, answered_questions
from refinerank_core.errors import FormatError, VideoError
from refinerank_core.video import open_video
from tests.browser.fakes import FakeCore, fake_services, grounding_of, tissue
from tests.clips import encode


def make_clip(path: Path, frames: int = 10, first: int = 0) -> Path:
    return encode(path, (tissue(first + k, (96, 64)) for k in range(frames)))


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    folder.mkdir()
    return folder


@pytest.fixture
def sessions(samples: Path) -> Iterator[Sessions]:
    opened = Sessions(fake_services(FakeCore(), samples, Limits(upload_mb=1, duration_s=2.0)))
    yield opened
    opened.close()


def test_each_visitor_sees_their_own_clip(sessions: Sessions, tmp_path: Path) -> None:
    first = sessions.add_upload(sessions.of("a"), make_clip(tmp_path / "one.mp4"))
    second = sessions.add_upload(sessions.of("b"), make_clip(tmp_path / "two.mp4", first=5))

    assert sessions.clip(first.token).video.name == "one.mp4"
    assert sessions.clip(second.token).video.name == "two.mp4"
    assert first.token not in sessions.of("b").clips


def test_what_a_visitor_uploaded_is_gone_when_they_leave(
    sessions: Sessions, tmp_path: Path
) -> None:
    session = sessions.of("a")
    clip = sessions.add_upload(session, make_clip(tmp_path / "one.mp4"))

    sessions.end("a")

    assert not session.folder.exists()
    with pytest.raises(SessionError, match="no longer here"):
        sessions.clip(clip.token)


def test_the_upload_folder_does_not_keep_the_file(sessions: Sessions, tmp_path: Path) -> None:
    path = make_clip(tmp_path / "one.mp4")

    sessions.add_upload(sessions.of("a"), path)

    assert not path.exists()


def test_a_clip_that_is_too_long_is_refused_and_removed(sessions: Sessions, tmp_path: Path) -> None:
    session = sessions.of("a")

    with pytest.raises(VideoError, match="lasts 4 s; at most 2 s"):
        sessions.add_upload(session, make_clip(tmp_path / "long.mp4", frames=100))

    assert list(session.folder.iterdir()) == []


def test_a_file_that_is_too_large_is_refused_with_the_limit(
    sessions: Sessions, tmp_path: Path
) -> None:
    large = tmp_path / "large.mp4"
    with large.open("wb") as file:
        file.truncate(3 << 20)

    with pytest.raises(VideoError, match="has 3 MB; at most 1 MB"):
        sessions.add_upload(sessions.of("a"), large)


def test_old_uploads_make_room_on_the_disk(sessions: Sessions, tmp_path: Path) -> None:
    session = sessions.of("a")

    for k in range(8):
        sessions.add_upload(session, make_clip(tmp_path / f"{k}.mp4", frames=2))

    assert len(session.clips) == len(list(session.folder.iterdir())) == 6


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", ""])
def test_only_files_of_the_upload_folder_are_taken(name: str) -> None:
    folder = gradio.utils.get_upload_folder()

    with pytest.raises(VideoError, match="did not arrive"):
        uploaded_file(f"{folder}/{name}" if not name.startswith("/") else name)


def test_a_folder_without_samples_is_no_fault(tmp_path: Path) -> None:
    assert list_samples(tmp_path / "absent") == []


def test_a_sample_brings_its_title_and_questions(samples: Path) -> None:
    make_clip(samples / "knot.mp4")
    facts = {
        "title": "A knot",
        "questions": ["Where is it?", {"text": "And?", "truth": {"3": [0, 0, 9, 9]}}],
    }
    (samples / "knot.json").write_text(json.dumps(facts))

    sample = list_samples(samples)[0]

    assert (sample.name, sample.title) == ("knot", "A knot")
    assert [one.text for one in sample.questions] == ["Where is it?", "And?"]
    assert sample.truth_for("And?") == {3: (0, 0, 9, 9)}


def test_a_damaged_description_of_a_sample_is_named(samples: Path) -> None:
    make_clip(samples / "knot.mp4")
    (samples / "knot.json").write_text("{")

    with pytest.raises(FormatError, match=r"knot\.json: not a description"):
        list_samples(samples)


def test_a_kept_answer_is_shown_only_for_the_pictures_it_is_about(
    sessions: Sessions, samples: Path
) -> None:
    with open_video(make_clip(samples / "a.mp4")) as video:
        kept = grounding_of(video, "where?", "it", ["it"], [0.1]).to_json()
    make_clip(samples / "b.mp4", first=3)
    for name in ("a", "b"):
        (samples / f"{name}.grounding.json").write_text(kept)

    about = sessions.stored_answer(sessions.sample("a"))

    assert about is not None
    assert about.grounding.question.text == "where?"
    assert sessions.stored_answer(sessions.sample("b")) is None


def keep_answers(samples: Path, texts: dict[str, str]) -> None:
    """A clip with questions; each text is the answer's own, by the file that keeps it."""
    with open_video(make_clip(samples / "knot.mp4")) as video:
        for suffix, text in texts.items():
            kept = grounding_of(video, text, "it", ["it"], [0.1]).to_json()
            (samples / f"knot{suffix}.grounding.json").write_text(kept)
    questions = ["Where is it?", {"text": "And  the hook?", "truth": {"2": [0, 0, 9, 9]}}, "More?"]
    (samples / "knot.json").write_text(json.dumps({"questions": questions}))


def test_further_questions_of_a_clip_have_kept_answers_too(
    sessions: Sessions, samples: Path
) -> None:
    keep_answers(samples, {"": "Where is it?", ".q2": "And the hook?"})
    clip = sessions.sample("knot")

    second = sessions.stored_for(clip, "And the hook?")

    assert second is not None
    assert second.grounding.question.text == "And the hook?"
    assert sessions.answer(second.token) is second
    assert second.token != sessions.sample("knot").token
    assert sessions.stored_for(clip, "More?") is None
    assert clip.sample is not None
    assert answered_questions(clip.sample) == ["Where is it?", "And  the hook?"]


def test_a_kept_answer_to_other_words_is_not_shown(sessions: Sessions, samples: Path) -> None:
    keep_answers(samples, {".q2": "Where is the grasper?"})

    assert sessions.stored_for(sessions.sample("knot"), "And the hook?") is None


@pytest.mark.parametrize("number", ["0", "4", "9" * 150, "x", ""])
def test_a_number_of_no_question_names_no_answer(
    sessions: Sessions, samples: Path, number: str
) -> None:
    keep_answers(samples, {".q2": "And the hook?", ".q4": "Past the list?"})

    with pytest.raises(SessionError, match="Ask again"):
        sessions.answer(f"sample:knot/{number}")


def test_answers_of_one_visitor_end_with_them(sessions: Sessions, tmp_path: Path) -> None:
    session = sessions.of("a")
    clip = sessions.add_upload(session, make_clip(tmp_path / "one.mp4"))
    grounding = grounding_of(clip.video, "where?", "it", ["it"], [0.1])
    sessions.add_answer(session, Answer("secret", clip, grounding, {}, {}))
    assert sessions.answer("secret").clip is clip

    sessions.end("a")

    with pytest.raises(SessionError, match="Ask again"):
        sessions.answer("secret")
