"""Logs and documents as people have them: each file, the options it needs, and what the reader makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

QUERIES = ["ny pizza", "new york pizza", "big apple", "pizza slice"] * 5
CLICKED = ["d2", "d2", "d1", "d2"] * 5
PAIRS = list(zip(QUERIES, CLICKED, strict=True))


def shop_csv() -> bytes:
    """Semicolons, Windows line ends, a byte-order mark."""
    rows = [f"2024-01-{i + 1:02d} 10:00:00;u{i % 3};{q};{d}" for i, (q, d) in enumerate(PAIRS)]
    return "\r\n".join(["ts;visitor;search_term;sku", *rows, ""]).encode("utf-8-sig")


def german_csv() -> bytes:
    """Latin-1, quoted cells, days before months."""
    rows = [f'"{i + 1}.1.2024 10:{i:02d}";"grüne Äpfel";"{d}"' for i, d in enumerate(CLICKED)]
    return "\r\n".join(['"Datum";"Suchbegriff";"Artikelnummer"', *rows]).encode("latin-1")


def excel_txt() -> bytes:
    """What a spreadsheet calls Unicode text: UTF-16, tabs, the hours of a clock of twelve."""
    rows = [f"1/{i + 1}/2024 {1 + i % 11}:30 PM\t{q}\t{d}" for i, (q, d) in enumerate(PAIRS)]
    return "\r\n".join(["Clicked At\tSearch Term\tProduct ID", *rows]).encode("utf-16")


def pipes_txt() -> bytes:
    rows = [f"{q}|{d}|3|40" for q, d in sorted(set(PAIRS))]
    return "\n".join(["Keyword|Item ID|Click Count|Impressions", *rows]).encode()


def shown_csv() -> bytes:
    """One row for each shown result; people's pages are mixed, and one searches the same again."""
    rows = []
    for page in range(8):
        for place, doc in enumerate(("d1", "d2", "d3"), 1):
            for user in ("u1", "u2"):
                rows.append(f"{user},{QUERIES[page // 2]},{doc},{place},{str(doc == 'd2').lower()}")
    return "\n".join(["user_id,query,product_id,position,clicked", *rows]).encode()


def events_jsonl() -> bytes:
    """Searches and clicks are events of their own; a click names its session alone."""
    lines: list[dict[str, Any]] = []
    for i, (query, doc) in enumerate(PAIRS):
        about = {"session_id": f"s{i}", "timestamp": 1_700_000_000_000 + i}
        lines.append({"event": "search", "query": query, "results": ["d1", "d2", "d3"], **about})
        lines.append({"event": "page_left", **about})
        lines.append({"event": "result_click", "item_id": doc, **about})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def pages_json() -> bytes:
    """An array over many lines; results are objects that say whether they were clicked."""
    pages = [{"q": q, "results": [{"id": x, "clicked": x == d} for x in ("d1", "d2", "d3")]} for q, d in PAIRS]
    return json.dumps(pages, indent=2).encode()


def triples_jsonl() -> bytes:
    rows = ({"q": q, "sku": d, "ts": 1_700_000_000_000 + i} for i, (q, d) in enumerate(PAIRS))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def nested_jsonl() -> bytes:
    rows = (
        {"search": {"term": q}, "target": {"product": {"sku": d}}, "meta": {"timestamp": f"2024-01-{i + 1:02d}"}}
        for i, (q, d) in enumerate(PAIRS)
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def lists_csv() -> bytes:
    """A page a row, its ids in one cell."""
    rows = [f"{q},d1|d2|d3,{d}|" for q, d in PAIRS]
    return "\n".join(["query,shown,clicked", *rows]).encode()


def sep_csv() -> bytes:
    """The first line of a spreadsheet's own, line ends inside of quotes, a delimiter at the end of lines."""
    rows = [f'"{q.replace(" ", chr(10))}";{d};' for q, d in PAIRS]
    return "\r\n".join(["sep=;", "Query;Doc ID;", *rows]).encode()


def repeated_csv() -> bytes:
    """Every click was exported twice."""
    rows = [f"2024-01-{i + 1:02d},{q},{d}" for i, (q, d) in enumerate(PAIRS) for _ in range(2)]
    return "\n".join(["time,query,doc_id", *rows]).encode()


def products_csv() -> bytes:
    """Names with blanks, HTML, Latin-1."""
    rows = [
        'd1;New York City;"<p>The big apple, a city of pizza &amp; bagels</p>";3,50',
        "d2;Pizza;New York style <b>pizza</b> by the slice, jalape\u00f1os;4,00",
        "d3;Apple pie;<ul><li>Baked</li><li>with big apples</li></ul>;5,20",
    ]
    return "\r\n".join(["SKU;Product Name;Description;Price", *rows]).encode("latin-1")


def capitals_csv() -> bytes:
    """The log's ids are in capitals, the documents' are not."""
    return "\n".join(["query,doc_id", *(f"{q},{d.upper()}" for q, d in PAIRS)]).encode()


def floats_csv() -> bytes:
    """A spreadsheet made numbers of the ids."""
    return "\n".join(["query,sku", *(f"{q},{d[1:]}001.0" for q, d in PAIRS)]).encode()


def numbers_csv() -> bytes:
    """Documents whose ids are the digits of `floats.csv`."""
    return b"sku,name\n1001,New York City\n2001,Pizza\n3001,Apple pie\n"


def stray_jsonl() -> bytes:
    """Half of the clicks are on documents that the page did not show."""
    pages = ({"query": q, "results": ["d1", "d3"], "clicks": [d]} for q, d in PAIRS)
    return "".join(json.dumps(page) + "\n" for page in pages).encode()


def compact_csv() -> bytes:
    """Dates of eight digits."""
    rows = [f"{q},{d},202401{i + 1:02d}" for i, (q, d) in enumerate(PAIRS)]
    return "\n".join(["query,doc_id,day", *rows]).encode()


def seconds_jsonl() -> bytes:
    """Seconds since 1970."""
    rows = ({"query": q, "doc_id": d, "time": 1_700_000_000 + i} for i, (q, d) in enumerate(PAIRS))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def unclear_csv() -> bytes:
    """Nothing tells the day from the month."""
    rows = [f"{q},{d},0{1 + i % 9}/0{1 + i % 7}/2024" for i, (q, d) in enumerate(PAIRS)]
    return "\n".join(["query,doc_id,date", *rows]).encode()


def nameless_csv() -> bytes:
    """Column names that nobody can guess."""
    return "\n".join(["a,b,c", *(f"{i},{q},{d}" for i, (q, d) in enumerate(PAIRS))]).encode()


FAULTY = {
    "capitals.csv": capitals_csv,
    "floats.csv": floats_csv,
    "numbers.csv": numbers_csv,
    "stray.jsonl": stray_jsonl,
    "compact.csv": compact_csv,
    "seconds.jsonl": seconds_jsonl,
    "unclear.csv": unclear_csv,
    "nameless.csv": nameless_csv,
}
"""Files that are warned of or refused."""
LOGS = {
    "shop.csv": (shop_csv, "--delimiter semicolon --columns query=search_term,doc_id=sku,user=visitor,time=ts"),
    "german.csv": (
        german_csv,
        "--encoding cp1252 --delimiter semicolon --columns query=Suchbegriff,doc_id=Artikelnummer,time=Datum "
        "--time-format '%d.%m.%Y %H:%M'",
    ),
    "excel.txt": (
        excel_txt,
        "--encoding utf-16 --columns 'query=Search Term,doc_id=Product ID,time=Clicked At' "
        "--time-format '%m/%d/%Y %I:%M %p'",
    ),
    "pipes.txt": (
        pipes_txt,
        "--delimiter pipe --columns 'query=Keyword,doc_id=Item ID,clicks=Click Count,impressions=Impressions'",
    ),
    "shown.csv": (shown_csv, "--format shown --columns doc_id=product_id,user=user_id,clicks=clicked"),
    "events.jsonl": (
        events_jsonl,
        "--format events --columns doc_id=item_id,session=session_id,time=timestamp --time-unit ms",
    ),
    "pages.json": (pages_json, "--columns query=q"),
    "triples.jsonl": (triples_jsonl, "--format triples --columns query=q,doc_id=sku,time=ts --time-unit ms"),
    "nested.jsonl": (
        nested_jsonl,
        "--format triples --columns query=search.term,doc_id=target.product.sku,time=meta.timestamp",
    ),
    "lists.csv": (lists_csv, "--format sessions --columns results=shown,clicks=clicked"),
    "sep.csv": (sep_csv, "--delimiter semicolon --columns 'query=Query,doc_id=Doc ID'"),
    "repeated.csv": (repeated_csv, ""),
}
"""Logs, each with the options that say what is guessed of it."""
DOCUMENTS = "--encoding cp1252 --delimiter semicolon --doc-columns 'doc_id=SKU,title=Product Name'"


def write_all(folder: Path) -> None:
    """All of them, as files."""
    for name, (make, _) in LOGS.items():
        (folder / name).write_bytes(make())
    for name, make_faulty in FAULTY.items():
        (folder / name).write_bytes(make_faulty())
    (folder / "products.csv").write_bytes(products_csv())
