"""Who may do what, how often, and from where; what the log says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clickbridge.cli.app import app
from clickbridge.errors import InputError, SettingError
from clickbridge.serve.access import Keys, Rates
from clickbridge.serve.config import Config, named_models, seconds_of
from clickbridge.serve.refusals import Refused
from running import Running

SHOP, ADMIN = "shop-0123456789abcdef", "admin-0123456789abcdef"
PAGE = {"events": [{"event_id": "e", "query": "pizza", "results": ["pizza"], "clicks": []}]}


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    path = tmp_path / "keys"
    path.write_text(f"# keys\n{SHOP} rank\n\n{ADMIN} rank,feedback,admin  # of the owner\n")
    return str(path)


def test_keys_and_scopes(serve: Callable[..., Running], key_file: str) -> None:
    live = serve("bm25", key_file=key_file, host="0.0.0.0")
    shop, admin = {"Authorization": f"Bearer {SHOP}"}, {"X-API-Key": ADMIN}
    ask = {"query": "pizza", "documents": ["pizza"]}
    assert live.post("/rank", ask).status_code == 401
    assert live.post("/rank", ask, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert live.post("/rank", ask, headers=shop).status_code == 200
    assert live.post("/v2/rerank", ask, headers=shop).status_code == 200
    for path in ("/feedback", "/feedback/undo", "/ubi_events", "/ubi_queries"):
        assert live.post(path, PAGE, headers=shop).status_code == 403, path
    for path in ("/models/bm25/reload", "/models/bm25/rollback"):
        assert live.post(path, headers=shop).status_code == 403, path
    for path in ("/metrics", "/experiments"):
        assert live.http.get(path, headers=shop).status_code == 403, path
        assert live.http.get(path, headers=admin).status_code == 200, path
    assert live.post("/feedback", PAGE, headers=admin).status_code == 200
    assert live.get("/health").status_code == 200


def test_every_route_asks_for_a_key(serve: Callable[..., Running], key_file: str) -> None:
    live = serve("bm25", key_file=key_file)
    paths = live.http.get("/openapi.json", headers={"X-API-Key": SHOP}).json()["paths"]
    for path, methods in paths.items():
        for method in methods:
            answer = live.http.request(method, path.replace("{name}", "bm25").replace("{model}", "bm25"))
            assert answer.status_code == (200 if path == "/health" else 401), (method, path)


def test_an_address_that_others_reach_needs_keys(models: Callable[[str], Path]) -> None:
    done = CliRunner().invoke(app, ["serve", str(models("bm25")), "--host", "0.0.0.0"])
    assert isinstance(done.exception, SettingError)
    assert "key_file" in str(done.exception)


@pytest.mark.parametrize("text", ["", "short rank\n", f"{SHOP}\n", f"{SHOP} rank,all\n", f"{SHOP} rank feedback x\n"])
def test_a_key_file_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(InputError):
        Keys(str(tmp_path / "keys"))


def test_rates(serve: Callable[..., Running]) -> None:
    live = serve("bm25", rate=3)
    codes = [live.get("/models").status_code for _ in range(12)]
    assert codes[:6] == [200] * 6
    assert 429 in codes
    refused = live.get("/models")
    assert refused.json()["error"]["code"] == "too_many_requests"
    assert int(refused.headers["Retry-After"]) >= 1
    assert live.get("/health").status_code == 200


def test_a_rate_is_a_callers_own_and_comes_back() -> None:
    rates = Rates(20)
    for _ in range(40):
        rates.check("a")
    with pytest.raises(Refused):
        rates.check("a")
    rates.check("b")
    time.sleep(0.11)
    rates.check("a")


def test_cors(serve: Callable[..., Running]) -> None:
    live = serve("bm25", cors=("https://shop.example",))
    asked = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    answer = live.http.options("/rank", headers=asked)
    assert answer.headers["access-control-allow-origin"] == "https://shop.example"
    other = live.http.get("/health", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_the_log_has_no_query_unless_asked(
    serve: Callable[..., Running], models: Callable[[str], Path], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from running import running

    for asked, name in ((False, "a"), (True, "b")):
        config = Config(models={"m": str(models("bm25"))}, store=f"sqlite:///{tmp_path}/{name}.db", log_queries=asked)
        with running(config) as live:
            live.get("/search", q="a private matter")
            live.rank("a private matter", ["pizza"])
            live.get("/search?q=a+private+matter&k=x")
        lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
        routes = [line.get("route") for line in lines if "route" in line]
        assert routes.count("/search") == 2
        assert all({"at", "request_id", "status", "ms"} <= set(line) for line in lines if "route" in line)
        assert ("private" in json.dumps(lines)) is asked


def test_names_and_times() -> None:
    assert list(named_models(["a/model", "b=a/model"])) == ["model", "b"]
    for given in (["a/m", "b/m"], ["x y=a"]):
        with pytest.raises(SettingError):
            named_models(given)
    assert [seconds_of(t, "--keep") for t in ("90d", "1h", "30m", "10s", "0")] == [7776000, 3600, 1800, 10, 0]
    for text in ("soon", "5", "1w", "-1h"):
        with pytest.raises(SettingError, match="keep"):
            seconds_of(text, "--keep")
