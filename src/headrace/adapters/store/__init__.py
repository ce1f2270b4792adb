"""The column stores: chDB in the engine process, or ClickHouse servers."""
