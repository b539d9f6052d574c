"""The online learner: a linear ranking function over co-occurrence on result pages that learns from every click."""
