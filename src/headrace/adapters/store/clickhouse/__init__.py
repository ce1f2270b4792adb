"""The store on ClickHouse servers."""
