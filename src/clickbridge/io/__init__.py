"""Reads and writes files: artifacts (GRAPH, MODEL), TREC runs and judgments, LISTS."""
