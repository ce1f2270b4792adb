"""The funnel use case: how many of those who took a first step took the next ones in time."""
