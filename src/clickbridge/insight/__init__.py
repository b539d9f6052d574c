"""What people can learn from a click log: words with the same meaning, searches that fail."""
