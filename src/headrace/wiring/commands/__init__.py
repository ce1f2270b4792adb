"""What commands are made of: one module for each thing that they do to a data directory."""
