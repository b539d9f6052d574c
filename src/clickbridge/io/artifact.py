"""Artifacts: a folder with `manifest.json` and plain `.npy` / Parquet files.

A new artifact is written to a temporary folder next to its target, which is then renamed. To replace an artifact, new
files are written next to the old ones, then `manifest.json`, the only fixed name, is replaced atomically, and files
that are no longer referenced are removed. If the process is killed at any moment, the old artifact is still complete.
Files are memory-mapped when they are opened, and verified against their SHA-256. The parts of a composite are complete
artifacts under `parts/0`, `parts/1`, …; the top manifest contains theirs, so that replacing is still one atomic step.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from clickbridge.errors import ArtifactError
from clickbridge.io.files import aside_name
from clickbridge.io.lock import Lock, held
from clickbridge.io.manifest import FORMAT_VERSION, MANIFEST, OLDEST, packed, read_manifest, sealed
from clickbridge.io.secret import Secret

if TYPE_CHECKING:
    import pyarrow as pa

CSR = ("data", "indices", "indptr", "shape")
PLAIN = "biufcUMm"
"""Kinds of arrays: truth values, numbers, texts, times. No objects, no records, no raw bytes."""
SCRATCH, ASIDE = ".scratch", ".beside-"
OWN_FILE = re.compile(r".+\.(\d+)\.(npy|parquet|key)")
"""How data files are named: `pairs.clicks.3.npy` is of generation 3."""


class PartWriter:
    """Writes the data files of one artifact folder (the top one or a part) and keeps their checksums."""

    def __init__(self, folder: Path, generation: int) -> None:
        self.folder = folder
        self.generation = generation
        self.header: dict[str, Any] = {}
        self._paths: dict[str, Path] = {}
        self._parts: dict[str, PartWriter] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        """The path for the file called `name` (`pairs.npy`, `docs.parquet`). A file that a killed writer left there, or
        a link, is replaced and not written into."""
        stem, dot, suffix = name.rpartition(".")
        self._paths[name] = self.folder / f"{stem}.{self.generation}{dot}{suffix}"
        self._paths[name].unlink(missing_ok=True)
        return self._paths[name]

    def has(self, name: str) -> bool:
        return name in self._paths

    def written(self, name: str) -> Path:
        """The path to which the file called `name` was written before the commit."""
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
        """Writes texts as one UTF-8 file, and where each ends, in characters, so that NumPy alone can read them."""
        texts = list(values)
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        self.array(name + ".utf8", np.frombuffer("".join(texts).encode("utf8", "surrogatepass"), dtype=np.uint8))
        self.array(name + ".ends", ends)

    def secret(self, name: str, secret: Secret) -> None:
        """Writes a file that only its owner can read, whatever the umask is."""
        fd = os.open(self.path(name + ".key"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(secret.key)

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
        return sealed(out)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Writes the manifest of the top folder. When it replaces the old one, the new files become the artifact."""
        temporary = self.folder / (MANIFEST + ".new")
        temporary.write_bytes(packed(manifest))
        _fsync(temporary)
        os.replace(temporary, self.folder / MANIFEST)
        _fsync(self.folder)

    def write_part_manifests(self, manifest: dict[str, Any]) -> None:
        """Writes the manifests of parts, for opening a part alone. The whole is read from its top manifest."""
        for name, part in self._parts.items():
            part.write_manifest(manifest["parts"][name])
            part.write_part_manifests(manifest["parts"][name])

    def discard(self) -> None:
        for path in self._paths.values():
            path.unlink(missing_ok=True)
        (self.folder / (MANIFEST + ".new")).unlink(missing_ok=True)
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
        self._lock = Lock(self.target)
        self._beside: dict[str, Path] = {}
        self._earlier: dict[str, Any] = {}

    def __enter__(self) -> ArtifactWriter:
        self._lock.acquire()
        try:
            stale = re.compile(re.escape(f".{self.target.name}.new-") + "[0-9a-f]{16}")
            for path in self.target.parent.iterdir():
                if stale.fullmatch(path.name):
                    shutil.rmtree(path, ignore_errors=True)  # left by a killed writer: the lock is ours
            self.replaces = check_target(self.target, self.kind)
            if self.replaces:
                self._earlier = read_manifest(self.target)
                super().__init__(self.target, int(self._earlier["generation"]) + 1)
            else:
                super().__init__(aside_name(self.target, "new"), 1)
        except BaseException:
            self._lock.release()
            raise
        return self

    def scratch(self) -> Path:
        """A folder for intermediate files. It is removed after the commit."""
        folder = self.folder / SCRATCH
        shutil.rmtree(folder, ignore_errors=True)  # a killed writer may have left its own
        folder.mkdir()
        return folder

    def beside(self, name: str, source: Path) -> None:
        """Adds a file for people under a fixed name. It is copied with the commit, and is not part of the data."""
        self._beside[name] = source

    def commit(self, **header: Any) -> None:
        """Commits the artifact in one step: a new one by renaming its folder, an existing one by replacing its
        manifest. Everything that can fail happens before that step. After it, only old files are removed; if that
        fails, the next writer removes them."""
        self.header = {"kind": self.kind, **header}
        if self._beside:
            self.header["beside"] = sorted(self._beside)
        shutil.rmtree(self.folder / SCRATCH, ignore_errors=True)
        manifest = self.manifest()
        aside = {name: self.folder / f"{ASIDE}{name}" for name in self._beside}
        for name, source in self._beside.items():
            shutil.copyfile(source, aside[name])
        if self.replaces:
            self.write_manifest(manifest)
            self._tidy(manifest, aside)
            return
        # Nobody sees the folder yet: the order does not matter.
        self.write_manifest(manifest)
        self.write_part_manifests(manifest)
        for name, copy in aside.items():
            os.replace(copy, self.folder / name)
        os.rename(self.folder, self.target)
        with suppress(OSError):
            _fsync(self.target.parent)

    def _tidy(self, manifest: dict[str, Any], aside: dict[str, Path]) -> None:
        """Removes old files after the manifest was replaced. If the disk fails now, the next writer does it."""
        for name, copy in aside.items():
            with suppress(OSError):
                os.replace(copy, self.folder / name)
        with suppress(OSError):
            self.write_part_manifests(manifest)
            sweep(self.folder, manifest, self._earlier, self.generation)

    def _is_live(self) -> bool:
        """Whether these files are the artifact now, according to its manifest. This is not kept in a flag, since an
        exception could occur between the replacement and setting the flag."""
        try:
            return not self.replaces or int(read_manifest(self.target)["generation"]) == self.generation
        except (ArtifactError, OSError):
            return True  # what cannot be told is not removed

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self.replaces:
                # Nothing is there under this name once the folder has been renamed.
                shutil.rmtree(self.folder, ignore_errors=True)
            elif not self._is_live():
                shutil.rmtree(self.folder / SCRATCH, ignore_errors=True)
                self.discard()
        finally:
            self._lock.release()


def sweep(folder: Path, manifest: dict[str, Any] | None, earlier: dict[str, Any], generation: int) -> None:
    """Removes the files of earlier versions of an artifact from its folder, by its earlier manifest and the names of
    data files. Other files stay. Without a `manifest`, the folder is that of a part that no longer exists.
    """
    keep = set() if manifest is None else {MANIFEST, *_names(manifest)}
    ours = {MANIFEST, MANIFEST + ".new", *_names(earlier)}
    for path in list(folder.iterdir()):
        found = OWN_FILE.fullmatch(path.name)
        left = path.name.startswith(ASIDE) or (found is not None and int(found[1]) <= generation)
        if path.name not in keep and (left or path.name in ours) and not path.is_dir():
            path.unlink()
    parts, gone = folder / "parts", earlier.get("parts", {})
    for path in list(parts.iterdir()) if parts.is_dir() and not parts.is_symlink() else []:
        if path.is_dir() and not path.is_symlink():
            now = (manifest or {}).get("parts", {}).get(path.name)
            if now or path.name in gone or path.name.isdigit():
                sweep(path, now, gone.get(path.name, {}), generation)
    if manifest is None or not manifest.get("parts"):
        for place in (parts, *([folder] if manifest is None else [])):
            with suppress(OSError):  # it is not there, or not empty
                place.rmdir()


def _names(manifest: dict[str, Any]) -> set[str]:
    return {entry["file"] for entry in manifest.get("files", {}).values()} | set(manifest.get("beside", ()))


def csr_flaw(indptr: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], rows: int, columns: int) -> str | None:
    """What is wrong with the indexes of a sparse matrix, if anything."""
    if any(values.ndim != 1 or values.dtype.kind not in "iu" for values in (indptr, indices)):
        return "has places that are no whole numbers"
    if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
        return "has rows that do not follow each other"
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < columns:
        return "has places outside of its shape"
    falls = np.flatnonzero(indices[1:] < indices[:-1]) + 1
    if not np.isin(falls, indptr).all():
        return "has rows that are not in order"
    return None


class Artifact:
    """An opened artifact folder. Arrays are memory-mapped, texts are Arrow columns."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest

    def __contains__(self, name: str) -> bool:
        """Whether there is an array, a table, a sparse matrix or a list of texts with this name."""
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
        try:
            values = self._read(name + ".npy", lambda path: np.load(path, mmap_mode="r", allow_pickle=False))
        except (ValueError, TypeError, OverflowError, EOFError, SyntaxError) as error:
            raise self._unsound(name, "is not an array") from error
        if not isinstance(values, np.ndarray) or values.dtype.kind not in PLAIN:
            raise self._unsound(name, "is not an array of numbers or texts")
        return values if values.size else np.array(values)

    def sparse(self, name: str) -> sparse.csr_array:
        """A sparse matrix, with all indexes checked, since compiled code does not check them later."""
        # Plain arrays over the same memory: a memory map's own class is slow to index.
        data, indices, indptr, shape = (np.asarray(self.array(f"{name}.{p}")) for p in CSR)
        if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0:
            raise self._unsound(name, "has no shape")
        rows, columns = (int(n) for n in shape)
        if (
            (flaw := csr_flaw(indptr, indices, rows, columns))
            or data.shape != indices.shape
            or data.dtype.kind not in "biuf"
        ):
            raise self._unsound(name, flaw or "does not hold a number for each place")
        matrix = sparse.csr_array((data, indices, indptr), shape=(rows, columns), copy=False)
        matrix.has_sorted_indices = True
        return matrix

    def _unsound(self, name: str, what: str) -> ArtifactError:
        return ArtifactError(f"{self.path}: {name} {what}: build it again")

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return self._read(name + ".parquet", lambda path: pq.read_table(path, columns=columns, memory_map=True))
        except pa.ArrowException as error:
            raise self._unsound(name, "is not a valid Parquet file") from error

    def strings(self, name: str) -> list[str]:
        try:
            text = self.array(name + ".utf8").tobytes().decode("utf8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self._unsound(name, "is not text") from error
        ends = np.asarray(self.array(name + ".ends"))
        whole = ends.ndim == 1 and ends.dtype.kind in "iu" and not (ends[1:] < ends[:-1]).any()
        if not whole or (len(ends) and not 0 <= ends[0] <= ends[-1] == len(text)):
            raise self._unsound(name, "does not end where it says")
        places = ends.tolist()
        return [text[start:end] for start, end in zip([0, *places[:-1]], places, strict=True)] if places else []

    def secret(self, name: str) -> Secret:
        try:
            return Secret(self._read(name + ".key", Path.read_bytes))
        except PermissionError:
            file = self.file(name + ".key")
            raise ArtifactError(f"only its owner can read {file}: ask for permission") from None
        except ValueError as error:
            raise self._unsound(name, "is not a secret") from error

    def part(self, name: str) -> Artifact:
        return Artifact(self.path / "parts" / name, self.manifest["parts"][name])

    def verify(self) -> None:
        for entry in self.manifest["files"].values():
            path = self.path / entry["file"]
            size, digest = -1, ""
            with suppress(FileNotFoundError):
                # Not through a link, and no device or pipe, which might never end.
                if not stat.S_ISREG(path.lstat().st_mode):
                    raise ArtifactError(f"{self.path}: {entry['file']} is not a plain file: build it again")
                size = path.stat().st_size
                digest = self._digest(path, entry) if size == entry["bytes"] else ""
            if size != entry["bytes"]:
                raise ArtifactError(f"{self.path}: {entry['file']} is missing or cut short: build it again")
            if digest != entry["sha256"]:
                raise ArtifactError(f"{self.path}: {entry['file']} does not match its checksum: build it again")
        for name in self.manifest.get("parts", {}):
            self.part(name).verify()

    @staticmethod
    def _digest(path: Path, entry: dict[str, Any]) -> str:
        try:
            return file_sha256(path)
        except PermissionError:
            if path.suffix != ".key":
                raise
            return str(entry["sha256"])  # another's secret: who needs it is told when it is read


def open_artifact(path: str | Path, kind: str) -> Artifact:
    folder = Path(path)
    if not folder.exists():
        raise ArtifactError(f"no {kind} at {folder}: give the folder that it was saved to")
    if not (folder / MANIFEST).is_file():
        raise ArtifactError(f"{folder} is not a {kind}: it has no {MANIFEST}")
    while True:
        manifest = read_manifest(folder)
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
            if read_manifest(folder)["generation"] == manifest["generation"]:
                raise
            continue
        return artifact


def check_target(target: Path, kind: str) -> bool:
    """True if an artifact of this kind will be replaced, False if nothing is there. Anything else is refused."""
    if not target.exists() and not target.is_symlink():
        return False
    if target.is_symlink():
        raise ArtifactError(f"{target} is a link: give the folder that it points to, or another name")
    if target.is_dir() and (target / MANIFEST).is_file() and read_manifest(target).get("kind") == kind:
        return True
    raise ArtifactError(f"{target} exists and is not a {kind}: choose another --out, or remove it")


@contextmanager
def kept_for_writing(path: str | Path, kind: str) -> Iterator[None]:
    """Locks an artifact while it is read, changed and written back. Without the lock, one of two concurrent changes
    would be lost. A second process is refused. A writer of the same path in the same thread shares the lock."""
    target = Path(os.path.abspath(path))
    if not target.is_dir() or not (target / MANIFEST).is_file():
        yield  # there is nothing to lose: who opens it says what is wrong
        return
    check_target(target, kind)
    with held(target):
        yield


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content, as hexadecimal digits."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _fsync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
