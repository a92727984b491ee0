"""Captions for the detector's training: which phrases are asked for, and what each thing owes them.

A thing that a phrase names owes it 1. A thing that is only of the same kind (any tool when a hook
is asked for) owes it KIN: the detector is there for recall at a low threshold, so it should show
such a thing late rather than never.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from refinerank_core.caption import caption, clean_phrases, phrase_spans
from refinerank_core.phantom.pointers import ASKED_STRUCTURES
from refinerank_core.phantom.vocabulary import LADDERS, Ladder

KIN = 0.3
MAX_PHRASES = 6
_TOOLS = frozenset(n for n, ladder in LADDERS.items() if "instrument" in ladder.general)
_HANDS = frozenset(name for name, ladder in LADDERS.items() if "hand" in ladder.general)
_GENERAL_TOOL = ("surgical instrument", "instrument", "surgical tool", "visible instrument")


def caption_words() -> list[str]:
    """Every word of every phrase that a caption may hold, sorted."""
    phrases = [phrase for name in LADDERS for phrase in phrases_of(name)]
    return sorted({word for phrase in phrases for word in phrase.split()})


def phrases_of(name: str) -> tuple[str, ...]:
    """All clean phrases that fit a class, also as "surgical" and "visible", as the rules write."""
    ladder = LADDERS[name]
    plain = (*ladder.general, *ladder.category, *ladder.specific)
    return clean_phrases(
        [*plain, *(f"surgical {p}" for p in plain), *(f"visible {p}" for p in plain)]
    )


_PHRASES = {name: frozenset(phrases_of(name)) for name in LADDERS}


def owed(name: str, phrase: str) -> float:
    """What a thing of this class owes to a phrase: 1 when it fits, KIN for its kind, else 0."""
    if phrase in _PHRASES[name]:
        return 1.0
    for kind in (_TOOLS, _HANDS):
        if name in kind and any(phrase in _PHRASES[other] for other in kind):
            return KIN
    return 0.0


def draw_caption(rng: np.random.Generator, present: Sequence[str]) -> tuple[str, ...]:
    """Draw the phrases of one caption.

    Args:
        rng: the step's own stream.
        present: names of the classes in the batch; most captions ask for one of them, for a
            structure as often as for a tool or hand.
    """
    chance = float(rng.random())
    seen = sorted(set(present)) or sorted(LADDERS)
    actors = [name for name in seen if name in _TOOLS or name in _HANDS] or seen
    asked = [name for name in seen if name in ASKED_STRUCTURES] or seen
    if chance < 0.30:
        general = _GENERAL_TOOL if rng.random() < 0.75 else LADDERS["own left hand"].general
        drawn = [_any(rng, general)]
        if rng.random() < 0.3:
            drawn = [_any(rng, _GENERAL_TOOL), "hand"]
    elif chance < 0.55:
        drawn = _asks_for(rng, LADDERS[_any(rng, actors)])
    elif chance < 0.80:
        drawn = _asks_for(rng, LADDERS[_any(rng, asked)])
    elif chance < 0.90:
        names = [_any(rng, actors), *(_any(rng, sorted(LADDERS)) for _ in range(5))]
        drawn = [_any(rng, _named(LADDERS[n])) for n in names[: int(rng.integers(2, 7))]]
    else:
        drawn = [_any(rng, _named(LADDERS[_any(rng, seen)]))]
    return clean_phrases(drawn)[:MAX_PHRASES]


def _asks_for(rng: np.random.Generator, ladder: Ladder) -> list[str]:
    """One thing in the words of the rules, of the model, or alone."""
    manner = int(rng.integers(3))
    phrase = _any(rng, ladder.specific if rng.random() < 0.7 else _named(ladder))
    if manner == 0:
        return [phrase, f"surgical {phrase}", f"visible {phrase}"]
    if manner == 1:
        return list(dict.fromkeys([phrase, *ladder.specific, _any(rng, ladder.category)]))
    return [phrase]


def _named(ladder: Ladder) -> tuple[str, ...]:
    return (*ladder.category, *ladder.specific, *ladder.specific)


def _any(rng: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(rng.integers(len(words)))]


@dataclass(frozen=True, eq=False)
class CaptionTokens:
    """A caption as the model reads it.

    Attributes:
        phrases: P clean phrases.
        inputs: input_ids, attention_mask, token_type_ids, each (1, T).
        phrase_of_token: (T,) int64: the phrase that a token belongs to, -1 for a mark.
    """

    phrases: tuple[str, ...]
    inputs: dict[str, torch.Tensor]
    phrase_of_token: torch.Tensor

    def owed_by(self, names: Sequence[str]) -> torch.Tensor:
        """(len(names), T) float32: what each thing owes to each token, 0 at the marks."""
        table = torch.tensor(
            [[owed(name, phrase) for phrase in self.phrases] + [0.0] for name in names],
            dtype=torch.float32,
        ).reshape(len(names), len(self.phrases) + 1)
        return table[:, self.phrase_of_token]


def read_caption(tokenizer: Any, phrases: Sequence[str]) -> CaptionTokens:
    """Tokenise the caption of clean phrases and note which phrase each token serves."""
    text = tokenizer([caption(phrases)], return_offsets_mapping=True, return_tensors="pt")
    offsets = text.pop("offset_mapping")[0].tolist()
    spans = phrase_spans(tuple(phrases))
    place = [
        next(
            (k for k, (first, last) in enumerate(spans) if first <= start < end <= last),
            -1,
        )
        for start, end in offsets
    ]
    return CaptionTokens(tuple(phrases), dict(text), torch.tensor(place, dtype=torch.int64))
