"""GroundingDINO's caption and the way back to one phrase a box."""

import random

import numpy as np
import pytest

from refinerank_core.caption import (
    UNKNOWN,
    caption,
    clean_phrases,
    labels_as_typed,
    match_phrase,
    phrase_scores,
    phrase_spans,
)
from refinerank_core.errors import QuestionError

TYPED = [
    pytest.param(["Grasper", "Hook"], "grasper . hook .", id="capitals"),
    pytest.param("people; astronaut", "people . astronaut .", id="semicolon"),
    pytest.param("Grasper, Hook ,  Clip Applier", "grasper . hook . clip applier .", id="commas"),
    pytest.param("grasper . hook .", "grasper . hook .", id="a caption"),
    pytest.param("grasper. hook", "grasper . hook .", id="a sentence dot"),
    pytest.param("grasper\nhook\r\n\n", "grasper . hook .", id="lines"),
    pytest.param(["grasper", "GRASPER ", "hook"], "grasper . hook .", id="doubles"),
    pytest.param(["5 mm. trocar", "hook"], "5 mm trocar . hook .", id="a dot in a label"),
    pytest.param(["5.5 mm trocar"], "5 5 mm trocar .", id="a dot in a number"),
    pytest.param(["specimen_bag"], "specimen bag .", id="underscore"),
    pytest.param(["L-hook"], "l-hook .", id="hyphen"),
    pytest.param(["where? [SEP]"], "where sep .", id="signs the text encoder would act on"),
]


@pytest.mark.parametrize(("typed", "expected"), TYPED)
def test_typed_labels_become_the_one_caption(typed: str | list[str], expected: str) -> None:
    assert caption(typed) == expected
    assert caption(caption(typed)) == expected


@pytest.mark.parametrize("typed", [["", "  ", "."], "", " . ", [], "?"])
def test_an_empty_prompt_is_refused(typed: str | list[str]) -> None:
    with pytest.raises(QuestionError, match="nothing to look for"):
        caption(typed)


def test_each_phrase_leads_back_to_the_label_as_typed() -> None:
    labels = labels_as_typed([" specimen_bag", "L-Hook", "l-hook"])

    assert labels == {"specimen bag": "specimen_bag", "l-hook": "L-Hook"}


def test_spans_cut_the_phrases_out_of_the_caption() -> None:
    phrases = ("grasper", "hook", "clip applier")
    text = caption(phrases)

    assert [text[start:end] for start, end in phrase_spans(phrases)] == list(phrases)


def test_spans_of_unclean_phrases_are_refused() -> None:
    with pytest.raises(ValueError, match="clean and distinct"):
        phrase_spans(["Grasper"])


# "grasper . hook . clip applier ." as word pieces; special tokens have an empty span.
PIECES = [(0, 0), (0, 4), (4, 7), (8, 9), (10, 14), (15, 16), (17, 21), (22, 25), (25, 29)]
PIECES += [(30, 31), (0, 0)]


@pytest.mark.parametrize(
    ("tokens", "phrase"),
    [
        pytest.param([0, 0.6, 0.5, 0, 0.45, 0, 0.05, 0, 0, 0, 0], "grasper", id="two pass"),
        pytest.param([0, 0, 0, 0, 0.38, 0, 0.37, 0, 0, 0, 0], "hook", id="a near tie"),
        pytest.param([0, 0.4, 0.35, 0, 0.42, 0, 0.41, 0.3, 0.3, 0, 0], "hook", id="all pass"),
        pytest.param([1, 0, 0, 1, 0.1, 1, 0, 0, 0, 1, 1], "hook", id="dots and specials are loud"),
    ],
)
def test_tokens_of_several_phrases_give_one_phrase(tokens: list[float], phrase: str) -> None:
    phrases = ("grasper", "hook", "clip applier")

    scores = phrase_scores(np.array([tokens], np.float32), PIECES, phrases)

    assert phrases[int(scores[0].argmax())] == phrase


def test_no_boxes_score_to_an_empty_table() -> None:
    scores = phrase_scores(np.zeros((0, 2), np.float32), [(0, 4), (5, 6)], ("hook",))

    assert scores.shape == (0, 1)


def test_scores_of_other_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match=r"token_scores must be \(N, 1\)"):
        phrase_scores(np.zeros((1, 2), np.float32), [(0, 4)], ("hook",))


@pytest.mark.parametrize(
    ("decoded", "phrase"),
    [
        ("hook", "hook"),
        ("l - hook", "l-hook"),
        ("l-hook", "l-hook"),
        ("hook wire", "hook wire"),
        ("clip", "clip"),
        ("clip app ##lier", "clip applier"),
        ("applier", "clip applier"),
        ("suture scissors", "suture scissors"),
        ("scissors", "suture scissors"),
        ("suture", "suture"),
        ("clip applier hook", "clip applier"),
        ("grasper", UNKNOWN),
        ("hooks", UNKNOWN),
        ("wire cutter", UNKNOWN),
        ("", UNKNOWN),
        (".", UNKNOWN),
    ],
)
def test_decoded_words_stand_for_one_phrase_or_none(decoded: str, phrase: str) -> None:
    phrases = ("hook", "l-hook", "hook wire", "clip", "clip applier", "suture", "suture scissors")

    assert match_phrase(decoded, phrases) == phrase


def test_words_that_two_phrases_hold_are_unknown() -> None:
    assert match_phrase("applier", ("clip applier", "staple applier")) == UNKNOWN


def test_any_text_cleans_to_a_stable_caption() -> None:
    rng = random.Random(3)
    signs = "ab5 ._,;?\n-'#[]\u0130\u00df\u0301\u200b\x00\u212b"
    for _ in range(20_000):
        text = "".join(rng.choices(signs, k=rng.randrange(12)))
        phrases = clean_phrases(text)
        if phrases:
            assert clean_phrases(caption(text)) == phrases
            assert len(phrase_spans(phrases)) == len(phrases)
