"""Reviewers with passwords: one file, a name and a salted hash on each line."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from refinerank_core.errors import StoreError
from refinerank_core.whole_file import whole_file

SHORTEST_PASSWORD = 8
_COST, _BLOCK, _LANES = 2**14, 8, 1  # scrypt: 16 MiB and some 50 ms for each guess
_SCHEME = "scrypt"


def hash_password(password: str, salt: bytes | None = None) -> str:
    """A password as "scrypt$salt$hash", both in hex; without a salt a new one is drawn."""
    salt = salt or secrets.token_bytes(16)
    digest = hashlib.scrypt(
        password.encode(), salt=salt, n=_COST, r=_BLOCK, p=_LANES, maxmem=2**26, dklen=32
    )
    return f"{_SCHEME}${salt.hex()}${digest.hex()}"


@dataclass(frozen=True)
class Accounts:
    """The reviewers that a file names; hashes maps a name to its password's hash."""

    hashes: Mapping[str, str]

    @classmethod
    def load(cls, path: Path) -> "Accounts":
        """Read a file that `add_account` wrote.

        Raises:
            StoreError: the file is absent, or a line of it is no account.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{path.name}: cannot be read. Make it with `reviews account`."
            ) from error
        hashes: dict[str, str] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            name, _, stored = line.rpartition("\t")
            if not name or not _is_hash(stored):
                raise StoreError(f"{path.name}: line {number} is no account. Make it anew.")
            hashes[name] = stored
        if not hashes:
            raise StoreError(f"{path.name}: holds no account. Add one with `reviews account`.")
        return cls(hashes)

    def admits(self, name: str, password: str) -> bool:
        """Whether this is the name's password. An unknown name takes as long as a known one."""
        stored = self.hashes.get(name, hash_password("", b"\0" * 16))
        salt = bytes.fromhex(stored.split("$")[1])
        same = hmac.compare_digest(hash_password(password, salt), stored)
        return same and name in self.hashes


def add_account(path: Path, name: str, password: str) -> None:
    """Add a reviewer to the file, or give a known one another password.

    Raises:
        StoreError: a name or password that cannot be, or the file cannot be written.
    """
    name = " ".join(name.split())
    if not name or len(name) > 200:
        raise StoreError("A reviewer needs a name of 1 to 200 characters.")
    if len(password) < SHORTEST_PASSWORD:
        raise StoreError(f"The password needs at least {SHORTEST_PASSWORD} characters.")
    hashes = dict(Accounts.load(path).hashes) if path.exists() else {}
    hashes[name] = hash_password(password)
    lines = "".join(f"{who}\t{what}\n" for who, what in hashes.items())
    try:
        with whole_file(path) as fresh:
            fresh.touch(mode=0o600)
            fresh.write_text(lines, "utf-8")
    except OSError as error:
        raise StoreError(f"{path.name}: cannot be written. Choose a folder of your own.") from error


def _is_hash(text: str) -> bool:
    parts = text.split("$")
    if len(parts) != 3 or parts[0] != _SCHEME:
        return False
    try:
        return len(bytes.fromhex(parts[1])) == 16 and len(bytes.fromhex(parts[2])) == 32
    except ValueError:
        return False
