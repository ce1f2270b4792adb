"""Headrace takes in analytics events and never loses one, and answers queries exactly."""

__version__ = "0.1.0"
