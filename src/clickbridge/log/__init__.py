"""Reads raw click logs and makes clean records."""
