"""Who decides: a stated name, an account with a password, or a Hugging Face login.

Anyone may look. The token that a login gives is a secret of one browser; it ends with the server.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from threading import Lock
from typing import Literal

from refinerank_core.errors import RefineRankError
from refinerank_core.reviews.accounts import Accounts

Mode = Literal["open", "accounts", "hub"]

_TRIES = 5  # wrong passwords for one name before it has to wait
_WAIT_S = 30.0


class IdentityError(RefineRankError):
    """Nobody, or nobody who may decide."""


class Identity:
    """Tells names from claims. Safe to use from several threads."""

    def __init__(
        self,
        mode: Mode = "open",
        accounts: Accounts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without accounts, names are stated (open) or come from the Hub's login (hub)."""
        self.mode = mode
        self._accounts = accounts
        self._clock = clock
        self._lock = Lock()
        self._names: dict[str, str] = {}
        self._wrong: dict[str, tuple[int, float]] = {}

    def login(self, name: str, password: str) -> tuple[str, str]:
        """The name as the record will hold it, and a token that stands for it.

        Raises:
            IdentityError: a wrong name or password, or too many tries.
        """
        if self.mode != "accounts" or self._accounts is None:
            raise IdentityError("There are no passwords here. Reload the page.")
        name = " ".join(name.split())
        with self._lock:
            count, last = self._wrong.get(name, (0, 0.0))
            if count >= _TRIES and self._clock() - last < _WAIT_S:
                raise IdentityError(f"Too many wrong passwords. Wait {_WAIT_S:.0f} s, then retry.")
        if not self._accounts.admits(name, password):
            with self._lock:
                count = self._wrong.get(name, (0, 0.0))[0]
                self._wrong[name] = (count + 1, self._clock())
            raise IdentityError("This name and password do not belong together. Try again.")
        with self._lock:
            self._wrong.pop(name, None)
        return name, self.admit(name)

    def admit(self, name: str) -> str:
        """A token for a name that was proven elsewhere."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._names[token] = name
        return token

    def name_of(self, stated: str, token: str) -> str:
        """Who this is.

        Raises:
            IdentityError: nobody who may decide.
        """
        stated = " ".join(stated.split())
        if self.mode == "open":
            if not stated:
                raise IdentityError("Say who you are first: decisions carry a name.")
            return stated
        with self._lock:
            name = self._names.get(token, "")
        if not name:
            raise IdentityError("Log in to decide. Without a login you can look at everything.")
        if stated and stated != name:
            raise IdentityError(f"This was done by {stated}. Log in as {stated} to save it.")
        return name
