"""A client for Headrace: events, web vitals and errors through an outbox, and queries."""

from headrace_client.client import Headrace, Stats
from headrace_client.context import with_fields
from headrace_client.delivery.outbox import RefusedItem
from headrace_client.errors import (
    ClientClosed,
    HeadraceClientError,
    InvalidItem,
    OutboxFull,
    OutboxUnavailable,
    QueryFailed,
    QueryRefused,
    QueryUnavailable,
)
from headrace_client.queries import Result

__all__ = [
    "ClientClosed",
    "Headrace",
    "HeadraceClientError",
    "InvalidItem",
    "OutboxFull",
    "OutboxUnavailable",
    "QueryFailed",
    "QueryRefused",
    "QueryUnavailable",
    "RefusedItem",
    "Result",
    "Stats",
    "with_fields",
]

__version__ = "0.1.0"
