"""What a client's address and its User-Agent tell."""
