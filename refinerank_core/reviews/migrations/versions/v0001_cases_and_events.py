"""The first version: cases, the record of events, and the tables folded from it."""

import uuid

import sqlalchemy as sa
from alembic import op

from refinerank_core.errors import RefineRankError

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Build the tables and give the database the identity that its hash chain starts from."""
    meta = op.create_table(
        "meta",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.bulk_insert(meta, [{"name": "database_id", "value": str(uuid.uuid4())}])
    op.create_table(
        "groundings",
        sa.Column("grounding_id", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    _create_cases()
    _create_events()
    _create_folded()


def _create_cases() -> None:
    op.create_table(
        "cases",
        sa.Column("case_id", sa.String(64), primary_key=True),
        sa.Column("video_sha256", sa.String(64), nullable=False),
        sa.Column("video_name", sa.Text, nullable=False),
        sa.Column("video_stem", sa.Text, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("requested_s", sa.Float),
        sa.Column("frame_index", sa.Integer),
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("procedure", sa.Text, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("margin", sa.Float),
        sa.Column("disagreement", sa.Float),
        sa.Column("content", sa.Text, nullable=False),
    )
    for name in ("video_stem", "dataset", "procedure", "method", "margin", "disagreement"):
        op.create_index(f"ix_cases_{name}", "cases", [name])


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("client_id", sa.String(100), nullable=False, unique=True),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("case_id", sa.String(64), sa.ForeignKey("cases.case_id"), nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("based_on", sa.Integer),
        sa.Column("version", sa.Integer),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("prev", sa.String(64), nullable=False, unique=True),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.UniqueConstraint("case_id", "version", name="uq_events_case_version"),
    )
    op.create_index("ix_events_case", "events", ["case_id", "seq"])
    op.create_index("ix_events_reviewer", "events", ["reviewer", "kind", "at"])


def _create_folded() -> None:
    case_id = sa.ForeignKey("cases.case_id")
    op.create_table(
        "case_states",
        sa.Column("case_id", sa.String(64), case_id, primary_key=True),
        sa.Column("imported_seq", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("last_seq", sa.Integer, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("assigned_to", sa.Text, nullable=False),
        sa.Column("decided_at", sa.String(32)),
        sa.Column("conflicts", sa.Integer, nullable=False),
        sa.Column("iou", sa.Float),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_index("ix_states_imported", "case_states", ["imported_seq"])
    op.create_index("ix_states_status", "case_states", ["status", "imported_seq"])
    op.create_index("ix_states_assigned", "case_states", ["assigned_to", "status"])
    op.create_index("ix_states_decided", "case_states", ["decided_at"])
    op.create_index("ix_states_iou", "case_states", ["iou"])
    op.create_table(
        "case_tags",
        sa.Column("case_id", sa.String(64), sa.ForeignKey("cases.case_id"), primary_key=True),
        sa.Column("tag", sa.String(64), primary_key=True),
    )
    op.create_index("ix_tags_tag", "case_tags", ["tag"])
    op.create_table(
        "opinions",
        sa.Column("case_id", sa.String(64), sa.ForeignKey("cases.case_id"), primary_key=True),
        sa.Column("reviewer", sa.Text, primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("decision", sa.String(20), nullable=False),
        sa.Column("opinion", sa.Text, nullable=False),
    )
    op.create_index("ix_opinions_reviewer", "opinions", ["reviewer"])


def downgrade() -> None:
    """There is nothing before the first version."""
    raise RefineRankError("The first version cannot be taken back without losing reviews.")
