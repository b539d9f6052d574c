"""Exact and approximate search over images. It uses only arrays and maps, no models."""
