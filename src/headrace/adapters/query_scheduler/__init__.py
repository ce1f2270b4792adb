"""Which selects run: fair turns for websites, coalescing of equal selects, cached results."""
