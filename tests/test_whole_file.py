"""A file is there whole or not at all."""

from pathlib import Path

import numpy as np
import pytest

from refinerank_core.whole_file import whole_file


def test_nothing_shows_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"

    with whole_file(path) as fresh:
        assert (fresh.parent, fresh.suffix) == (path.parent, ".npz")
        np.savez(fresh, a=np.arange(3))
        assert not path.exists()

    assert np.load(path)["a"].tolist() == [0, 1, 2]
    assert [one.name for one in path.parent.iterdir()] == ["data.npz"]


def write_half(path: Path) -> None:
    path.write_text("half", encoding="utf-8")
    raise RuntimeError("stopped")


def test_an_error_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    path = tmp_path / "told.txt"
    path.write_text("old", encoding="utf-8")

    with pytest.raises(RuntimeError, match="stopped"), whole_file(path) as fresh:
        write_half(fresh)

    assert path.read_text(encoding="utf-8") == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["told.txt"]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "told.txt"

    with whole_file(path) as one, whole_file(path) as other:
        assert one != other
        one.write_text("one", encoding="utf-8")
        other.write_text("other", encoding="utf-8")

    assert path.read_text(encoding="utf-8") == "one"  # the outer block ends last
