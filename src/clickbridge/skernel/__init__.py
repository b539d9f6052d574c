"""S-kernels: learning a similarity of queries and documents from preferences (Wu et al. 2011)."""
