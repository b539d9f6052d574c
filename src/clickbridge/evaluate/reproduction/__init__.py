"""The papers' tables on data at hand, next to their own figures: one file per paper, by the registry of models."""
