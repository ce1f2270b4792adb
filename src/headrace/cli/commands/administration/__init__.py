"""Commands for who owns what: organizations, websites, keys, the audit log, and signing in."""
