"""Erasures that the machines of this directory share, and the machines themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "erasure_key",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_erasure_key"),
    )
    op.create_table(
        "machines",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("first_seen_ms", sa.BigInteger, nullable=False),
        sa.Column("seen_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_machines"),
    )
    op.create_table(
        "erasures",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("website_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("subjects", sa.JSON, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("requested_ms", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_erasures"),
    )
    op.create_table(
        "erasure_parts",
        sa.Column("erasure_id", sa.String(64), nullable=False),
        sa.Column("machine_id", sa.String(64), nullable=False),
        sa.Column("clean_ms", sa.BigInteger, nullable=False),
        sa.Column("done_ms", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("erasure_id", "machine_id", name="pk_erasure_parts"),
        sa.ForeignKeyConstraint(
            ["erasure_id"],
            ["erasures.id"],
            name="fk_erasure_parts_erasure_id",
            ondelete="CASCADE",
        ),
    )
