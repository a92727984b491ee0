"""Bring a database to the newest version, inside the caller's transaction."""

from pathlib import Path

import sqlalchemy as sa

from refinerank_core.errors import StoreError

NEWEST = "0001"
"""Revision of the last file in `migrations/versions`; a test holds it to that."""

MIGRATIONS = Path(__file__).resolve().parent / "migrations"


def bring_up_to_date(connection: sa.Connection, *, apply: bool) -> bool:
    """Tell whether the database is at the newest version, or bring it there.

    Args:
        connection: in a transaction; with apply, one that no other writer overlaps.
        apply: run what is missing.

    Returns:
        True when the database is at the newest version.

    Raises:
        StoreError: a newer program has written it.
    """
    current = _revision(connection)
    if current == NEWEST:
        return True
    if current is not None and current > NEWEST:
        raise StoreError(
            "The review database was written by a newer version of this program. Update it."
        )
    if apply:
        _upgrade(connection)
    return apply


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _upgrade(connection: sa.Connection) -> None:
    from alembic.config import Config  # a fifth of a second, needed once in a database's life
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    script = ScriptDirectory.from_config(config)

    def steps(revision: object, _: object) -> object:
        return script._upgrade_revs("head", revision)  # type: ignore[arg-type]

    with EnvironmentContext(config, script, fn=steps, destination_rev="head") as environment:
        environment.configure(connection=connection)
        environment.run_migrations()
