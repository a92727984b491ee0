"""Who may decide in the Review tab where there are accounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.events import answered
from demo.identity import Identity, IdentityError
from refinerank_core.reviews.accounts import Accounts, hash_password
from tests.desks import Desk, action, samples, send
from tests.stores import case

__all__ = ["samples"]  # a fixture


def test_with_accounts_one_looks_without_and_decides_with_a_login(
    samples: Path, tmp_path: Path
) -> None:
    accounts = Accounts({"Dr A": hash_password("correct horse")})
    desk = Desk(samples, tmp_path / "reviews.db", Identity("accounts", accounts))
    other = case()
    desk.store.add([other], by="import")

    refused = send(desk, action(other.case_id))[0]
    told = desk.look.review_login({"name": "Dr A", "password": "correct horse"})
    stolen = send(desk, action(other.case_id, by="Dr B"), token=told["token"])[0]
    taken = send(desk, action(other.case_id), token=told["token"])[0]

    assert desk.look.review_queue({})["total"] == 1
    assert refused["login"]
    assert "Log in" in refused["error"]
    assert "Log in as Dr B" in stolen["error"]
    assert taken["ok"]
    assert "Log in" in answered(desk.files.review_fill)({"who": {"name": "Dr A"}})["error"]
    desk.close()


def test_wrong_passwords_have_to_wait() -> None:
    now = [0.0]
    accounts = Accounts({"Dr A": hash_password("correct horse")})
    identity = Identity("accounts", accounts, clock=lambda: now[0])
    for _ in range(5):
        with pytest.raises(IdentityError, match="do not belong"):
            identity.login("Dr A", "guess")

    with pytest.raises(IdentityError, match="Wait 30 s"):
        identity.login("Dr A", "correct horse")
    now[0] = 31.0

    assert identity.login("Dr A", "correct horse")[0] == "Dr A"
