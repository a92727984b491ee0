"""Reviewers with passwords: only hashes are kept, and only the right password opens."""

import io
from pathlib import Path

import pytest

from refinerank_core.__main__ import main
from refinerank_core.errors import StoreError
from refinerank_core.reviews.accounts import Accounts, add_account, hash_password


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "reviewers.txt"
    add_account(path, "Dr  Ada ", "correct horse")
    add_account(path, "Dr B", "battery staple")
    return path


def test_only_the_right_password_is_admitted(file: Path) -> None:
    accounts = Accounts.load(file)

    assert accounts.admits("Dr Ada", "correct horse")
    assert not accounts.admits("Dr Ada", "battery staple")
    assert not accounts.admits("Dr C", "correct horse")
    assert not accounts.admits("Dr C", "")


def test_the_file_holds_no_password_and_is_its_owners(file: Path) -> None:
    text = file.read_text()

    assert "horse" not in text
    assert file.stat().st_mode & 0o077 == 0


def test_the_same_password_is_hashed_differently_each_time() -> None:
    assert hash_password("correct horse") != hash_password("correct horse")


def test_a_new_password_replaces_the_old_one(file: Path) -> None:
    add_account(file, "Dr B", "another one")

    accounts = Accounts.load(file)
    assert len(accounts.hashes) == 2
    assert accounts.admits("Dr B", "another one")
    assert not accounts.admits("Dr B", "battery staple")


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "holds no account"), ("Dr A\tsecret\n", "line 1 is no account"), (None, "be read")],
)
def test_a_file_of_another_kind_is_one_sentence(
    tmp_path: Path, content: str | None, words: str
) -> None:
    path = tmp_path / "reviewers.txt"
    if content is not None:
        path.write_text(content)

    with pytest.raises(StoreError, match=words):
        Accounts.load(path)


def test_a_short_password_or_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="8 characters"):
        add_account(tmp_path / "reviewers.txt", "Dr A", "short")
    with pytest.raises(StoreError, match="needs a name"):
        add_account(tmp_path / "reviewers.txt", "  ", "long enough")


def test_the_command_reads_the_password_from_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reviewers.txt"
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe\n"))

    assert main(["reviews", "account", str(path), "Dr A"]) == 0
    assert Accounts.load(path).admits("Dr A", "from a pipe")
