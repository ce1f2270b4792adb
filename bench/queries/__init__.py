"""What queries cost."""
