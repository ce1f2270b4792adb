"""The days that a website and its tables keep rows."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; websites that exist keep rows as long as the service's default says."""
    op.add_column("websites", sa.Column("retention", sa.JSON, nullable=False, server_default="{}"))
