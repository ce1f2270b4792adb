"""The documents' blocks run against a service of their own."""

from tests.e2e.conftest import dedicated_service, service

__all__ = ["dedicated_service", "service"]
