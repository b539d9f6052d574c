"""The secret of a GRAPH, by which its users are hashed.

Who has a log knows its users; who has a GRAPH must not learn them by trying ids. A hash under a key that only the
owner of the GRAPH can read does that, and still tells two users apart.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field

SIZE = 32


@dataclass(frozen=True)
class Secret:
    """A key of BLAKE2b. An empty one is that of a GRAPH from before there were keys, or of one without users."""

    key: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if len(self.key) not in (0, SIZE):
            raise ValueError(f"a secret has {SIZE} bytes, not {len(self.key)}")

    @classmethod
    def new(cls) -> Secret:
        return cls(os.urandom(SIZE))

    def __bool__(self) -> bool:
        return bool(self.key)

    def user(self, name: str) -> int:
        """64 bits that stand for a user; 0 is kept for 'unknown'."""
        text = name.encode("utf8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=self.key).digest(), "little") or 1

    @property
    def id(self) -> str:
        """Tells secrets apart without giving one away."""
        return hashlib.sha256(b"id of a secret" + self.key).hexdigest()[:12] if self.key else ""
