"""What the browser sends is checked; what went wrong is one sentence."""

import html
from typing import Any

import gradio as gr
import pytest

from demo.events import FrameAsk, SubmitAsk, answered, as_text, errors_to_toast, read_ask
from demo.links import read_link
from refinerank_core.errors import RefineRankError, VideoError
from refinerank_core.grounding import QuestionFacts

HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "<script>document.title='owned'</script>",
    "[click](javascript:document.title='owned')",
    "{{7*7}} ${7*7}",
    "**bold** & `code`",
]


@pytest.mark.parametrize(
    "sent",
    [
        None,
        [],
        "frame",
        {"clip": "a", "index": -1, "request_id": 1},
        {"clip": "a", "index": 1.5, "request_id": 1},
        {"clip": "", "index": 1, "request_id": 1},
        {"clip": "a", "index": 1, "request_id": 1, "path": "/etc/passwd"},
        {"clip": "a", "index": 10**12, "request_id": 1},
    ],
)
def test_a_message_of_another_shape_is_refused(sent: object) -> None:
    with pytest.raises(RefineRankError, match="cannot be read"):
        read_ask(FrameAsk, sent)


def test_times_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(RefineRankError, match="cannot be read"):
        read_ask(SubmitAsk, {"clip": "a", "ticket": 1, "text": "where?", "times": [float("nan")]})


@pytest.mark.parametrize("words", HOSTILE)
def test_a_toast_shows_words_and_no_markup(words: str) -> None:
    shown = as_text(words)

    assert html.unescape(shown) == words
    assert not set(shown) & set("<>\"'`*[]()")


def test_a_fault_becomes_a_toast_and_a_bug_keeps_its_traceback() -> None:
    @errors_to_toast
    def fault() -> None:
        raise VideoError("The clip is empty.")

    @errors_to_toast
    def bug() -> None:
        raise KeyError("x")

    with pytest.raises(gr.Error, match="The clip is empty"):
        fault()
    with pytest.raises(KeyError):
        bug()


def test_a_fault_of_a_server_function_comes_back_as_a_sentence() -> None:
    def serve(sent: Any) -> dict[str, Any]:
        raise VideoError("Frame 3 is damaged.")

    assert answered(serve)({}) == {"error": "Frame 3 is damaged."}


def test_a_link_gives_back_its_case() -> None:
    link = read_link(
        {"clip": "knot", "q": "where?", "t": "1,2.5", "frame": "30", "layers": "rv", "map": "final"}
        | {"profile": "full"}
    )

    assert (link.clip, link.q, link.t, link.frame) == ("knot", "where?", (1.0, 2.5), 30)
    assert (link.layers, link.map, link.profile) == ("rv", "final", "full")


def test_a_link_with_other_times_is_another_question() -> None:
    kept = QuestionFacts(text="where?", times_s=(1.0, 2.5))

    assert read_link({"q": "where?", "t": "1,2.5"}).asks_for(kept)
    assert read_link({"clip": "knot"}).asks_for(kept)
    assert not read_link({"q": "where?", "t": "1"}).asks_for(kept)
    assert not read_link({"q": "when?"}).asks_for(kept)


def test_what_a_link_garbles_is_left_out() -> None:
    link = read_link({"clip": "knot", "t": "1,x", "frame": "last", "__theme": "dark"})

    assert (link.clip, link.t, link.frame) == ("knot", None, None)
