"""Files in and out: artifacts (GRAPH, MODEL), TREC runs and judgments, LISTS."""
