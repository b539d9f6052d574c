"""Several models into one ranking."""
