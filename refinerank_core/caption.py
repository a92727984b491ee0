"""The caption that GroundingDINO reads, and the way back from its tokens to one phrase a box.

The model was trained on lower-case phrases with a dot after each: "grasper . clip applier .". Only
the dot separates, so nothing else may stand for it and no phrase may hold one.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from refinerank_core.errors import QuestionError
from refinerank_core.structures import Float32

UNKNOWN = "unknown"
"""The phrase of a box that answers none of those asked for; never a phrase of a caption."""

# A dot separates unless it stands inside a number such as 5.5; commas may not be decimal here.
_SEPARATOR = re.compile(r"[\n\r;,]|\.(?!\d)|(?<!\d)\.")
# Signs that the text encoder reads as separators or markers of its own, and what people quote with.
_NOT_IN_A_PHRASE = re.compile(r"[\s_.,;:?!#|<>\[\]{}()\"`*\u201c\u201d\u201e\u200b-\u200f\ufeff]+")


def clean_phrases(prompt: str | Sequence[str]) -> tuple[str, ...]:
    """Bring phrases into the form that the caption needs.

    Args:
        prompt: phrases one by one, or one text with dots, commas, semicolons or line ends between
            them. A sign inside a listed phrase does not split it.

    Returns:
        Distinct lower-case phrases in the order given; empty when nothing readable is left.
    """
    return tuple(labels_as_typed(prompt))


def labels_as_typed(prompt: str | Sequence[str]) -> dict[str, str]:
    """Map each clean phrase of `clean_phrases` to the words it was first typed with."""
    typed = _SEPARATOR.split(prompt) if isinstance(prompt, str) else prompt
    labels: dict[str, str] = {}
    for label in typed:
        phrase = _clean(label)
        if phrase and phrase != UNKNOWN:
            labels.setdefault(phrase, label.strip())
    return labels


def caption(prompt: str | Sequence[str]) -> str:
    """Write phrases as GroundingDINO's caption; a caption comes back as it is.

    Args:
        prompt: as for `clean_phrases`.

    Returns:
        "x . y ." with each distinct phrase once.

    Raises:
        QuestionError: no phrase is left.
    """
    phrases = clean_phrases(prompt)
    if not phrases:
        raise QuestionError(
            "There is nothing to look for. Name at least one thing, such as 'hook'."
        )
    return " . ".join(phrases) + " ."


def phrase_spans(phrases: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Where each phrase stands in the caption of these phrases: [start, end) characters.

    Raises:
        ValueError: a phrase is not clean or comes twice, so that the caption would not hold it.
    """
    if tuple(phrases) != clean_phrases(phrases):
        raise ValueError(f"phrases must be clean and distinct, got {list(phrases)}")
    spans, start = [], 0
    for phrase in phrases:
        spans.append((start, start + len(phrase)))
        start += len(phrase) + len(" . ")
    return tuple(spans)


def phrase_scores(
    token_scores: Float32, token_spans: Sequence[tuple[int, int]], phrases: Sequence[str]
) -> Float32:
    """Score each phrase for each box by the best token inside the phrase.

    Args:
        token_scores: (N, T) float32 in [0, 1], one row a box.
        token_spans: T spans [start, end) in the characters of the caption; an empty span (special
            tokens, padding) belongs to no phrase.
        phrases: P clean phrases, in the order of the caption.

    Returns:
        (N, P) float32; 0 for a phrase without a token. The argmax is the one phrase of a box.

    Raises:
        ValueError: the columns do not match the spans, or the phrases are not clean.
    """
    if token_scores.ndim != 2 or token_scores.shape[1] != len(token_spans):
        raise ValueError(f"token_scores must be (N, {len(token_spans)}), got {token_scores.shape}")
    scores = np.zeros((len(token_scores), len(phrases)), np.float32)
    for column, (start, end) in enumerate(phrase_spans(phrases)):
        inside = [
            index for index, (first, last) in enumerate(token_spans) if start <= first < last <= end
        ]
        if inside:
            scores[:, column] = token_scores[:, inside].max(axis=1)
    return scores


def match_phrase(decoded: str, phrases: Sequence[str]) -> str:
    """Find the one phrase that a detector's decoded words stand for.

    For back ends that give words and no tokens. The same words win; then the longest phrase that
    the words hold whole; then the only phrase that holds the words whole.

    Args:
        decoded: the detector's words, "##" pieces and spaces round hyphens included.
        phrases: clean phrases.

    Returns:
        One of phrases, or UNKNOWN. Words are never matched inside other words.
    """
    said = _pad(re.sub(r"\s*##", "", decoded))
    if not said.strip():
        return UNKNOWN
    padded = {phrase: _pad(phrase) for phrase in phrases}
    held = [phrase for phrase in phrases if padded[phrase] in said]
    if held:
        return max(held, key=len)
    holders = [phrase for phrase in phrases if said in padded[phrase]]
    return holders[0] if len(holders) == 1 else UNKNOWN


def _pad(words: str) -> str:
    """Clean words between single spaces, so that `in` finds whole words only."""
    return f" {re.sub(r' *- *', '-', _clean(words))} "


def _clean(label: str) -> str:
    """One phrase in lower case without any sign that separates."""
    # Lower case before composing: some capitals fall apart into a letter and a mark.
    lowered = unicodedata.normalize("NFC", label.lower())
    kept = "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in lowered)
    return _NOT_IN_A_PHRASE.sub(" ", kept).strip(" '-")
