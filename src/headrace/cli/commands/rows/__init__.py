"""Commands for stored rows: taking them out and in, erasing them, and what they occupy."""
