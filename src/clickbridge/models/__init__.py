"""The models: S-functions (two maps and a dot product) and what is not one."""
