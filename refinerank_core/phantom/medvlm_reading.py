"""Rows of tokens about pictures, read by the language model with the sums that they share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from refinerank_core.phantom.batched_qwen import read
from refinerank_core.phantom.medvlm_lessons import NOT_LEARNT, shared_length, spread


class RowReader:
    """Reads rows with one small Qwen2.5-VL."""

    def __init__(self, model: Any) -> None:
        self._model = model.model

    def read_rows(
        self,
        merged: Tensor,
        rows: Sequence[Sequence[list[int]]],
        labels: Sequence[Sequence[list[int]]] | None,
        grid_hw: tuple[int, int],
        placeholder: int,
        *,
        step_s: float = 1.0,
        watched: dict[int, tuple[Tensor, Tensor]] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read some rows about each picture; what all of its rows begin with is read once.

        Args:
            merged: (B, tokens, D) merged tokens; those of a video's frames follow each other.
            rows: S rows of tokens about each of B pictures, with one placeholder each.
            labels: of the same rows, None where nothing is written.
            grid_hw: patches of one frame.
            placeholder: the token that the picture stands in for.
            step_s: seconds between the frames of a video.
            watched: see batched_qwen.read.

        Returns:
            (B, S, L, D) last states of what the rows do not share, (B, S) its true lengths, and
            its (B, S, L) labels.
        """
        tokens = merged.shape[1]
        shared = min(shared_length(group) for group in rows)
        prefix = torch.tensor([spread(group[0][:shared], placeholder, tokens) for group in rows])
        tails = [row[shared:] for group in rows for row in group]
        branches = len(rows[0])
        ids = padded(tails, 0)
        lengths = torch.tensor([len(tail) for tail in tails]).reshape(len(rows), branches)
        language = self._model.language_model
        begun = language.embed_tokens(prefix)
        pictures = (prefix == placeholder)[..., None].expand_as(begun)
        begun = begun.masked_scatter(pictures, merged)
        places = self._places(prefix[:1], placeholder, tokens, grid_hw, step_s)
        own = language.embed_tokens(ids).reshape(len(rows), branches, ids.shape[1], -1)
        _, states = read(language, begun, places.expand(-1, len(rows), -1), own, watched)
        if states is None:
            raise ValueError("no rows to read")
        if labels is None:
            return states, lengths, torch.empty(0)
        flat = [label[shared:] for group in labels for label in group]
        return states, lengths, padded(flat, NOT_LEARNT).reshape(len(rows), branches, -1)

    def _places(
        self,
        prefix: Tensor,
        placeholder: int,
        tokens: int,
        grid_hw: tuple[int, int],
        step_s: float,
    ) -> Tensor:
        """Return the (3, 1, P) rotary places of a beginning, as the library counts them."""
        steps = tokens // (grid_hw[0] // 2 * (grid_hw[1] // 2))
        places, _ = self._model.get_rope_index(
            prefix,
            mm_token_type_ids=(prefix == placeholder).int() * 2,
            video_grid_thw=torch.tensor([[steps, *grid_hw]]),
            second_per_grid_ts=torch.tensor([step_s]),
        )
        found: Tensor = places
        return found


def padded(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
    """Return rows of numbers as one tensor, filled up at the end."""
    return torch.tensor(list(zip(*itertools.zip_longest(*rows, fillvalue=filler), strict=True)))
