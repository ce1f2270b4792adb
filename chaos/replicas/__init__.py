"""The crash test on replicated ClickHouse servers: cut and slowed links, and kills."""
