"""The words handed to the MedVLM."""

import re

_SPECIAL_TOKEN = re.compile(r"<\|[^|<>]{0,40}\|>|<video>|<image>")

FEATURE_PROMPT = (
    "At {time_s:.3f} seconds, identify the visual target that the question asks to localize.\n"
    "Question: {question}"
)
"""Interface constant: the released RefineNet weights were trained on features of this prompt."""

QUERY_PROMPT = (
    "Question: {question}\n"
    "Name the visual target for an object detector: at most six short noun phrases, "
    "separated by commas, nothing else."
)

ANSWER_PROMPT = "{question}\nTimes of the frames shown: {times} seconds."
"""The question as asked; the times in words because video positions carry spacing, not a start."""


def plain_question(question: str) -> str:
    """The question without marks that a tokenizer would read as pictures or turns of a chat."""
    return " ".join(_SPECIAL_TOKEN.sub(" ", question).split())


def feature_prompt(question: str, time_s: float) -> str:
    """What one frame and one question are encoded with (METHOD section 2)."""
    return FEATURE_PROMPT.format(time_s=time_s, question=plain_question(question))


def query_prompt(question: str) -> str:
    """What the detector's phrases are asked for with."""
    return QUERY_PROMPT.format(question=plain_question(question))


def answer_prompt(question: str, times_s: list[float], template: str = ANSWER_PROMPT) -> str:
    """What the direct baseline answers. template holds {question} and may hold {times}."""
    times = ", ".join(f"{time_s:g}" for time_s in times_s)
    return template.replace("{times}", times).replace("{question}", plain_question(question))
