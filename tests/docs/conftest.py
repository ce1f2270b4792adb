"""Starts the service that the code blocks of the documents run against."""

from tests.e2e.conftest import dedicated_service, service

__all__ = ["dedicated_service", "service"]
