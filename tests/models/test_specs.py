"""How a model is named, and how settings reach its parts."""

from __future__ import annotations

from typing import Any

import pytest

from clickbridge import build_model
from clickbridge.errors import SettingError
from clickbridge.models.algebra import Sum
from clickbridge.models.fitted import ABILITIES
from clickbridge.models.lexical import BM25, LMIR, VSM
from clickbridge.models.registry import MODELS, WRAPPERS, model_class
from clickbridge.models.specs import SHORT_FOR, parse_spec
from clickbridge.settings import parse_assignments


@pytest.mark.parametrize("name", MODELS)
def test_every_name_is_a_spec(name: str) -> None:
    assert parse_spec(f" {name} ").names == (name,)
    assert str(parse_spec(name)) == name
    assert type(build_model(name)) is model_class(name)
    assert model_class(name).name == name


@pytest.mark.parametrize("name", [*MODELS, *WRAPPERS])
def test_the_registry_describes_its_models(name: str) -> None:
    kind = model_class(name)
    assert kind.about
    assert kind.paper
    assert "\n" not in kind.about
    assert kind.abilities() <= set(ABILITIES)


@pytest.mark.parametrize("text", ["bm25+lmir", " bm25 + lmir ", "bm25 +lmir"])
def test_sums(text: str) -> None:
    assert parse_spec(text).names == ("bm25", "lmir")
    assert str(parse_spec(text)) == "bm25+lmir"
    model = build_model(text)
    assert isinstance(model, Sum)
    assert [type(part) for part in model.parts] == [BM25, LMIR]
    assert model.spec == "bm25+lmir"


@pytest.mark.parametrize("text", ["", "bm52", "bm25+", "+bm25", "bm25++lmir", "bm25 lmir", "bm25,lmir", "sum", "BM25"])
def test_unknown_names_are_named(text: str) -> None:
    with pytest.raises(SettingError, match=r"no model '.*'.*; there are auto, given, vsm, bm25, lmir") as caught:
        parse_spec(text)
    assert caught.value.exit_code == 2


def test_a_model_may_be_named_once() -> None:
    with pytest.raises(SettingError, match="names a model twice"):
        parse_spec("bm25+lmir+bm25")


def test_unknown_wrappers() -> None:
    with pytest.raises(SettingError, match="no wrapper 'wrap' in 'wrap:bm25'; there are robust, online, rrf, mart"):
        parse_spec("wrap:bm25")


@pytest.mark.parametrize("wrapper", ["mart", "rrf", "robust", "online"])
def test_every_wrapper_takes_a_spec(wrapper: str) -> None:
    assert wrapper in WRAPPERS
    parsed = parse_spec(f"{wrapper}:bm25+lmir")
    assert (parsed.wrapper, str(parsed)) == (wrapper, f"{wrapper}:bm25+lmir")


def test_the_colon_takes_all_to_its_right() -> None:
    outer = parse_spec("online:rrf:bm25+lmir")
    assert outer.wrapper == "online"
    assert outer.inner is not None
    assert outer.inner.wrapper == "rrf"
    assert outer.inner.inner is not None
    assert outer.inner.inner.names == ("bm25", "lmir")
    assert str(outer) == "online:rrf:bm25+lmir"
    assert str(parse_spec("robust-bm25")) == "robust:bm25"
    assert str(parse_spec("online")) == "online:given"


def test_short_names_stand_for_what_the_design_says() -> None:
    assert SHORT_FOR == {"robust-bm25": "robust:bm25", "mart": "mart:bm25+pls+rmls", "online": "online:given"}


def test_settings_reach_every_part_that_has_them() -> None:
    model: Any = build_model("bm25+lmir", {"language": "german", "k1": "2", "mu": 50, "weights": "1,2", "seed": 7})
    bm25, lmir = model.parts
    assert (bm25.language, lmir.language) == ("german", "german")
    assert (bm25.k1, lmir.mu, model.weights) == (2.0, 50.0, "1,2")
    assert (bm25.seed, lmir.seed, model.seed) == (7, 7, 7)


def test_a_setting_can_address_one_part() -> None:
    model: Any = build_model("bm25+vsm", {"bm25.k1": "2", "vsm.language": "none"})
    bm25, vsm = model.parts
    assert isinstance(vsm, VSM)
    assert (bm25.k1, bm25.language, vsm.language) == (2.0, "auto", "none")
    assert build_model("bm25", {"bm25.b": "0"}).get_params()["b"] == 0.0


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ("bm25", "mu"),
        ("bm25", "lmir.mu"),
        ("bm25+vsm", "vsm.k1"),
        ("bm25+vsm", "nobody.k1"),
        ("given", "k1"),
        ("bm25", "weights"),
    ],
)
def test_a_setting_that_nobody_has(spec: str, key: str) -> None:
    with pytest.raises(SettingError, match=f"(no part of .* has the|has no) setting '{key}'"):
        build_model(spec, {key: "1"})


@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        ("bm52", {}, r"no model 'bm52' \(did you mean bm25\?\); there are auto,"),
        ("BM25+pls", {}, r"no model 'BM25' in 'BM25\+pls' \(did you mean bm25\?\); there are"),
        ("pls", {"dims": 10}, r"pls has no setting 'dims' \(did you mean dim\?\); there are min_users,"),
        ("bm25+pls", {"dims": 10}, r"no part of bm25\+pls has the setting 'dims' \(did you mean dim\?\); there are"),
        ("popular", {}, "no model 'popular'; there are auto,"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(spec: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        build_model(spec, settings)


def test_a_value_out_of_range_is_refused_at_once() -> None:
    with pytest.raises(SettingError, match="b must be a number, 0 to 1; got"):
        build_model("bm25+lmir", {"b": "7"})


def test_assignments() -> None:
    assert parse_assignments(["bm25.k1=2", "fields=title:3,body", "weights=1,2"]) == {
        "bm25.k1": "2",
        "fields": "title:3,body",
        "weights": "1,2",
    }
    for wrong in ("k1", "=2"):
        with pytest.raises(SettingError, match="key=value"):
            parse_assignments([wrong])
    # Which settings there are is known to the models: those refuse what none of them has.
    with pytest.raises(SettingError, match="bm25 has no setting 'nothing'"):
        build_model("bm25", parse_assignments(["nothing=2"]))
