"""From a request's body to a row in the store."""
