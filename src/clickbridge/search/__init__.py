"""Search over images, exact and approximate: arrays and maps only, never a model."""
