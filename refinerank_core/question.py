"""A question, read by rule: clean text, requested times, target words, detector phrases."""

import re
import unicodedata
from collections.abc import Iterable

from refinerank_core.caption import clean_phrases, labels_as_typed
from refinerank_core.errors import QuestionError
from refinerank_core.structures import Question
from refinerank_core.times import requested_times

MAX_CHARACTERS = 2000
MAX_PHRASES = 6
MAX_PHRASE_WORDS = 6
DEFAULT_TARGET = "surgical instrument"

GENERIC = frozenset(
    {
        "instrument",
        "surgical instrument",
        "laparoscopic instrument",
        "tool",
        "surgical tool",
        "object",
        "visible object",
    }
)
"""Phrases that name nothing in particular: used only where no other is left."""

_MARKERS = re.compile(r"<\|[^<>|]{1,40}\|>|</?(?:video|image)>", re.IGNORECASE)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.IGNORECASE | re.DOTALL)
_ASK = r"(?:track|locate|localize|find|detect|segment|identify|follow|mark|highlight|outline|show)"
_TARGET = re.compile(
    r"\b(?:bounding\s+box(?:es)?\s+(?:for|of|around)|where(?:\s+is|\s+are|'s)"
    rf"|{_ASK}(?:\s+and\s+{_ASK})*|(?:location|position)s?\s+of)\s+(?P<named>[^.,;:?!\n]+)"
    r"|\b(?:which|what)\s+(?P<asked>(?:[\w-]+\s+){1,4}?)(?:is|are|was|were|does|do|has|have)\b",
    re.IGNORECASE,
)
# A text that begins so, or asks, is a sentence; any other short one is taken for the thing itself.
_SENTENCE = re.compile(
    r"^(?:what|which|who|when|why|how|is|are|do|does|can|could|please|describe|explain|count|list"
    r"|give|provide|tell|summari[sz]e|answer|from|between|every|at|where|find|track|locate)\b|[?!]",
    re.IGNORECASE,
)
_LEADING = re.compile(
    r"^(?:(?:the|an?|all|any|each|both|this|that|these|those|its|me|exact"
    r"|(?:locations?|positions?|movements?|bounding\s+box(?:es)?|box(?:es)?)\s+(?:of|for))(?:\s+|$))+",
    re.IGNORECASE,
)
# Words after which a question speaks of time, place or doing, and no longer of the thing itself.
_TARGET_ENDS = re.compile(
    r"\s+(?:(?:from|between|at|every|in|on|during|throughout|when|while|that|which|who|as|across"
    r"|over|until|used|is|are|was|were|with|using|before|after|within|for|located|visible)\b"
    r"|[\d.:]+\s*(?:s|sec|seconds?|minutes?)\b|\w+ing\s+(?:the|an?|this|that|its|tissue)\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_AND = re.compile(r"\s+(?:and|or)\s+(?:the\s+|an?\s+)?", re.IGNORECASE)

_LIST_MARK = re.compile(r"^\s*(?:[-*\u2022]|\(?\d{1,2}[.):])\s+")
_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'")
_LEAD_IN = re.compile(r"^[^:\n]{0,80}:\s*")
_TALK = re.compile(
    r"\b(?:i|you|we|it|they|there|this|these|those|here|is|are|was|be|been|can(?:not)?|could|would"
    r"|no|not|none|null|sorry|please|sure|such|following|images?|frames?|video|question|answer"
    r"|phrases?|detector|unknown|bbox|box(?:es)?|bounding|coordinates|json|label)\b"
)
_WORDS_ONLY = re.compile(r"[a-z0-9'/ -]+")


def parse_question(text: str, *, duration_s: float | None = None) -> Question:
    """Read a procedural question by rule.

    Args:
        text: the question as typed or as it stands in a data set ("<video>" is removed).
        duration_s: length of the video in seconds; None: not known, no time is too late.

    Returns:
        Its clean text, its requested times (empty when it names none), its target words and 1 to
        MAX_PHRASES detector phrases.

    Raises:
        QuestionError: the text is empty or longer than MAX_CHARACTERS, or its times cannot be
            answered (`times.requested_times`).
    """
    if len(text) > MAX_CHARACTERS:
        raise QuestionError(
            f"The question has {len(text)} characters; at most {MAX_CHARACTERS} are read. "
            "Shorten it."
        )
    clean = clean_text(text)
    if not clean:
        raise QuestionError(
            "The question is empty. Write what to find, such as 'Where is the hook?'"
        )
    targets = _targets(clean)
    return Question(
        text=clean,
        requested_s=requested_times(clean, duration_s=duration_s),
        target=" and ".join(targets),
        phrases=_rule_phrases(targets),
    )


def clean_text(text: str) -> str:
    """Compose characters, drop control signs and model markers, put single spaces between words."""
    composed = unicodedata.normalize("NFC", text)
    spaced = (" " if unicodedata.category(sign) == "Cc" else sign for sign in composed)
    clean = "".join(sign for sign in spaced if unicodedata.category(sign)[0] != "C")
    while _MARKERS.search(clean):  # what is left may close up to a marker again
        clean = _MARKERS.sub("", clean)
    return " ".join(clean.split())


def parse_query_answer(text: str) -> tuple[str, ...] | None:
    """Read the model's answer to "which phrases should a detector look for".

    Lines, commas, semicolons, numbered lists, JSON lists, a lead-in and prose after the list are
    understood. A part is no phrase when it has more than MAX_PHRASE_WORDS words, no letters, a word
    twice, or the words of a sentence.

    Args:
        text: whatever the model wrote.

    Returns:
        1 to MAX_PHRASES clean phrases, generic ones only where no other is left; None when nothing
        is usable, and the rules of `parse_question` stand in.
    """
    said = _MARKERS.sub(" ", _THOUGHT.sub(" ", text[:MAX_CHARACTERS])).replace("```json", "```")
    opened = said.find("[")
    if opened >= 0 or said.lstrip(" `\n").startswith("{"):
        listed = said[opened + 1 :].split("]")[0]
        quoted = [double or single for double, single in _QUOTED.findall(listed)]
        parts = quoted or listed.split(",")
    else:
        parts = [part for line in said.splitlines() for part in _parts(line)]
    return _pick(phrase for phrase in clean_phrases(parts) if _is_phrase(phrase)) or None


def _parts(line: str) -> list[str]:
    """The phrases that one line of an answer may hold."""
    item = _LEAD_IN.sub("", _LIST_MARK.sub("", line))
    return re.split(r"[,;]|\.(?=\s|$)|\s+and\s+", item)


def _is_phrase(phrase: str) -> bool:
    words = phrase.split()
    return (
        len(words) <= MAX_PHRASE_WORDS
        and all(len(word) <= 24 for word in words)
        and len(set(words)) == len(words)
        and _WORDS_ONLY.fullmatch(phrase) is not None
        and re.search(r"[a-z]{3}", phrase) is not None
        and not re.search(r"(.)\1\1", phrase)
        and not _TALK.search(phrase)
    )


def _targets(text: str) -> list[str]:
    """What the question asks for, one entry a thing; the default where it does not say."""
    named = [match["named"] or match["asked"] for match in _TARGET.finditer(text)]
    if not named and not _SENTENCE.search(text):
        named = [_bare_list(text)]
    for words in named:
        plain = re.sub(r"[\"'`\u201c\u201d\u2018\u2019]", "", words).strip()
        things = [_bare(part) for part in _AND.split(_TARGET_ENDS.sub("", f" {plain}").strip())]
        found = [thing for thing in dict.fromkeys(things) if clean_phrases([thing])]
        if found and not all(_is_generic(thing.lower()) for thing in found):
            return found[:MAX_PHRASES]
    return [DEFAULT_TARGET]


def _bare_list(text: str) -> str:
    """The things of a text that is nothing but a list of them, joined by "and"."""
    labels = labels_as_typed(text).values()
    things = [_TARGET_ENDS.sub("", f" {label}").strip() for label in labels]
    return " and ".join(thing for thing in things if _is_phrase(" ".join(clean_phrases([thing]))))


def _bare(words: str) -> str:
    """Words without article or "location of", at most MAX_PHRASE_WORDS of them."""
    return " ".join(_LEADING.sub("", words.strip()).split()[:MAX_PHRASE_WORDS])


def _rule_phrases(targets: list[str]) -> tuple[str, ...]:
    """Each target, then each as "surgical" and as "visible"."""
    named = clean_phrases(targets)
    surgical = [f"surgical {name}" for name in named if not name.startswith("surgical ")]
    visible = [f"visible {name}" for name in named if not name.startswith("visible ")]
    return _pick((*named, *surgical, *visible))


def _pick(phrases: Iterable[str]) -> tuple[str, ...]:
    """At most MAX_PHRASES, generic ones only where no other is left."""
    distinct = tuple(dict.fromkeys(phrases))
    named = tuple(phrase for phrase in distinct if not _is_generic(phrase))
    return (named or distinct)[:MAX_PHRASES]


def _is_generic(phrase: str) -> bool:
    """Whether a phrase stands in GENERIC, in the plural or as "visible" too."""
    return bool({phrase, phrase.removeprefix("visible ").removesuffix("s")} & GENERIC)
