"""The page for people: ES modules that ask the public API, as they are in the repository."""
