"""The SQL of compiled queries, as the service and the command line show it."""

from headrace.adapters.store.dialect.sql_text import write_sql

__all__ = ["write_sql"]
