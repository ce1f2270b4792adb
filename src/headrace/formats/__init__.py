"""How data is laid out between processes and stores: what both sides of a border must agree on."""
