"""Many drawn queries over many drawn data sets, compared with the oracle in several processes."""
