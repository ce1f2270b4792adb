"""Real servers for tests: ClickHouse with its Keeper, PostgreSQL, Valkey, and a network."""
