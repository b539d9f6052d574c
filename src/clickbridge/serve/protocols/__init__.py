"""Protocols that existing clients speak already, one file each, over the same models and the same store."""
