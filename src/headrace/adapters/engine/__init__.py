"""The engine process: it loads the logs, and answers the workers over a local socket."""
