"""S-kernels: learn how well documents match queries from preferences (Wu et al. 2011)."""
