"""Raw click logs in, clean records out."""
