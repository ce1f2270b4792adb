"""Results: what a measurement is, the machine, the tables and the pages."""
