"""The limits of a request. Every input has one, so that no request can bring the service down."""

MAX_BODY = 2 << 20
"""Bytes of a body."""
DRAINED = 16 << 20
"""A longer body is read and dropped up to this size, so that the client receives the reason."""
MAX_EVENTS = 1_000
MAX_DOCUMENTS = 1_000
MAX_REQUESTS = 100
"""Lists in one batch of `/rank`; together they have at most `MAX_BATCH` documents."""
MAX_BATCH = 10_000
MAX_K = 1_000
MAX_TEXT = 100_000
"""Characters of one field of a document."""
MAX_FIELDS = 50
MAX_ID = 512
MAX_INPUTS = 512
"""Texts in one request for embeddings."""
MAX_NUMBERS = 4_000_000
"""Numbers in one answer with embeddings."""
