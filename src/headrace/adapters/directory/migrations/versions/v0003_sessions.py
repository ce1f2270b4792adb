"""Sessions of the page, which are keys of another kind, and the codes that begin them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table; keys that exist are of the first kind."""
    op.add_column(
        "api_keys", sa.Column("kind", sa.String(16), nullable=False, server_default="key")
    )
    op.add_column("api_keys", sa.Column("parent_id", sa.String(64), nullable=True))
    op.create_table(
        "sign_in_codes",
        sa.Column("code_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("organization_id", sa.String(64), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("website_ids", sa.JSON, nullable=False),
        sa.Column("expires_ms", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("code_hash", name="pk_sign_in_codes"),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name="fk_sign_in_codes_organization_id",
            ondelete="CASCADE",
        ),
    )
