"""The service: ranking, search and learning over HTTP. The web framework is imported nowhere else."""
