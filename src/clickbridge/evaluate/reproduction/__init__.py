"""The papers' tables on data at hand, their own figures beside: one file a paper, driven by the registry of models."""
