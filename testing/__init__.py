"""Real servers, services and fixtures that tests, bench and chaos share."""
