"""The click graph: everything a log said, unthresholded."""
