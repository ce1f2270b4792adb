"""Results: measurements, the machine, the tables and the pages."""
