"""The baselines that Headrace is compared with."""
