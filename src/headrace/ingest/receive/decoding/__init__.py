"""From the bytes of a body to valid wire structs, or to the list of all errors of its fields."""
