"""What a click log says to people: words that mean the same, searches that fail."""
