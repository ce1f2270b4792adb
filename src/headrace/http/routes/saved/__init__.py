"""/v1/saved: saves, lists, shows and deletes queries, and answers them in five formats."""
