"""From a query request to rows."""
