"""The only place that picks implementations: one module for each process, dull and complete."""
