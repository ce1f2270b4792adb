"""The audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table. Changes that were made before it existed have no line."""
    op.create_table(
        "audit_log",
        sa.Column("sequence", sa.BigInteger, autoincrement=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("time_ms", sa.BigInteger, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("object_id", sa.Text, nullable=True),
        sa.Column("object_before", sa.JSON, nullable=True),
        sa.Column("object_after", sa.JSON, nullable=True),
        sa.Column("organization_id", sa.String(64), nullable=True),
        sa.Column("website_ids", sa.JSON, nullable=False),
        sa.Column("website_id", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("sequence", name="pk_audit_log"),
    )
    op.create_index("ix_audit_log_id", "audit_log", ["id"], unique=True)
    op.create_index("ix_audit_log_object_id", "audit_log", ["object_id"])
    op.create_index("ix_audit_log_organization_id", "audit_log", ["organization_id", "sequence"])
    op.create_index("ix_audit_log_website_id", "audit_log", ["website_id", "sequence"])
