"""Exact search over document images: arrays and maps only, never a model."""
