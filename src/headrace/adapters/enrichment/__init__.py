"""What an address and a User-Agent say about a visitor."""
