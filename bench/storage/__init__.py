"""The event log, the ledger, Arrow streams and rollups by themselves."""
