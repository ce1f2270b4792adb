"""The documents' blocks run against a service of their own."""

from tests.e2e.conftest import own_service, service

__all__ = ["own_service", "service"]
