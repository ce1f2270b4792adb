"""The SQL that both stores speak: table layout, and how values are bound."""
