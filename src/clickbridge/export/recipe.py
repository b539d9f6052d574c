"""The README of an export: its files, the commands to use them, and how exact its scores are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Recipe:
    """Each of `steps` is a sentence and the commands below it."""

    title: str
    about: str
    files: dict[str, str]
    steps: Sequence[tuple[str, str]]
    exact: str
    tested: str
    more: Sequence[str] = field(default_factory=tuple)

    def write(self, folder: Path) -> None:
        rows = "\n".join(f"| `{name}` | {what} |" for name, what in self.files.items())
        steps = "\n\n".join(f"{n}. {say}\n\n```sh\n{run.strip()}\n```" for n, (say, run) in enumerate(self.steps, 1))
        parts = [
            f"# {self.title}",
            self.about,
            f"| file | what it is |\n|---|---|\n{rows}",
            "## Commands",
            steps,
            "## Scores",
            self.exact,
            self.tested,
            *self.more,
        ]
        (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf8")


def any_query(model: str) -> str:
    """How to get the numbers of a query that is not among the samples."""
    return (
        "## Numbers of any other query\n\nThe query's side is computed outside of the engine, by the model itself:\n\n"
        "```python\nimport clickbridge\nfrom clickbridge.export.targets import request\n\n"
        f'model = clickbridge.load("MODEL")  # {model}\nbody = request(model, "TARGET", "your query", k=10)\n```\n\n'
        "or by the service, `clickbridge serve MODEL`, which embeds queries at `/v1/embeddings`."
    )
