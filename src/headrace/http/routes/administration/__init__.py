"""/v1/admin: organizations, websites, keys, the quarantine and the audit log."""
