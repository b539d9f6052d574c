"""Access control: keys with scopes, and rate limits.

A key file has one key per line, followed by its scopes; `#` starts a comment:

    s3cr3t-of-the-shop   rank,feedback
    s3cr3t-of-the-admin  rank,feedback,admin
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from clickbridge.errors import InputError
from clickbridge.serve.refusals import Refused

SCOPES = ("rank", "feedback", "admin")
SHORTEST = 16
"""The fewest characters of a key. Shorter keys could be guessed."""
MOST_CALLERS = 10_000
"""The number of callers whose rate is tracked. Beyond this, the one with the oldest last request is dropped."""


@dataclass(frozen=True, slots=True)
class Key:
    digest: bytes
    scopes: frozenset[str]


class Keys:
    """The keys of a file. Without a file, everybody may do everything."""

    def __init__(self, path: str | None) -> None:
        self._keys = None if path is None else read_keys(Path(path))

    def check(self, given: str | None, scope: str) -> str | None:
        """Refuses a caller without the scope. Returns a name for its key that does not reveal the key."""
        if self._keys is None:
            return None
        asked = hashlib.sha256((given or "").encode()).digest()
        # All keys are compared, each in constant time, so that the time reveals nothing about them.
        found = None
        for key in self._keys:
            if hmac.compare_digest(asked, key.digest):
                found = key
        if given is None or found is None:
            challenge = {"WWW-Authenticate": "Bearer"}
            raise Refused(401, "unauthorized", "a valid key is needed: Authorization: Bearer KEY", headers=challenge)
        if scope not in found.scopes:
            raise Refused(403, "forbidden", f"the key has no scope {scope!r}")
        return asked.hex()[:12]


def read_keys(path: Path) -> list[Key]:
    out = []
    try:
        lines = path.read_text(encoding="utf8").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        scopes = frozenset(words[1].split(",")) if len(words) == 2 else frozenset()
        if not scopes or not scopes <= {*SCOPES}:
            raise InputError(f"{path}, line {number}: a line is KEY SCOPES, with scopes of {','.join(SCOPES)}")
        if len(words[0]) < SHORTEST:
            raise InputError(f"{path}, line {number}: a key has at least {SHORTEST} characters")
        out.append(Key(hashlib.sha256(words[0].encode()).digest(), scopes))
    if not out:
        raise InputError(f"{path} holds no key: write one per line, such as KEY rank,feedback")
    return out


class Rates:
    """Limits the requests per second of each caller, with bursts of up to two seconds' worth."""

    def __init__(self, rate: float) -> None:
        self.rate, self.burst = rate, max(2 * rate, 1.0)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, caller: str) -> None:
        if not self.rate:
            return
        now = time.monotonic()
        left, since = self._left.pop(caller, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        self._left[caller] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)
        if left < 1:
            wait = max(1, round((1 - left) / self.rate))
            message = f"more than {self.rate:g} requests per second: try again later"
            raise Refused(429, "too_many_requests", message, headers={"Retry-After": str(wait)})
