"""Several machines before ClickHouse, PostgreSQL and Valkey."""
