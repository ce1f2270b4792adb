"""Real servers for tests: ClickHouse and Keeper, PostgreSQL, Valkey, WordPress, a network."""
