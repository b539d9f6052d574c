"""Exports models to other search engines, so that they rank like the model. One file for each target."""
