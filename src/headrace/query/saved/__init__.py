"""Saved queries: custom queries under a name, whose unchanged answer costs no select."""
