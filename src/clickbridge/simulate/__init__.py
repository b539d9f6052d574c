"""Simulated logs. Wherever they are shown, they are called simulated."""
