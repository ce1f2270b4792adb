"""A client for Headrace: events, web vitals and errors through an outbox, and queries."""

from headrace_client.asynchronous import AsyncHeadrace
from headrace_client.client import Headrace
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
from headrace_client.options import Stats
from headrace_client.queries import Result
from headrace_client.reporting import HeadraceHandler, report_uncaught

__all__ = [
    "AsyncHeadrace",
    "ClientClosed",
    "Headrace",
    "HeadraceClientError",
    "HeadraceHandler",
    "InvalidItem",
    "OutboxFull",
    "OutboxUnavailable",
    "QueryFailed",
    "QueryRefused",
    "QueryUnavailable",
    "RefusedItem",
    "Result",
    "Stats",
    "report_uncaught",
    "with_fields",
]

__version__ = "0.1.0"
