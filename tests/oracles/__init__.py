"""Slow, obvious second witnesses: dictionaries and loops, written from the formulas alone."""
