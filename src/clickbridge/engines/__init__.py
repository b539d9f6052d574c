"""Engines: where the heavy work of learning runs. One protocol, and one file for each engine."""
