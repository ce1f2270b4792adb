"""The first tables.

A migration repeats the definitions instead of importing them: `tables.py` changes later.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, and the row of the revision."""
    _create_organizations()
    _create_websites()
    _create_api_keys()
    counter = op.create_table(
        "directory_revision",
        sa.Column("id", sa.Integer, autoincrement=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_directory_revision"),
    )
    op.bulk_insert(counter, [{"id": 1, "revision": 0}])
    op.create_table(
        "visitor_salts",
        sa.Column("day", sa.String(10)),
        sa.Column("salt", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("day", name="pk_visitor_salts"),
    )


def _create_organizations() -> None:
    op.create_table(
        "organizations",
        sa.Column("id", sa.String(64)),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_organizations"),
    )


def _create_websites() -> None:
    op.create_table(
        "websites",
        sa.Column("id", sa.String(64)),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("domain", sa.Text, nullable=False),
        sa.Column("organization_id", sa.String(64), nullable=True),
        sa.Column("public", sa.Boolean, nullable=False),
        sa.Column("origins", sa.JSON, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_websites"),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name="fk_websites_organization_id",
            ondelete="SET NULL",
        ),
    )
    op.create_index("ix_websites_organization_id", "websites", ["organization_id"])


def _create_api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(64)),
        sa.Column("prefix", sa.String(32), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("organization_id", sa.String(64), nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("website_ids", sa.JSON, nullable=False),
        sa.Column("home_website_id", sa.String(64), nullable=True),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_ms", sa.BigInteger, nullable=True),
        sa.Column("revoked_ms", sa.BigInteger, nullable=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name="fk_api_keys_organization_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_api_keys_organization_id", "api_keys", ["organization_id"])
    op.create_index("ix_api_keys_secret_hash", "api_keys", ["secret_hash"], unique=True)
