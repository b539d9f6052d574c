"""Compiled loops and the solvers built on them: arrays in, arrays out. They know nothing of queries or documents."""
