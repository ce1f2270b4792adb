"""Scheduling of selects: fair slots for websites, coalescing of equal selects, cached results."""
