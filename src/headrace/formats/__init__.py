"""Data layouts that several layers share: Arrow streams, row ids and rollup columns."""
