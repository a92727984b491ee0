"""Guesses at what a model writes next, from what it has read and written before.

Answers repeat themselves: the times stand in the prompt, and every box has the same brackets and
commas as the one before. A guess that the model then confirms saves it a step of its own; one that
it does not confirm is thrown away, so guesses change the time that a text takes and never the text.
The idea is that of prompt lookup decoding.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_GUESSED = 8


class Drafts:
    """What followed each run of tokens when it was last met."""

    def __init__(self, *, longest: int = 4, most: int = MOST_GUESSED, room: int = 1 << 15) -> None:
        """Begin with no memory.

        Args:
            longest: tokens of the longest run that is looked up; shorter ones stand in for it.
            most: tokens guessed at once.
            room: runs remembered; when there are more, all are forgotten.
        """
        self._longest, self._most, self._room = longest, most, room
        self._next: dict[tuple[int, ...], int] = {}

    def learn(self, tokens: Sequence[int], first: int = 0) -> None:
        """Remember what the tokens from place `first` on followed."""
        if len(self._next) > self._room:
            self._next.clear()
        for place in range(max(first, 1), len(tokens)):
            for length in range(1, min(self._longest, place) + 1):
                self._next[tuple(tokens[place - length : place])] = tokens[place]

    def guess(self, told: Sequence[int], limit: int) -> list[int]:
        """At most `limit` tokens that may follow the told ones; none where nothing is known."""
        tail = list(told[-self._longest :])
        guessed: list[int] = []
        while len(guessed) < min(limit, self._most):
            runs = (tuple(tail[start:]) for start in range(len(tail)))
            found = next((self._next[run] for run in runs if run in self._next), None)
            if found is None:
                break
            guessed.append(found)
            tail = [*tail, found][-self._longest :]
        return guessed
