"""The crash test of the browser tracker: faults of network, service, tabs and storage."""
