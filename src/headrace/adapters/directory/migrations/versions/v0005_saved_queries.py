"""Saved queries, which end with their website."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "saved_queries",
        sa.Column("website_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("token_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_ms", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("website_id", "name", name="pk_saved_queries"),
        sa.ForeignKeyConstraint(
            ["website_id"],
            ["websites.id"],
            name="fk_saved_queries_website_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_saved_queries_token_hash", "saved_queries", ["token_hash"], unique=True)
