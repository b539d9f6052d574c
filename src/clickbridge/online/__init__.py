"""The online learner: a linear ranking function on diffused co-occurrence that learns from every click."""
