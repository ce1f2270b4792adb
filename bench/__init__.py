"""Measurements; each prints its figures and what they were measured on."""
