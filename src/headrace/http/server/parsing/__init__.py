"""From the bytes of a connection to requests: heads, the ends of bodies, and chunks."""
