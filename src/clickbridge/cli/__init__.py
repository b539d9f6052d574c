"""The command line: one file for each group of verbs."""

import logging

# The verbs say themselves what the library logs.
logging.getLogger("clickbridge").addHandler(logging.NullHandler())
