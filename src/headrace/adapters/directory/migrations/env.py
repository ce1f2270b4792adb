"""Runs the migrations on the connection of `adapters.directory.schema`; Alembic executes it."""

from alembic import context

from headrace.adapters.directory.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
