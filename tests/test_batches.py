"""Groups that fit the memory, and what happens when it runs out."""

from collections.abc import Sequence

import pytest
import torch

from refinerank_core.errors import ModelError
from refinerank_core.models.batches import Batches


class FakeCard:
    """A card on which every item takes `each` bytes of `total`."""

    def __init__(self, total: int, each: int) -> None:
        self.total, self.each, self.sizes = total, each, list[int]()

    def job(self, group: Sequence[int]) -> list[int]:
        if len(group) * self.each > self.total:
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.sizes.append(len(group))
        return [10 * item for item in group]

    def start(self) -> None:
        pass

    def peak_bytes(self) -> int:
        return self.sizes[-1] * self.each

    def free_bytes(self) -> int:
        return self.total

    def give_back(self) -> None:
        pass


def test_a_fixed_size_makes_groups_of_it() -> None:
    card = FakeCard(total=100, each=1)
    batches = Batches(3, card, what="frames")

    found = batches.run(range(7), card.job)

    assert found == [0, 10, 20, 30, 40, 50, 60]
    assert card.sizes == [3, 3, 1]
    assert batches.take_notes() == ()


def test_when_memory_runs_out_the_group_is_halved_and_a_note_says_so() -> None:
    card = FakeCard(total=3, each=1)
    batches = Batches(8, card, what="frames")

    found = batches.run(range(10), card.job)

    assert found == [10 * item for item in range(10)]
    assert card.sizes == [2, 2, 2, 2, 2]
    notes = batches.take_notes()
    assert [note.split(",")[0] for note in notes] == [
        "Memory ran out with 8 frames at once: went on with 4",
        "Memory ran out with 4 frames at once: went on with 2",
    ]
    assert batches.take_notes() == ()


def test_the_smaller_size_is_kept_for_the_next_call() -> None:
    card = FakeCard(total=3, each=1)
    batches = Batches(8, card, what="frames")
    batches.run(range(4), card.job)
    batches.take_notes()

    batches.run(range(4), card.job)

    assert batches.take_notes() == ()


def test_one_item_that_does_not_fit_is_an_error_that_says_what_helps() -> None:
    card = FakeCard(total=1, each=2)

    with pytest.raises(ModelError, match=r"too little memory .* smaller medvlm\.max_pixels"):
        Batches(4, card, what="frames").run(range(4), card.job)


def test_without_a_size_one_item_is_measured_and_the_next_groups_fill_the_memory() -> None:
    card = FakeCard(total=50, each=10)
    batches = Batches(None, card, what="frames")

    batches.run(range(9), card.job)

    assert card.sizes == [1, 4, 4]  # four fifths of 50 bytes hold four items of 10


def test_where_memory_is_not_measured_groups_have_eight_items() -> None:
    card = FakeCard(total=100, each=1)

    Batches(None, None, what="frames").run(range(9), card.job)

    assert card.sizes == [8, 1]


def test_no_items_give_no_results() -> None:
    card = FakeCard(total=1, each=1)

    assert Batches(None, card, what="frames").run([], card.job) == []
