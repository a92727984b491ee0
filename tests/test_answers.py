"""Model texts and the boxes that must be read from them, worked out by hand."""

import random
import time

import pytest

from refinerank_core.answers import (
    AnswerBox,
    AnswerSpace,
    ParsedAnswer,
    format_answer,
    map_box,
    match_times,
    parse_answer,
    to_frame_boxes,
)

Box = tuple[float, float, float, float]
FENCE = "`" * 3


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        pytest.param(
            f'{FENCE}json\n[{{"bbox_2d": [10, 20, 110, 220], "label": "grasper"}}, '
            f'{{"bbox_2d": [5, 6, 7, 8], "label": "hook"}}]\n{FENCE}',
            [(10, 20, 110, 220), (5, 6, 7, 8)],
            id="fenced JSON",
        ),
        pytest.param(
            '{"bbox_2d": [10, 20, 110, 220], "label": "grasper"}',
            [(10, 20, 110, 220)],
            id="one object",
        ),
        pytest.param(
            '[{"bbox_2d": [1, 2, 3, 4], "label": "a"}]\n[{"bbox_2d": [5, 6, 7, 8]}]',
            [(1, 2, 3, 4), (5, 6, 7, 8)],
            id="two lists",
        ),
        pytest.param(
            '{"bbox_2d": [1, 2, 3, 4], "label": "a"}, {"bbox_2d": [5, 6, 7, 8]}]',
            [(1, 2, 3, 4), (5, 6, 7, 8)],
            id="the list's opening lost",
        ),
        pytest.param(
            "<think>the [1, 2, 3, 4] thing</think><answer>"
            "[{'bbox_2d': [608, 446, 636, 476], 'label': 'person'}]</answer>",
            [(608, 446, 636, 476)],
            id="a thought before, single quotes",
        ),
        pytest.param(
            "hm [1, 2, 3, 4]</think>[5, 6, 7, 8]", [(5, 6, 7, 8)], id="a thought's tag lost"
        ),
        pytest.param(
            "<|object_ref_start|>grasper<|object_ref_end|>"
            "<|box_start|>(221,423),(569,886)<|box_end|>",
            [(221, 423, 569, 886)],
            id="older tokens",
        ),
        pytest.param(
            '[{"bbox_2d": [1, 2, 3, 4], "label": "the "inner" tool"}]',
            [(1, 2, 3, 4)],
            id="bare quotes in a label",
        ),
        pytest.param(
            '[{"bbox_2d": [1, 2, 3, 4], "label": "[5, 6, 7, 8]"}]',
            [(1, 2, 3, 4)],
            id="a box as a label",
        ),
        pytest.param(
            '[{"bbox_2d": [1.5, 2.25, 30.75, 40], "label": "x"}]',
            [(1.5, 2.25, 30.75, 40)],
            id="floats",
        ),
        pytest.param("[[1, 2, 3, 4], [5, 6, 7, 8]]", [(1, 2, 3, 4), (5, 6, 7, 8)], id="nested"),
        pytest.param("[1 2 3 4] and [5;6;7;8]", [(1, 2, 3, 4), (5, 6, 7, 8)], id="separators"),
        pytest.param('["1", "2", "3", "4"]', [(1, 2, 3, 4)], id="quoted numbers"),
        pytest.param("[\n 1,\n 2,\n 3,\n 4\n]", [(1, 2, 3, 4)], id="over several lines"),
        pytest.param("I see the hook at **[1, 2, 3, 4]**.", [(1, 2, 3, 4)], id="in prose"),
        pytest.param("1, 2, 3, 4", [(1, 2, 3, 4)], id="four numbers and nothing else"),
        pytest.param("1365, 55, 1630, 357)", [(1365, 55, 1630, 357)], id="opening lost"),
        pytest.param("[-5, -2.5, 3, 4]", [(-5, -2.5, 3, 4)], id="signs"),
        pytest.param("[\u22125, 2, 3, 4]", [(-5, 2, 3, 4)], id="a printed minus"),
        pytest.param("There is no grasper in this frame.", [], id="prose"),
        pytest.param("[]", [], id="an empty list"),
        pytest.param("", [], id="nothing"),
        pytest.param('{"relevant_windows": [["1.0", "2.0"]]}', [], id="time windows"),
        pytest.param("161, 346, 187", [], id="three numbers"),
        pytest.param("[161, 346, 187]", [], id="three in brackets"),
        pytest.param("161, 346, 187, 200 is my guess", [], id="four numbers in prose"),
        pytest.param("[- 5, 2, 3, 4]", [], id="a sign apart from its number"),
        pytest.param("[1.2.3, 4, 5]", [], id="a number with two dots"),
        pytest.param("[1, 2, ..., 4, 5]", [], id="an ellipsis"),
        pytest.param("[1, 2, 3, 4, 5]", [], id="five numbers"),
        pytest.param("[30, 40, 10, 20]", [], id="corners in the wrong order"),
        pytest.param("[10, 10, 10, 20]", [], id="no width"),
        pytest.param("[0, 0, 1e999, 5]", [], id="not finite"),
    ],
)
def test_boxes_are_read_in_their_order(text: str, boxes: list[Box]) -> None:
    assert [box.corners for box in parse_answer(text).boxes] == boxes


@pytest.mark.parametrize(
    ("text", "timed", "mended_or_left"),
    [
        pytest.param(
            "1.0 seconds: [235.08, 261.2, 561.58, 1005.62] "
            "5.0 seconds: [274.26, 261.2, 561.58, 1005.62]",
            [(1, (235.08, 261.2, 561.58, 1005.62)), (5, (274.26, 261.2, 561.58, 1005.62))],
            0,
            id="as trained",
        ),
        pytest.param(
            "12.0 seconds: [1365, 55, 1630, 357)", [(12, (1365, 55, 1630, 357))], 1, id="wrong end"
        ),
        pytest.param(
            "12.0 seconds: 1365, 55, 1630, 357)", [(12, (1365, 55, 1630, 357))], 1, id="no start"
        ),
        pytest.param(
            "12.0 seconds: [1376, 0, 1919, 305", [(12, (1376, 0, 1919, 305))], 1, id="no end"
        ),
        pytest.param(
            "12.0 seconds: 1376, 0, 1919, 305 16.0 seconds: [1, 2, 3, 4]",
            [(12, (1376, 0, 1919, 305)), (16, (1, 2, 3, 4))],
            1,
            id="no brackets",
        ),
        pytest.param(
            "12.0 seconds: [1, 2, 3, 4 16.0 seconds: [5, 6, 7, 8]",
            [(12, (1, 2, 3, 4)), (16, (5, 6, 7, 8))],
            1,
            id="no end in the middle",
        ),
        pytest.param(
            "12 s: [1,2,3,4]; 16s: [5,6,7,8]",
            [(12, (1, 2, 3, 4)), (16, (5, 6, 7, 8))],
            0,
            id="short units",
        ),
        pytest.param(
            "12.0 seconds: none 13.0 seconds: [1, 2, 3, 4]", [(13, (1, 2, 3, 4))], 0, id="none"
        ),
        pytest.param("[1, 2, 3, 4] [5, 6, 7, 8]", [], 2, id="no times"),
        pytest.param("12.0 seconds: [1, 2, 3]", [], 1, id="three numbers"),
        pytest.param(
            "12.0 seconds: [-5, 2, 3000, 4]", [(12, (-5, 2, 3000, 4))], 0, id="out of the frame"
        ),
        pytest.param("", [], 0, id="nothing"),
        pytest.param(
            "At 0:12, [1, 2, 3, 4]\nAt 1:02:03.5, [5, 6, 7, 8]",
            [(12, (1, 2, 3, 4)), (3723.5, (5, 6, 7, 8))],
            0,
            id="clock times",
        ),
        pytest.param("1.0-29.0 seconds: check: record sheet", [], 0, id="a range"),
        pytest.param("1.0-29.0 seconds: [1, 2, 3, 4]", [], 1, id="a range is no time"),
        pytest.param("from 0:12 to 0:20 [1, 2, 3, 4]", [], 1, id="a clock range is no time"),
        pytest.param("9999.0 seconds: [1, 2, 3, 4]", [(9999, (1, 2, 3, 4))], 0, id="past the end"),
        pytest.param("1,5 seconds: [1, 2, 3, 4]", [(1.5, (1, 2, 3, 4))], 1, id="decimal comma"),
        pytest.param("0:12: [1, 2, 3, 4]", [(12, (1, 2, 3, 4))], 0, id="clock and colon"),
        pytest.param("At 00:90: [1, 2, 3, 4]", [], 2, id="no such clock time"),
        pytest.param(
            "At 3.2s the hook is at [1, 2, 3, 4].", [(3.2, (1, 2, 3, 4))], 0, id="in prose"
        ),
        pytest.param("at 12.5: [1, 2, 3, 4]", [(12.5, (1, 2, 3, 4))], 0, id="at, no unit"),
        pytest.param("at 3 places [1, 2, 3, 4]", [], 1, id="at, but a count"),
        pytest.param("1: [1, 2, 3, 4]", [], 1, id="a list's number is no time"),
        pytest.param("12 s: [1, 2, 3, 4]. Elsewhere [5, 6, 7, 8]", [(12, (1, 2, 3, 4))], 1, id="x"),
        pytest.param(
            '{"12.5": [1, 2, 3, 4], "0:16": [5, 6, 7, 8]}',
            [(12.5, (1, 2, 3, 4)), (16, (5, 6, 7, 8))],
            0,
            id="times as keys",
        ),
        pytest.param(
            '{"time": 12.5, "bbox_2d": [1, 2, 3, 4]}\n'
            '{"bbox_2d": [5, 6, 7, 8], "timestamp": "16 s"}',
            [(12.5, (1, 2, 3, 4)), (16, (5, 6, 7, 8))],
            0,
            id="JSON lines with a time key",
        ),
        pytest.param(
            '{"12.5": [1, 2, 3, 4]}\n{"bbox_2d": [5, 6, 7, 8]}',
            [(12.5, (1, 2, 3, 4))],
            1,
            id="a key's time ends with its object",
        ),
        pytest.param(
            '1 s: {"bbox_2d": [1, 2, 3, 4]}\n{"bbox_2d": [5, 6, 7, 8]}',
            [(1, (1, 2, 3, 4))],
            1,
            id="a time before an object ends with it",
        ),
        pytest.param(
            '12.5 seconds: [{"bbox_2d": [1, 2, 3, 4], "label": "a"}]',
            [(12.5, (1, 2, 3, 4))],
            0,
            id="JSON after a time",
        ),
    ],
)
def test_times_are_those_the_answer_names(
    text: str, timed: list[tuple[float, Box]], mended_or_left: int
) -> None:
    parsed = parse_answer(text)

    assert list(parsed.timed) == timed
    assert parsed.repaired + parsed.unread + len(parsed.untimed) == mended_or_left


def test_labels_go_with_their_boxes() -> None:
    text = (
        '[{"label": "hook", "bbox_2d": [1, 2, 3, 4]}, {"bbox_2d": [5, 6, 7, 8]}]'
        "<|object_ref_start|>clip<|object_ref_end|><|box_start|>(1,2),(3,4)<|box_end|>"
    )

    assert parse_answer(text).labels == ("hook", "", "clip")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param(
            f'{FENCE}json\n[{{"bbox_2d": [1, 2, 3, 4], "label": "a"}}, {{"bbox_2d": [5, 6, 7',
            1,
            id="in a box",
        ),
        pytest.param('[{"bbox_2d": [1, 2, 3, 4], "label": "a', 1, id="in a label"),
        pytest.param('[{"bbox_2d": [1, 2, 3, 4]}, ', 1, id="between boxes"),
        pytest.param("1 s: [1, 2, 3, 4] 2 s: ", 1, id="after a time"),
        pytest.param("<think>[1, 2, 3, 4] maybe", 0, id="in a thought"),
    ],
)
def test_a_cut_answer_keeps_what_is_whole_and_says_so(text: str, count: int) -> None:
    parsed = parse_answer(text)

    assert parsed.truncated
    assert len(parsed.boxes) == count


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "none",
        "1 s: [1, 2, 3, 4]",
        "1 s: [1, 2, 3, 4",
        "1 s: [1, 2, 3, 4) 2 s: [1, 2, 3, 4]",
    ],
)
def test_a_finished_answer_is_not_called_cut(text: str) -> None:
    assert not parse_answer(text).truncated


def test_a_time_past_the_end_is_told_and_kept() -> None:
    parsed = parse_answer("5 s: [1, 2, 3, 4] 9999.0 seconds: [1, 2, 3, 4]")

    assert parsed.times_after(60.0) == (9999.0,)
    assert len(parsed.timed) == 2


@pytest.mark.parametrize(
    ("resized_wh", "frame_wh", "model", "frame"),
    [
        ((1316, 728), (1920, 1080), (658, 364, 987, 546), (960, 540, 1440, 810)),
        ((1008, 560), (1920, 1080), (504, 280, 1008, 560), (960, 540, 1920, 1080)),
        ((476, 392), (720, 576), (98, 98, 196, 196), (148.235, 144, 296.471, 288)),
        ((1008, 560), (1280, 720), (0, 0, 1008, 560), (0, 0, 1280, 720)),
        ((364, 448), (368, 434), (19, 300, 154, 476), (19.209, 290.625, 155.692, 434)),
        ((1008, 560), (1920, 1080), (-12, 10, 1100, 700), (0, 19.286, 1920, 1080)),
    ],
)
def test_resized_pixels_map_back_on_each_axis(
    resized_wh: tuple[int, int], frame_wh: tuple[int, int], model: Box, frame: Box
) -> None:
    mapped = map_box(model, space="resized", resized_wh=resized_wh, frame_wh=frame_wh)

    assert mapped == pytest.approx(frame, abs=0.001)


def test_each_picture_s_box_uses_its_own_size() -> None:
    first = map_box(
        (504, 280, 756, 420), space="resized", resized_wh=(1008, 560), frame_wh=(1920, 1080)
    )
    second = map_box(
        (98, 98, 196, 196), space="resized", resized_wh=(476, 392), frame_wh=(720, 576)
    )

    assert first == pytest.approx((960, 540, 1440, 810))
    assert second == pytest.approx((148.235, 144, 296.471, 288), abs=0.001)


@pytest.mark.parametrize(
    ("space", "corners"),
    [
        ("pixels", (960.0, 540.0, 1440.0, 810.0)),
        ("resized", (504.0, 280.0, 756.0, 420.0)),
        ("thousand", (500.0, 500.0, 750.0, 750.0)),
        ("unit", (0.5, 0.5, 0.75, 0.75)),
    ],
)
def test_every_stated_space_leads_to_the_same_pixels(space: AnswerSpace, corners: Box) -> None:
    mapped = map_box(corners, space=space, resized_wh=(1008, 560), frame_wh=(1920, 1080))

    assert mapped == pytest.approx((960, 540, 1440, 810))


def test_a_box_wholly_outside_is_dropped_and_counted() -> None:
    parsed = parse_answer("1 s: [1008, 560, 1200, 800] 2 s: [0, 0, 504, 280]")

    mapped = to_frame_boxes(parsed, space="resized", resized_wh=(1008, 560), frame_wh=(1920, 1080))

    assert mapped.timed == ((2.0, (0.0, 0.0, 960.0, 540.0)),)
    assert mapped.outside == 1
    assert len(parsed.boxes) == 2


def test_an_unstated_space_is_refused() -> None:
    with pytest.raises(ValueError, match="space must be one of"):
        map_box((0, 0, 1, 1), space="any", resized_wh=(4, 4), frame_wh=(4, 4))  # type: ignore[arg-type]


def answer_of(*times: float | None) -> ParsedAnswer:
    """An answer whose k-th box is (0, 0, k + 1, 1)."""
    boxes = (AnswerBox((0, 0, place + 1, 1), time) for place, time in enumerate(times))
    return ParsedAnswer(boxes=tuple(boxes))


@pytest.mark.parametrize(
    ("times", "requested", "widths"),
    [
        pytest.param([4.0, 8.0], [4.0, 8.0], [1, 2], id="exact"),
        pytest.param([8.0, 4.0], [4.0, 8.0], [2, 1], id="another order"),
        pytest.param([4.3, 9.0], [4.0, 8.0], [1, None], id="near, and too far"),
        pytest.param([4.4, 4.1], [4.0], [2], id="the nearest"),
        pytest.param([4.0, 4.0], [4.0], [1], id="the first of two"),
        pytest.param([4.5], [4.0, 5.0], [1, None], id="between two, the earlier"),
        pytest.param([4.4], [4.0, 4.5], [None, 1], id="one answer, one time"),
        pytest.param([], [4.0], [None], id="no answer"),
        pytest.param([None], [4.0], [1], id="one box without a time"),
        pytest.param([None, None], [4.0], [None], id="two without times"),
        pytest.param([None], [4.0, 8.0], [None, None], id="one for two times"),
        pytest.param([4.0], [], [], id="nothing asked"),
    ],
)
def test_answers_go_to_the_nearest_requested_time(
    times: list[float | None], requested: list[float], widths: list[int | None]
) -> None:
    matched = match_times(answer_of(*times), requested, tolerance_s=0.5)

    assert [box and box[2] for box in matched] == widths


def test_a_written_answer_reads_back() -> None:
    times = [12.5, 30.0, 754.56, 800.0]
    boxes: list[Box | None] = [(1, 2, 3, 4), (-0.0, 0.125, 10.5, 99.999), (-5.25, 2, 3000, 4), None]

    text = format_answer(times, boxes)

    assert text.startswith("12.5 seconds: [1, 2, 3, 4] 30.0 seconds: [0, 0.125, 10.5, 99.999] ")
    assert list(parse_answer(text).timed) == list(zip(times[:3], boxes[:3], strict=True))


def test_no_boxes_write_nothing() -> None:
    assert format_answer([], []) == ""
    assert format_answer([1.0], [None]) == ""


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(ValueError, match="each time needs one box"):
        format_answer([1.0], [])
    with pytest.raises(ValueError, match="must be finite"):
        format_answer([1.0], [(0, 0, float("nan"), 1)])


@pytest.mark.parametrize(
    "piece",
    [
        *("[", "{", "(", "]", '"', "-", "\u2212", "1", "1 ", "1:00 ", "1 s ", "[1,", "(1,2)"),
        *("{[1,2,3,4]", '{"label": "', '{"time": 1', "<think>", "</think>"),
        "<|object_ref_start|>",
    ],
)
def test_a_megabyte_of_anything_is_read_at_once(piece: str) -> None:
    text = (piece * 1_000_000)[:1_000_000]

    started = time.thread_time()  # servers of other tests may be busy in this process
    parsed = parse_answer(text)

    assert time.thread_time() - started < 3.0  # what grows with the square takes hours
    assert parsed.truncated


def test_no_text_breaks_the_reader() -> None:
    rng = random.Random(20260719)
    pieces = [
        *"0123456789.,:;-[]{}()<>'\"\n \t\x00\u0660\u00b2\u2212es",
        "seconds",
        "none",
        " at ",
        " to ",
    ]
    pieces += ['"bbox_2d": [1, 2, 3, 4]', '{"time": ', '"label": "', "0:12", "<think>", "</think>"]
    pieces += ["<answer>", "1e9", "<|box_start|>(1,2),(3,4)<|box_end|>", '"12.5": ', "9" * 400]
    for _ in range(20_000):
        parsed = parse_answer("".join(rng.choices(pieces, k=rng.randrange(40))))
        match_times(parsed, (1.0, 12.5), tolerance_s=0.5)
        for box in parsed.boxes:
            map_box(box.corners, space="thousand", resized_wh=(28, 28), frame_wh=(854, 480))
