"""Schemathesis over the OpenAPI schema: whatever it makes of it, no answer is a 5xx.

`CLICKBRIDGE_EXAMPLES=500` makes more of each.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.generation import GenerationMode

from running import Running

EXAMPLES = int(os.environ.get("CLICKBRIDGE_EXAMPLES", "15"))


def test_no_request_is_a_server_error(serve: Callable[..., Running]) -> None:
    live = serve("bm25+pls", "online:bm25")
    schema = schemathesis.openapi.from_dict(live.get("/openapi.json").json())
    asked: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            )
            def ask(case: schemathesis.Case) -> None:
                response = case.call(base_url=live.url)
                assert response.status_code < 500, (case.as_curl_command(), response.text)
                asked.setdefault(case.operation.label, set()).add(response.status_code)
                if response.status_code >= 400:
                    assert {"error", "request_id"} <= set(response.json())

            try:
                ask()
            except Exception as error:
                if type(error).__name__ not in ("Unsatisfiable", "SkipTest"):
                    raise
    assert len(asked) >= 20
    assert sum(200 in codes for codes in asked.values()) >= 10, asked
    assert live.get("/health").status_code == 200
