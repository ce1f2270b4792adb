"""What it costs to take events in."""
