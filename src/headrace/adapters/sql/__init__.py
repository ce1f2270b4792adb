"""The SQL that both stores speak: how rows are laid out, and how values are bound."""
