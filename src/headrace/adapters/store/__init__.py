"""The column stores: chDB within the engine process, or ClickHouse servers."""
