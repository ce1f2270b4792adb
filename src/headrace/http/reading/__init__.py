"""What is read of a request before its use case runs: body, credentials, address, origin."""
