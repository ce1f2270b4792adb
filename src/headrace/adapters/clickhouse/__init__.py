"""The column store on servers of ClickHouse, one or a cluster."""
