"""What Headrace is compared with."""
