"""Text and clicks into features, the same code for both sides."""
