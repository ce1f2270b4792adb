"""The retention use case: cohorts by their first event, and how many of each came back when."""
