"""The tables of the directory in the newest schema; a test compares them with the migrations.

Every row has the `revision` that inserted it. Rows are ordered by it, because clocks go back.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

ORGANIZATIONS = Table(
    "organizations",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
)

WEBSITES = Table(
    "websites",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("domain", Text, nullable=False),
    Column(
        "organization_id",
        String(64),
        ForeignKey("organizations.id", ondelete="SET NULL"),
        nullable=True,
    ),
    Column("public", Boolean, nullable=False),
    Column("origins", JSON, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    # The days that the website and its tables have of their own, by name.
    Column("retention", JSON, nullable=False, server_default="{}"),
)

API_KEYS = Table(
    "api_keys",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("prefix", String(32), nullable=False),
    Column("secret_hash", LargeBinary(32), nullable=False),
    Column(
        "organization_id",
        String(64),
        ForeignKey("organizations.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("scopes", JSON, nullable=False),
    # No foreign keys to websites: a key that is limited to a website must stay limited to it when
    # the website is deleted. An empty list would give it all of the organization's websites.
    Column("website_ids", JSON, nullable=False),
    Column("home_website_id", String(64), nullable=True),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=True),
    Column("revoked_ms", BigInteger, nullable=True),
    Column("revision", BigInteger, nullable=False),
    # What `model.tenancy.KeyKind` has. A session of a key has the key as its parent.
    Column("kind", String(16), nullable=False, server_default="key"),
    Column("parent_id", String(64), nullable=True),
)

SIGN_IN_CODES = Table(
    "sign_in_codes",
    METADATA,
    Column("code_hash", LargeBinary(32), primary_key=True),
    Column(
        "organization_id",
        String(64),
        ForeignKey("organizations.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("scopes", JSON, nullable=False),
    Column("website_ids", JSON, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
)
"""Codes that begin a session. A row is deleted when its code is used."""

SAVED_QUERIES = Table(
    "saved_queries",
    METADATA,
    Column(
        "website_id", String(64), ForeignKey("websites.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("name", String(64), primary_key=True),
    # As it was sent. JSON columns would change numbers and the order of keys.
    Column("body", LargeBinary, nullable=False),
    Column("token_hash", LargeBinary(32), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
)

Index("ix_websites_organization_id", WEBSITES.c.organization_id)
Index("ix_api_keys_organization_id", API_KEYS.c.organization_id)
Index("ix_api_keys_secret_hash", API_KEYS.c.secret_hash, unique=True)
Index("ix_saved_queries_token_hash", SAVED_QUERIES.c.token_hash, unique=True)

AUDIT_LOG = Table(
    "audit_log",
    METADATA,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("id", String(64), nullable=False),
    Column("time_ms", BigInteger, nullable=False),
    Column("author", Text, nullable=False),
    Column("action", String(64), nullable=False),
    Column("object_id", Text, nullable=True),
    Column("object_before", JSON(none_as_null=True), nullable=True),
    Column("object_after", JSON(none_as_null=True), nullable=True),
    # No foreign keys: a line remains when what it is about is deleted.
    Column("organization_id", String(64), nullable=True),
    Column("website_ids", JSON, nullable=False),
    # The first of these: a key that is limited to websites reaches no line with another one.
    Column("website_id", String(64), nullable=True),
)
"""Lines are never deleted. Erasing a website takes its name out of its lines."""

Index("ix_audit_log_id", AUDIT_LOG.c.id, unique=True)
Index("ix_audit_log_object_id", AUDIT_LOG.c.object_id)
Index("ix_audit_log_organization_id", AUDIT_LOG.c.organization_id, AUDIT_LOG.c.sequence)
Index("ix_audit_log_website_id", AUDIT_LOG.c.website_id, AUDIT_LOG.c.sequence)

ERASURE_KEY = Table(
    "erasure_key",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", LargeBinary(32), nullable=False),
)
"""One row, from the first machine that joined."""

MACHINES = Table(
    "machines",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("first_seen_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
)

ERASURES = Table(
    "erasures",
    METADATA,
    Column("id", String(64), primary_key=True),
    # No foreign key: an erasure remains when its website is deleted.
    Column("website_id", String(64), nullable=False),
    Column("kind", String(32), nullable=False),
    # Lists of kind and digest: no identifier.
    Column("subjects", JSON, nullable=False),
    Column("author", Text, nullable=False),
    Column("requested_ms", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
)

ERASURE_PARTS = Table(
    "erasure_parts",
    METADATA,
    Column(
        "erasure_id", String(64), ForeignKey("erasures.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("machine_id", String(64), primary_key=True),
    Column("clean_ms", BigInteger, nullable=False),
    Column("done_ms", BigInteger, nullable=False),
    Column("rows", JSON, nullable=False),
)
"""How far each machine is with each erasure."""

DIRECTORY_REVISION = Table(
    "directory_revision",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
)
"""One row. Every write transaction updates it first, which serializes them."""

VISITOR_SALTS = Table(
    "visitor_salts",
    METADATA,
    Column("day", String(10), primary_key=True),
    Column("salt", LargeBinary(32), nullable=False),
)
