"""Logs that were never logged: always called simulated where they are shown."""
