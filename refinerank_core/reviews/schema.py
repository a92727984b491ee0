"""Tables of the review store. `migrations/` builds them; a test holds the two together."""

from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()

META = Table(
    "meta",
    METADATA,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
)

GROUNDINGS = Table(
    "groundings",
    METADATA,
    Column("grounding_id", String(64), primary_key=True),
    Column("body", Text, nullable=False),
)

CASES = Table(
    "cases",
    METADATA,
    Column("case_id", String(64), primary_key=True),
    Column("video_sha256", String(64), nullable=False),
    Column("video_name", Text, nullable=False),
    Column("video_stem", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("requested_s", Float),
    Column("frame_index", Integer),
    Column("dataset", Text, nullable=False),
    Column("procedure", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("margin", Float),
    Column("disagreement", Float),
    Column("content", Text, nullable=False),
    Index("ix_cases_video_stem", "video_stem"),
    Index("ix_cases_dataset", "dataset"),
    Index("ix_cases_procedure", "procedure"),
    Index("ix_cases_method", "method"),
    Index("ix_cases_margin", "margin"),
    Index("ix_cases_disagreement", "disagreement"),
)

EVENTS = Table(
    "events",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("client_id", String(100), nullable=False, unique=True),
    Column("at", String(32), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("case_id", String(64), ForeignKey("cases.case_id"), nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("based_on", Integer),
    Column("version", Integer),
    Column("body", Text, nullable=False),
    Column("prev", String(64), nullable=False, unique=True),
    Column("hash", String(64), nullable=False, unique=True),
    UniqueConstraint("case_id", "version", name="uq_events_case_version"),
    Index("ix_events_case", "case_id", "seq"),
    Index("ix_events_reviewer", "reviewer", "kind", "at"),
)
"""The record. The other tables but cases and groundings can be rebuilt from it."""

CASE_STATES = Table(
    "case_states",
    METADATA,
    Column("case_id", String(64), ForeignKey("cases.case_id"), primary_key=True),
    Column("imported_seq", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("status", String(20), nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("assigned_to", Text, nullable=False),
    Column("decided_at", String(32)),
    Column("conflicts", Integer, nullable=False),
    Column("iou", Float),
    Column("state", Text, nullable=False),
    Index("ix_states_imported", "imported_seq"),
    Index("ix_states_status", "status", "imported_seq"),
    Index("ix_states_assigned", "assigned_to", "status"),
    Index("ix_states_decided", "decided_at"),
    Index("ix_states_iou", "iou"),
)

CASE_TAGS = Table(
    "case_tags",
    METADATA,
    Column("case_id", String(64), ForeignKey("cases.case_id"), primary_key=True),
    Column("tag", String(64), primary_key=True),
    Index("ix_tags_tag", "tag"),
)

OPINIONS = Table(
    "opinions",
    METADATA,
    Column("case_id", String(64), ForeignKey("cases.case_id"), primary_key=True),
    Column("reviewer", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("decision", String(20), nullable=False),
    Column("opinion", Text, nullable=False),
    Index("ix_opinions_reviewer", "reviewer"),
)
