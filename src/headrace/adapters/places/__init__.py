"""The data directory: what stands where, in which format, held by whom."""
