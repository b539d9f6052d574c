"""Reproduces the papers' tables on available data, next to the published figures: one file per paper."""
