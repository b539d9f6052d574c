"""Where the heavy work of learning runs: one protocol, one file for each home."""
