"""Models out of the house: what other engines need to rank as a model does, one file for each target."""
