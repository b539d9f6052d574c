"""Compiled loops: arrays in, arrays out. They know nothing of queries or documents."""
