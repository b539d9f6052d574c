"""What is taken for a person's, and what is not."""

from __future__ import annotations

import pytest

from clickbridge.log.personal import looks_personal, redacted


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("mail jo.doe+x@mail.example.org now", "mail [e-mail] now"),
        ("jo@example.org", "[e-mail]"),
        ("4111 1111 1111 1111", "[card]"),
        ("visa 4111-1111-1111-1111 lost", "visa [card] lost"),
        ("call +49 171 1234567", "call [phone]"),
        ("0171/1234567", "[phone]"),
        ("(030) 123456", "[phone]"),
        ("01 23456", "[phone]"),
        ("555-867-5309", "[phone]"),
        ("0044 20 7946 0958", "[phone]"),
        ("order 123456789", "order [number]"),
        ("isbn 9780306406157", "isbn [number]"),
        ("two 123456789 and a@b.co", "two [number] and [e-mail]"),
    ],
)
def test_what_names_a_person(text: str, without: str) -> None:
    assert redacted(text) == without
    assert looks_personal(text)
    assert not looks_personal(without)


@pytest.mark.parametrize(
    "text",
    ["ny pizza", "iphone 15 pro max 256 gb", "2024-01-31", "sku 9713872", "windows 10 21h2", "1080 1920 2560", "a@b",
     "@home", "1/2/3/4/5/6/7", "", "12345678", "rtx 3080 10gb 2020 2021", "ww2 1939-1945", "größe 42 44 46 48"],
)  # fmt: skip
def test_what_does_not(text: str) -> None:
    assert redacted(text) == text
    assert not looks_personal(text)
