"""The engine process: loads the logs into the store and serves the workers over a Unix socket."""
