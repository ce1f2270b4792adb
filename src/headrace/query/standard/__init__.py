"""The standard queries: what a dashboard asks for, in one request, by the names of its parts."""
