"""Artifacts: a folder with `manifest.json` and plain `.npy` / Parquet files.

New: everything goes to a temporary sibling, which is renamed. Replaced: files of the next generation are
written beside the old ones, then `manifest.json`, the only fixed name, is replaced atomically, then
unreferenced files go. A process killed at any moment leaves the old artifact whole. Files are
memory-mapped on open and verified against their SHA-256. Parts of a composite live complete under
`parts/0`, `parts/1`, …; the top manifest embeds theirs, so that replacing stays one atomic step.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from scipy import sparse

from clickbridge.errors import ArtifactError

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT_VERSION = 2
OLDEST = {"graph": 1}
"""The oldest format that is still read, by kind of artifact; of the others only the newest."""
MANIFEST = "manifest.json"


class PartWriter:
    """Writes the data files of one artifact folder (the top one or a part) and knows their checksums."""

    def __init__(self, folder: Path, generation: int) -> None:
        self.folder = folder
        self.generation = generation
        self.header: dict[str, Any] = {}
        self._paths: dict[str, Path] = {}
        self._parts: dict[str, PartWriter] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        """Where to write the file called `name` (`pairs.npy`, `docs.parquet`)."""
        stem, dot, suffix = name.rpartition(".")
        self._paths[name] = self.folder / f"{stem}.{self.generation}{dot}{suffix}"
        return self._paths[name]

    def has(self, name: str) -> bool:
        return name in self._paths

    def written(self, name: str) -> Path:
        """Where the file called `name` was written before the commit."""
        return self._paths[name]

    def array(self, name: str, values: np.ndarray[Any, Any]) -> None:
        # asarray, not ascontiguousarray: the latter makes a 0-d array 1-d.
        np.save(self.path(name + ".npy"), np.asarray(values, order="C"), allow_pickle=False)

    def sparse(self, name: str, matrix: sparse.csr_array) -> None:
        # A copy where it is not sorted: someone may be reading the matrix just now.
        matrix = matrix if matrix.has_sorted_indices else matrix.sorted_indices()
        self.array(name + ".data", matrix.data)
        self.array(name + ".indices", matrix.indices)
        self.array(name + ".indptr", matrix.indptr)
        self.array(name + ".shape", np.array(matrix.shape, dtype=np.int64))

    def table(self, name: str, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        pq.write_table(table, self.path(name + ".parquet"), compression="zstd")

    def strings(self, name: str, values: Iterable[str]) -> None:
        """Texts end to end as UTF-8, and where each ends, in characters: read with NumPy alone."""
        texts = list(values)
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        self.array(name + ".utf8", np.frombuffer("".join(texts).encode("utf8", "surrogatepass"), dtype=np.uint8))
        self.array(name + ".ends", ends)

    def part(self, name: str) -> PartWriter:
        self._parts[name] = PartWriter(self.folder / "parts" / name, self.generation)
        return self._parts[name]

    def manifest(self) -> dict[str, Any]:
        files = {}
        for name, path in self._paths.items():
            _fsync(path)
            files[name] = {"file": path.name, "bytes": path.stat().st_size, "sha256": file_sha256(path)}
        out = {"format": FORMAT_VERSION, "generation": self.generation, **self.header, "files": files}
        if self._parts:
            out["parts"] = {name: part.manifest() for name, part in self._parts.items()}
        return out

    def write_manifests(self, manifest: dict[str, Any]) -> None:
        """The top manifest first: from then on the new generation is the artifact."""
        temporary = self.folder / (MANIFEST + ".new")
        temporary.write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
        _fsync(temporary)
        os.replace(temporary, self.folder / MANIFEST)
        _fsync(self.folder)
        for name, part in self._parts.items():
            part.write_manifests(manifest["parts"][name])

    def sweep(self, manifest: dict[str, Any]) -> None:
        keep = {entry["file"] for entry in manifest["files"].values()} | {MANIFEST}
        for path in self.folder.iterdir():
            if path.is_file() and path.name not in keep:
                path.unlink()
        parts = self.folder / "parts"
        if parts.is_dir():
            for path in parts.iterdir():
                if path.name not in self._parts:
                    shutil.rmtree(path)
        for name, part in self._parts.items():
            part.sweep(manifest["parts"][name])

    def discard(self) -> None:
        for path in self._paths.values():
            path.unlink(missing_ok=True)
        for part in self._parts.values():
            part.discard()


class ArtifactWriter(PartWriter):
    """`with ArtifactWriter(path, "graph") as w: w.array(...); w.commit(settings={...})`."""

    def __init__(self, path: str | Path, kind: str) -> None:
        self.target = Path(os.path.abspath(path))
        self.kind = kind
        check_target(self.target, kind)
        if not self.target.parent.is_dir():
            raise ArtifactError(f"{self.target.parent} is not a folder: create it first, or write elsewhere")
        self._lock = _Lock(self.target)
        self._committed = False
        self._beside: dict[str, Path] = {}

    def __enter__(self) -> ArtifactWriter:
        self._lock.acquire()
        try:
            pattern = f".{self.target.name}.new-"
            for stale in self.target.parent.glob(pattern + "*"):
                shutil.rmtree(stale, ignore_errors=True)
            self.replaces = check_target(self.target, self.kind)
            if self.replaces:
                generation = int(_read_manifest(self.target)["generation"]) + 1
                super().__init__(self.target, generation)
            else:
                super().__init__(Path(tempfile.mkdtemp(prefix=pattern, dir=self.target.parent)), 1)
                self.folder.chmod(0o755)
        except BaseException:
            self._lock.release()
            raise
        return self

    def scratch(self) -> Path:
        """A folder for intermediate files, gone after the commit."""
        folder = self.folder / "scratch"
        shutil.rmtree(folder, ignore_errors=True)  # a killed writer may have left its own
        folder.mkdir()
        return folder

    def beside(self, name: str, source: Path) -> None:
        """A file for people under a fixed name, copied in with the commit; not part of the data."""
        self._beside[name] = source

    def commit(self, **header: Any) -> None:
        self.header = {"kind": self.kind, **header}
        shutil.rmtree(self.folder / "scratch", ignore_errors=True)
        manifest = self.manifest()
        self.write_manifests(manifest)
        if self.replaces:
            self.sweep(manifest)
        for name, source in self._beside.items():
            shutil.copyfile(source, self.folder / name)
        if not self.replaces:
            os.rename(self.folder, self.target)
            _fsync(self.target.parent)
        self._committed = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._committed:
                if self.replaces:
                    shutil.rmtree(self.folder / "scratch", ignore_errors=True)
                    # An error may come when the new manifest is in place already: then its files are the artifact.
                    if int(_read_manifest(self.folder)["generation"]) != self.generation:
                        self.discard()
                else:
                    shutil.rmtree(self.folder, ignore_errors=True)
        finally:
            self._lock.release()


class Artifact:
    """An opened artifact folder: arrays come memory-mapped, strings as Arrow columns."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest

    def __contains__(self, name: str) -> bool:
        """Whether there is an array, a table, a sparse matrix or a list of texts of this name."""
        suffixes = (".npy", ".parquet", ".data.npy", ".utf8.npy")
        return any(f"{name}{suffix}" in self.manifest["files"] for suffix in suffixes)

    def file(self, name: str) -> Path:
        if name not in self.manifest["files"]:
            raise ArtifactError(f"{self.path} has no {name}: build it again")
        return self.path / str(self.manifest["files"][name]["file"])

    def _read(self, name: str, read: Callable[[Path], Any]) -> Any:
        try:
            return read(self.file(name))
        except FileNotFoundError:
            raise ArtifactError(f"{self.path} was replaced or removed while it was read: open it again") from None

    def array(self, name: str) -> np.ndarray[Any, Any]:
        values = self._read(name + ".npy", lambda path: np.load(path, mmap_mode="r", allow_pickle=False))
        return values if values.size else np.array(values)

    def sparse(self, name: str) -> sparse.csr_array:
        parts = tuple(self.array(f"{name}.{p}") for p in ("data", "indices", "indptr"))
        rows, columns = (int(n) for n in self.array(name + ".shape"))
        # Plain arrays over the same memory: a memory map's own class is slow to index.
        matrix = sparse.csr_array(tuple(map(np.asarray, parts)), shape=(rows, columns), copy=False)
        matrix.has_sorted_indices = True
        return matrix

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        import pyarrow.parquet as pq

        return self._read(name + ".parquet", lambda path: pq.read_table(path, columns=columns, memory_map=True))

    def strings(self, name: str) -> list[str]:
        text = self.array(name + ".utf8").tobytes().decode("utf8", "surrogatepass")
        ends = self.array(name + ".ends").tolist()
        return [text[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []

    def part(self, name: str) -> Artifact:
        return Artifact(self.path / "parts" / name, self.manifest["parts"][name])

    def verify(self) -> None:
        for entry in self.manifest["files"].values():
            path = self.path / entry["file"]
            try:
                size, digest = path.stat().st_size, file_sha256(path)
            except FileNotFoundError:
                size, digest = -1, ""
            if size != entry["bytes"]:
                raise ArtifactError(f"{self.path}: {entry['file']} is missing or cut short: build it again")
            if digest != entry["sha256"]:
                raise ArtifactError(f"{self.path}: {entry['file']} does not match its checksum: build it again")
        for name in self.manifest.get("parts", {}):
            self.part(name).verify()


def open_artifact(path: str | Path, kind: str) -> Artifact:
    folder = Path(path)
    if not folder.exists():
        raise ArtifactError(f"no {kind} at {folder}: give the folder that was written with --out")
    if not (folder / MANIFEST).is_file():
        raise ArtifactError(f"{folder} is not a {kind}: it has no {MANIFEST}")
    while True:
        manifest = _read_manifest(folder)
        if manifest["kind"] != kind:
            raise ArtifactError(f"{folder} is a {manifest['kind']}; a {kind} is needed here")
        if int(manifest["format"]) < OLDEST.get(kind, FORMAT_VERSION):
            remedy = "fit it again" if kind == "model" else "build it again"
            raise ArtifactError(
                f"{folder} was written by an earlier clickbridge (format {manifest['format']}): {remedy}"
            )
        artifact = Artifact(folder, manifest)
        try:
            artifact.verify()
        except ArtifactError:
            # A writer may have replaced the artifact since its manifest was read: then look again.
            if _read_manifest(folder)["generation"] == manifest["generation"]:
                raise
            continue
        return artifact


def check_target(target: Path, kind: str) -> bool:
    """True where an artifact of this kind will be replaced, False where nothing is there; else refuses."""
    if not target.exists() and not target.is_symlink():
        return False
    if target.is_dir() and (target / MANIFEST).is_file() and _read_manifest(target).get("kind") == kind:
        return True
    raise ArtifactError(f"{target} exists and is not a {kind}: choose another --out, or remove it")


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = orjson.loads((folder / MANIFEST).read_bytes())
        version = int(manifest["format"])
        # The version first: what else a newer manifest holds is not known here.
        if version <= FORMAT_VERSION:
            manifest["kind"], int(manifest["generation"])
            _check_files(manifest)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ArtifactError(f"{folder / MANIFEST} is damaged: remove {folder} and build it again") from None
    if version > FORMAT_VERSION:
        raise ArtifactError(
            f"{folder} has format {version}, this clickbridge reads up to {FORMAT_VERSION}: update clickbridge"
        )
    return dict(manifest)


def _check_files(manifest: dict[str, Any]) -> None:
    for entry in manifest["files"].values():
        entry["file"], entry["bytes"], entry["sha256"]
    for part in manifest.get("parts", {}).values():
        _check_files(part)


class _Lock:
    """An advisory lock beside the target; the kernel drops it when the process dies."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name}.lock")
        self._fd = -1

    def acquire(self) -> None:
        while True:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                raise ArtifactError(
                    f"another process is writing {self.target}: wait for it, or write elsewhere"
                ) from None
            # The file may have been unlinked by the previous holder between open and flock.
            try:
                if os.path.samestat(os.fstat(fd), os.stat(self.path)):
                    self._fd = fd
                    return
            except FileNotFoundError:
                pass
            os.close(fd)

    def release(self) -> None:
        if self._fd >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def file_sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _fsync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
