"""Real servers for tests: ClickHouse, its Keeper, PostgreSQL, Valkey, and a network between them."""
