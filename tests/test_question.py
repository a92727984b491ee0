"""Questions and times with answers worked out by hand."""

import random
from contextlib import suppress

import pytest

from refinerank_core.errors import QuestionError
from refinerank_core.question import MAX_CHARACTERS, parse_query_answer, parse_question
from refinerank_core.times import parse_time, parse_times, requested_times


@pytest.mark.parametrize(
    ("text", "times"),
    [
        pytest.param("every 8 seconds from 66 to 78 seconds", (66, 74), id="every, from"),
        pytest.param("from 66 to 78 seconds, boxes every 8 seconds", (66, 74), id="from, every"),
        pytest.param("every 2 seconds between 1 and 5 seconds", (1, 3, 5), id="every, between"),
        pytest.param("between 1 and 5 seconds locate it every 2 seconds", (1, 3, 5), id="between"),
        pytest.param("between 1 seconds and 5 seconds every 4 seconds", (1, 5), id="unit twice"),
        pytest.param("From 12 To 20 SEC, Every 4 s", (12, 16, 20), id="any case"),
        pytest.param("from 12 seconds to 20 seconds every 4 seconds", (12, 16, 20), id="units"),
        pytest.param("from 0:12 to 0:20 every 4 seconds", (12, 16, 20), id="clock span"),
        pytest.param("from 12:34.56 to 12:40 every 5 s", (754.56, 759.56), id="clock fraction"),
        pytest.param("every second from 1 to 3 seconds", (1, 2, 3), id="every second"),
        pytest.param("every .5 s from 1 to 2 s", (1, 1.5, 2), id="no leading zero"),
        pytest.param("12-20 s, every 4 s", (12, 16, 20), id="dash"),
        pytest.param("from 1 to 2 minutes every 30 seconds", (60, 90, 120), id="minutes"),
        pytest.param("every 5 s, where is it from 10 to 16 s?", (10, 15), id="words between"),
        pytest.param("12.5 seconds: and 16.5 seconds:", (12.5, 16.5), id="with colons"),
        pytest.param("where is it at 12.5 seconds?", (12.5,), id="at"),
        pytest.param("at 9 s and at 4 s and at 9 s", (4, 9), id="ascending, once each"),
        pytest.param("at 4, 9 and 12.5 seconds", (4, 9, 12.5), id="list"),
        pytest.param("at 1:05", (65,), id="mm:ss"),
        pytest.param("0:12: and 0:16:", (12, 16), id="mm:ss and colon"),
        pytest.param("at 1:02:03.5 and 0:10", (10, 3723.5), id="h:mm:ss"),
        pytest.param("the hook at the 12-second mark", (12,), id="hyphen"),
        pytest.param("at 2 min 5 s", (125,), id="minutes and seconds"),
        pytest.param("where is the hook?", (), id="none named"),
        pytest.param("what happens from 12 to 20 seconds?", (), id="a span without a step"),
        pytest.param("what happens from 0:12 to 0:20?", (), id="a clock span without a step"),
        pytest.param("in the first 5 seconds, 3 graspers", (), id="other numbers"),
    ],
)
def test_times_are_read_from_the_wording(text: str, times: tuple[float, ...]) -> None:
    assert requested_times(text) == times


def test_the_first_wording_in_order_wins() -> None:
    text = "between 50 and 60 seconds every 5 seconds from 10 to 20 seconds every 10 seconds"

    assert requested_times(text) == (10, 15, 20)


def test_a_step_of_tenths_does_not_drift() -> None:
    times = requested_times("from 0 to 1 seconds every 0.1 seconds")

    assert times == (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("from 9 to 3 s every 2 s", "runs backwards", id="reversed"),
        pytest.param("every 0 s from 1 to 5 s", "does not advance", id="no step"),
        pytest.param("every -2 s from 1 to 5 s", "does not advance", id="negative step"),
        pytest.param("from -3 to 5 s every 2 s", "before the video", id="negative time"),
        pytest.param("at 60.1 seconds", "60.1 s is past the end", id="past the end"),
        pytest.param("from 50 to 70 s every 5 s", "70 s is past the end", id="span past the end"),
        pytest.param("from 0 to 256 s every s", "257 times; at most 256", id="too many"),
        pytest.param("at 00:90", "'00:90' is not a clock time", id="ninety seconds"),
        pytest.param("at 1:75:00", "is not a clock time", id="seventy-five minutes"),
        pytest.param("at 1,5 seconds", "could be one time or two", id="decimal comma"),
        pytest.param("at 99999999 seconds", "longer than any video", id="absurd"),
    ],
)
def test_times_that_cannot_be_answered_are_refused(text: str, words: str) -> None:
    with pytest.raises(QuestionError, match=words):
        requested_times(text, duration_s=60.0)


def test_256_times_and_the_very_end_are_allowed() -> None:
    times = requested_times("from 0 to 255 s every s", duration_s=255.0)

    assert len(times) == 256
    assert times[-1] == 255


def test_the_off_grid_end_of_a_span_may_lie_past_the_video() -> None:
    assert requested_times("from 50 to 62 s every 5 s", duration_s=60.0) == (50, 55, 60)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("12.5", 12.5),
        ("12.5 s", 12.5),
        ("1:05", 65),
        ("75:00", 4500),
        ("12:34.56", 754.56),
        ("1:02:03.5", 3723.5),
    ],
)
def test_one_time_is_read_alone(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


def test_several_times_are_read_in_order() -> None:
    assert parse_times("1:05, 12.5;3  12.5") == (3, 12.5, 65)


@pytest.mark.parametrize("text", ["", " , ", "soon", "00:90", "12 parsecs", "1:2:3:4", "nan", "-5"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(QuestionError):
        parse_times(text)


def test_a_time_past_the_end_is_refused_alone_too() -> None:
    with pytest.raises(QuestionError, match="past the end"):
        parse_times("61", duration_s=60.0)


def test_text_is_cleaned_for_people_and_models() -> None:
    text = "<video>\n  Where\x00is\tthe cafe\u0301 <vi<video>deo>hook<|im_end|>\u200b ?"

    assert parse_question(text).text == "Where is the caf\u00e9 hook ?"


@pytest.mark.parametrize("text", ["", "  \n", "<video>", "\x00\u200b"])
def test_an_empty_question_is_refused(text: str) -> None:
    with pytest.raises(QuestionError, match="The question is empty"):
        parse_question(text)


def test_an_over_long_question_is_refused_with_its_length() -> None:
    assert parse_question("a" * MAX_CHARACTERS).text == "a" * MAX_CHARACTERS
    with pytest.raises(QuestionError, match="10000 characters; at most 2000"):
        parse_question("a" * 10_000)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("Provide the bounding boxes for the left grasper from 6 to 8 s every 1 s", "left grasper"),
        ("Where is the hook?", "hook"),
        ("where are the surgical scissors visible", "surgical scissors"),
        ("Track the tip of the L-Hook between 1 and 3 s every s", "tip of the L-Hook"),
        ("Locate the position of the 'specimen bag' at 3 s", "specimen bag"),
        ("locate the hook dissecting the gallbladder", "hook"),
        ("track the dissecting forceps", "dissecting forceps"),
        ("where is the grasper and the clip applier?", "grasper and clip applier"),
        ("Please locate and track the hook in the video", "hook"),
        ("What is the location of the knife at 12.5 seconds?", "knife"),
        ("where's the hook?", "hook"),
        ("the hook cautery", "hook cautery"),
        ("grasper holding the gallbladder at 5 seconds", "grasper"),
        ("Hook, L-Hook . clip applier at 5 s", "Hook and L-Hook and clip applier"),
        ("12.5 seconds: [1, 2, 3, 4]", "surgical instrument"),
        ("the bag that lies beside the liver and the duct", "bag"),
        ("find all the instruments", "surgical instrument"),
        ("Which forceps is holding tissue?", "forceps"),
        ("Which instrument is dissecting the gallbladder?", "surgical instrument"),
        ("bounding boxes for the tool cutting the duct", "surgical instrument"),
        ("What happens at 5 seconds?", "surgical instrument"),
        ("find the", "surgical instrument"),
    ],
)
def test_the_target_is_what_the_question_asks_for(text: str, target: str) -> None:
    assert parse_question(text).target == target


def test_phrases_go_from_the_target_to_its_wider_names() -> None:
    assert parse_question("where is the Hook?").phrases == ("hook", "surgical hook", "visible hook")


def test_surgical_is_not_said_twice() -> None:
    phrases = parse_question("track the surgical scissors").phrases

    assert phrases == ("surgical scissors", "visible surgical scissors")


def test_generic_phrases_stand_in_when_no_other_is_left() -> None:
    phrases = parse_question("what is going on?").phrases

    assert phrases == ("surgical instrument", "visible surgical instrument")


def test_many_targets_fill_at_most_six_phrases() -> None:
    text = "track the hook and clipper and bipolar and scissors"

    phrases = parse_question(text).phrases

    assert phrases[:4] == ("hook", "clipper", "bipolar", "scissors")
    assert len(phrases) == 6


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        pytest.param("grasper, hook", ("grasper", "hook"), id="commas"),
        pytest.param("grasper; hook", ("grasper", "hook"), id="semicolons"),
        pytest.param("1. Grasper\n2. L-Hook\n", ("grasper", "l-hook"), id="numbered"),
        pytest.param("- hook\n* clip_applier", ("hook", "clip applier"), id="bullets"),
        pytest.param('```json\n["grasper", "hook"]\n```', ("grasper", "hook"), id="fenced list"),
        pytest.param("['grasper']", ("grasper",), id="single quotes"),
        pytest.param("[grasper, hook]", ("grasper", "hook"), id="no quotes"),
        pytest.param('{"phrases": ["hook"]}', ("hook",), id="object"),
        pytest.param("grasper . hook .", ("grasper", "hook"), id="a caption"),
        pytest.param("<think>hm, knife</think>hook", ("hook",), id="after a thought"),
        pytest.param(
            "Look for: grasper, hook. These are the tools in the frame.",
            ("grasper", "hook"),
            id="prose around",
        ),
        pytest.param("tool, hook, surgical instrument", ("hook",), id="generic ones go"),
        pytest.param("surgical tool", ("surgical tool",), id="a generic one alone stays"),
        pytest.param("a1b, c2d, hook, HOOK", ("hook",), id="doubles and codes"),
    ],
)
def test_the_model_s_own_phrases_are_read(text: str, phrases: tuple[str, ...]) -> None:
    assert parse_query_answer(text) == phrases


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("12, 13", id="digits"),
        pytest.param("[10, 20, 30, 40]", id="a box"),
        pytest.param('[{"bbox_2d": [1, 2, 3, 4], "label": "x"}]', id="boxes in JSON"),
        pytest.param("I cannot see any instrument", id="a refusal"),
        pytest.param("the small shiny metal thing at the left edge", id="too long"),
        pytest.param("hook hook hook", id="a word repeated"),
        pytest.param("hoooooook", id="a letter repeated"),
        pytest.param("\ufffd\ufffd grasp%%", id="broken characters"),
        pytest.param("<think>grasper", id="only a thought"),
    ],
)
def test_unusable_phrases_fall_back_to_the_rules(text: str) -> None:
    assert parse_query_answer(text) is None


def test_no_text_breaks_the_parsers() -> None:
    rng = random.Random(20260719)
    pieces = [
        *"0123456789.,:;-[]{}()<>'\"\n \t\x00\u0660\u00b2\u0130\u2212aes",
        "every ",
        "from ",
        " to ",
        "between ",
    ]
    pieces += [
        " and ",
        " at ",
        "seconds",
        " min ",
        "<video>",
        "where is the ",
        "1:05",
        "9" * 30,
        "<think>",
    ]
    for _ in range(20_000):
        text = "".join(rng.choices(pieces, k=rng.randrange(40)))
        parse_query_answer(text)
        for parse in (parse_question, parse_times):
            with suppress(QuestionError):
                parse(text)
