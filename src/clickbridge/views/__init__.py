"""Turns text and clicks into features, with the same code for queries and documents."""
