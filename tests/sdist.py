"""Whether the tests run in an sdist, and which files MANIFEST.in leaves out of one."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IN_SDIST = (ROOT / "PKG-INFO").is_file()
WITHOUT_PICTURES = "the sdist has no screenshots and no pictures of docs/reproduction"


def is_left_out(path: Path) -> bool:
    """Whether a file that a page shows is missing because this is an sdist."""
    return IN_SDIST and (
        path.is_relative_to(ROOT / "docs/screenshots")
        or (path.is_relative_to(ROOT / "docs/reproduction") and path.suffix == ".svg")
    )
