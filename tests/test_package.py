"""The package as a whole: what importing it costs, who may name whom, and what no source file may do."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import clickbridge
from clickbridge import ClickGraph, build_model
from clickbridge.models.composite import Composite, Wrapper
from clickbridge.models.model import Model
from clickbridge.models.parameters import Parameters
from clickbridge.models.registry import TABLES, model_class

ROOT = Path(clickbridge.__file__).parent
LEVELS = [
    {"errors", "types", "settings", "frames", "wording", "progress"},
    {"numerics", "engines", "io", "measures"},
    {"log", "graph", "views", "simulate"},
    {"search"},
    {"models"},
    {"skernel", "online", "fusion"},
    {"evaluate", "insight"},
    {"export", "serve"},
    {"cli"},
    {"__main__"},
]
NAMED_EXCEPTIONS = {
    ("graph", "log"),
    ("types", "errors"),
    ("settings", "errors"),
    ("frames", "errors"),
    ("types", "frames"),
    ("engines", "numerics"),
    ("numerics", "engines.base"),
    ("insight", "evaluate"),
}
ONLY_IN = {
    "numba": ("numerics",),
    "ray": ("engines",),
    "cupy": ("engines",),
    "typer": ("cli",),
    **dict.fromkeys(("fastapi", "starlette", "uvicorn", "pydantic", "sqlalchemy", "prometheus_client"), ("serve",)),
    # One pool of threads: seven that each take every core are slower than one.
    "concurrent.futures": ("engines/local.py",),
    "multiprocessing": (),
    # A model may come from anybody: nothing that a file holds is ever run.
    **dict.fromkeys(("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"), ()),
}
"""Modules that only some packages or files import."""
POOLS = {"ThreadPoolExecutor", "ProcessPoolExecutor", "ThreadPool"}
HEAVY = ("numba", "duckdb", "scipy", "pyarrow")
NAME = re.compile(r"clickbridge(\.\w+)+(:\w+)?")
"""A module, or a class in one, by its name."""


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf8"))


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def named_in(path: Path) -> set[str]:
    """Modules of the package that a file names by text, as `"clickbridge.models.pls:PLS"`."""
    texts = [n.value for n in ast.walk(tree_of(path)) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return {text.partition(":")[0] for text in texts if NAME.fullmatch(text)}


def level_of(package: str) -> int:
    return next(i for i, level in enumerate(LEVELS) if package in level)


def may_name(here: str, module: str) -> bool:
    """Whether a package may use a module of the package: its own, one below, or a named exception."""
    parts = module.split(".")
    if parts[0] != "clickbridge" or len(parts) == 1 or parts[1] not in PACKAGES:
        return True
    named = {(here, ".".join(parts[1:end])) for end in (2, 3)} & NAMED_EXCEPTIONS
    return parts[1] == here or level_of(parts[1]) < level_of(here) or bool(named)


ALL = sorted(ROOT.rglob("*.py"))
PACKAGES = {place(p).partition("/")[0].removesuffix(".py") for p in ALL} - {"__init__"}
SOURCES = [p for p in ALL if p.parent != ROOT or p.stem in LEVELS[0]]
MODULES = [".".join(["clickbridge", *p.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__") for p in ALL]
every_source = pytest.mark.parametrize("path", SOURCES, ids=place)


# --- who may name whom -----------------------------------------------------------------------------------


@every_source
def test_imports_keep_their_direction(path: Path) -> None:
    here = place(path).partition("/")[0].removesuffix(".py")
    for module in imports_of(path) | named_in(path):
        assert may_name(here, module), f"{here} must not name {module}"
        for name, homes in ONLY_IN.items():
            if module == name or module.startswith(f"{name}."):
                allowed = any(place(path) == home or place(path).startswith(f"{home}/") for home in homes)
                assert allowed, f"{module} may only be imported in {', '.join(homes) or 'no file'}"


def test_every_package_has_its_level() -> None:
    assert {"serve"} | PACKAGES == set().union(*LEVELS)


def test_the_page_has_the_levels() -> None:
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf8")
    table = page.partition("## Which package may import which")[2].partition("    errors")
    rows = f"errors{table[2].partition('Within')[0]}".split("<-")
    assert [{*re.findall(r"\w+", row)} for row in rows] == [level for level in LEVELS if level != {"__main__"}]


def test_every_named_exception_is_used() -> None:
    used = {
        (place(path).partition("/")[0].removesuffix(".py"), module) for path in SOURCES for module in imports_of(path)
    }
    for here, module in NAMED_EXCEPTIONS:
        assert any(who == here and f"{name}.".startswith(f"clickbridge.{module}.") for who, name in used), (
            here,
            module,
        )


def test_the_direction_is_seen_in_texts_too(tmp_path: Path) -> None:
    """The tables of the package stand above everything; the same text further down is found."""
    assert {"clickbridge.fusion.mart", "clickbridge.skernel.robust"} <= named_in(ROOT / "__init__.py")
    below = tmp_path / "registry.py"
    below.write_text("HOMES = {'mart': 'clickbridge.fusion.mart:Mart'}\nfrom clickbridge import evaluate\n")
    assert named_in(below) == {"clickbridge.fusion.mart"}
    assert not may_name("models", "clickbridge.fusion.mart")
    assert "clickbridge.evaluate" in imports_of(below)
    assert may_name("fusion", "clickbridge.models.pls")
    assert may_name("numerics", "clickbridge.engines.base")
    assert not may_name("numerics", "clickbridge.engines.local")


@every_source
def test_no_pool_but_the_engines(path: Path) -> None:
    """By whatever name it came."""
    used = {n.attr for n in ast.walk(tree_of(path)) if isinstance(n, ast.Attribute)}
    used |= {n.id for n in ast.walk(tree_of(path)) if isinstance(n, ast.Name)}
    assert not used & POOLS or place(path) == "engines/local.py"


@every_source
def test_nothing_unpickles(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant)
            assert node.value.value is False


# --- the tables of the package ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TABLES)
def test_every_home_holds_the_model_of_its_name(kind: str) -> None:
    homes = {"model": clickbridge._MODELS, "sum": clickbridge._SUMS, "wrapper": clickbridge._WRAPPERS}[kind]
    assert {name: TABLES[kind][name] for name in homes} == homes, "the registry has them"
    for name, home in homes.items():
        module, _, attribute = home.partition(":")
        found = getattr(import_module(module), attribute)
        assert found.__module__ == module, f"{home} is imported there, and lives in {found.__module__}"
        assert issubclass(found, {"model": Model, "sum": Composite, "wrapper": Wrapper}[kind])
        assert found.name == name
        assert model_class(name) is found
        assert found.about
        assert found.paper
        assert found.fitted_type.can <= found.abilities()


def test_every_exported_name_exists() -> None:
    for name in clickbridge.__all__:
        assert getattr(clickbridge, name) is not None
        assert name in dir(clickbridge)
    with pytest.raises(AttributeError):
        clickbridge.no_such_name  # noqa: B018


def test_what_a_user_touches_is_one_import_away() -> None:
    wanted = """BM25 PLS MPLS RMLS SSI BLTM SVDFeature Robust Online Mart RRF Sum LinearSum Impression Document
        ResultList Ranking Hit PairCount read_log read_docs read_lists read_qrels Learner Journal evaluate stats
        compare register load build_model ClickGraph ClickbridgeError InputError SettingError NotFitted"""
    assert not set(wanted.split()) - set(dir(clickbridge))
    assert dir(clickbridge) == sorted(clickbridge.__all__)


def test_type_checkers_see_the_same_names() -> None:
    """What is loaded on first use is written a second time for them."""
    (block,) = (n for n in tree_of(ROOT / "__init__.py").body if isinstance(n, ast.If))
    seen = {a.asname: f.module for f in block.body if isinstance(f, ast.ImportFrom) for a in f.names}
    assert seen == clickbridge._HOME


# --- classes that remember -------------------------------------------------------------------------------


def classes() -> Iterator[type[Any]]:
    for name in MODULES:
        for _, found in inspect.getmembers(import_module(name), inspect.isclass):
            if found.__module__ == name:
                yield found


def writers(kind: type[Any]) -> set[str]:
    """Methods that give an object another attribute, or take one away, once it is made."""
    out = set()
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    for method in (n for n in ast.walk(body) if isinstance(n, ast.FunctionDef)):
        if method.name in ("__init__", "__post_init__", "__setstate__", "_derive") or not method.args.args:
            continue
        me = method.args.args[0].arg
        for node in ast.walk(method):
            mine = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == me
            if mine and isinstance(node.ctx, ast.Store | ast.Del):  # type: ignore[attr-defined]
                out.add(f"{kind.__qualname__}.{method.name}")
            if isinstance(node, ast.Call) and ast.unparse(node).startswith(
                (f"setattr({me},", f"object.__setattr__({me},", f"{me}._derive(", f"{me}.__dict__")
            ):
                out.add(f"{kind.__qualname__}.{method.name}")
    return out


def test_no_class_that_changes_remembers_what_it_worked_out() -> None:
    """A cached_property of an object that changes is a wrong answer waiting to be given."""
    found = 0
    for kind in classes():
        family = [own for own in kind.__mro__ if own.__module__.startswith("clickbridge")]
        if any(isinstance(value, cached_property) for own in family for value in vars(own).values()):
            found += 1
            changing = set().union(*(writers(own) for own in family))
            assert not changing, f"{kind.__qualname__} has a cached_property, and {', '.join(changing)} changes it"
    assert found > 10
    assert writers(Model) >= {"Model.fit_on", "Model.update"}, "and such methods are seen"
    assert "Parameters.set_params" in writers(Parameters)


# --- what importing costs --------------------------------------------------------------------------------


def loaded(code: str, *arguments: object) -> list[str]:
    """Which heavy libraries a fresh process has after running some code."""
    code += f"\nimport sys; print([m for m in {HEAVY} if m in sys.modules])"
    line = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(ast.literal_eval(done.stdout.splitlines()[-1]))


def test_import_is_light() -> None:
    assert loaded("import clickbridge") == []


def test_loading_a_model_takes_no_library_that_it_does_not_need(small_graph: ClickGraph, tmp_path: Path) -> None:
    """DuckDB and PyArrow are for logs; compiled loops are loaded when a query first needs one."""
    build_model("bm25+pls").fit(small_graph).save(tmp_path / "m")
    load = "import sys, clickbridge; model = clickbridge.load(sys.argv[1])"
    assert loaded(load, tmp_path / "m") == ["scipy"]
    asked = f"{load}; print(model.rerank('ny pizza', ['rome', 'pizza']).doc_ids, model.rank('pizza', 2).doc_ids)"
    assert not {"duckdb", "pyarrow"} & {*loaded(asked, tmp_path / "m")}


def test_source_files_stay_readable() -> None:
    files = [*ROOT.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]
    assert not {str(p): n for p in files if (n := len(p.read_text().splitlines())) > 450}
