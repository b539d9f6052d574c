"""One bit changed anywhere in a manifest or a data file of a GRAPH or a MODEL: always refused, and by our error."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from campaigns.data import graph_of, pages, save_model
from campaigns.tally import Tally
from clickbridge.errors import ArtifactError
from clickbridge.io.artifact import open_artifact

SHORT, LONG = 400, 100_000


def run(count: int, seed: int = 0) -> Tally:
    tally, rng = Tally(), Random(seed)
    with tempfile.TemporaryDirectory(prefix="campaign-", dir=_fast()) as home:
        graph = graph_of(pages(), Path(home) / "graph")
        save_model("bm25+cos-click", graph, Path(home) / "model")
        places = [(kind, Path(home) / kind) for kind in ("graph", "model")]
        for number in range(count):
            kind, folder = places[number % 2]
            # Half of the flips in manifests: they are a small part of the bytes, and steer all the rest.
            manifests = [folder / "manifest.json"]
            data = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "manifest.json")
            _flip(tally, kind, folder, rng.choice(manifests if number % 4 < 2 else data), rng)
    return tally


def _flip(tally: Tally, kind: str, folder: Path, file: Path, rng: Random) -> None:
    sound = file.read_bytes()
    if not sound:
        return
    place, bit = rng.randrange(len(sound)), rng.randrange(8)
    changed = bytearray(sound)
    changed[place] ^= 1 << bit
    tally.tried += 1
    try:
        file.write_bytes(changed)
        open_artifact(folder, kind)
        tally.fault(f"{file.relative_to(folder.parent)}: bit {bit} of byte {place} passes")
    except ArtifactError:
        tally.hit += 1
    except Exception as error:
        tally.error(f"{file.name} byte {place} bit {bit}", error)
    finally:
        file.write_bytes(sound)


def _fast() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
