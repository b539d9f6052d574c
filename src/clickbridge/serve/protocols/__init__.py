"""Protocols of existing clients, one file each. They use the same models and the same store."""
