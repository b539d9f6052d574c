"""Combines several models into one ranking."""
