"""The store on ClickHouse servers, alone or as a cluster."""
