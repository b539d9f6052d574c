"""The names that columns usually have, in any case and with any punctuation, and how to find them in a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

# Each field of ours, with the names that others give it, the likeliest first. Names are folded: letters and digits
# alone, in lower case, so that `search_term`, `Search Term` and `searchTerm` are one.
_LOG = {
    "query": """query q searchterm searchquery searchterms searchstring searchtext searchphrase searchkeyword
        searchkeywords querytext querystring userquery rawquery keyword keywords phrase term terms search
        suchbegriff suchanfrage suchwort recherche busqueda""",
    "query_id": "queryid qid",
    "doc_id": """docid documentid doc document docno sku skuid productid productsku productcode product itemid itemsku
        item articleid articlenumber article asin ean gtin upc variantid offerid listingid contentid objectid resultid
        targetid clickeddocid clickedid clickedsku clickeditem clickedproduct clickedurl movieid entityid artikelnummer
        url pageurl link id""",
    "results": """results result resultids shownids shown shownresults displayed displayedids hits hitids resultlist
        ranking docids documents docs productids products itemids items skus serp""",
    "clicks": """clicks clicked clickcount clickcounts nclicks numclicks clickscount totalclicks isclicked isclick
        wasclicked hasclick clickflag click clickedids clickeddocs clickeddocids clickeditems clickedproducts
        clickedskus clickthroughs frequency freq count""",
    "impressions": """impressions impressioncount nimpressions numimpressions totalimpressions impr timesshown
        displays showncount shown""",
    "search_id": """searchid requestid impressionid serpid searchuuid searchuid queryuid queryuuid rankingid listid
        resultpageid searcheventid responseid""",
    "position": "position pos rank ordinal slot place resultposition resultrank clickposition",
    "user": """user userid visitor visitorid customer customerid client clientid uid anonid anonymousid cookie cookieid
        usertoken deviceid person personid shopper shopperid member memberid kunde besucher""",
    "session": "session sessionid sid visitid visit sess sessionuuid",
    "time": """time timestamp ts datetime clicktime clickedat eventtime eventtimestamp createdat created occurredat
        loggedat date day searchtime querytime searchedat localtime zeit zeitpunkt zeitstempel datum uhrzeit""",
    "event": "event eventtype eventname action actionname actiontype interaction interactiontype activity type",
}
_DOCUMENT = {
    "doc_id": """docid documentid docno doc id sku skuid productid productsku productcode product itemid itemsku item
        articleid articlenumber asin ean gtin upc variantid offerid listingid contentid objectid movieid entityid
        artikelnummer url link""",
    "title": """title name heading producttitle productname itemtitle itemname articletitle articlename documenttitle
        doctitle pagetitle displayname headline label subject bezeichnung titel""",
}
_FOLDED = {kind: {ours: tuple(names.split()) for ours, names in table.items()}
           for kind, table in (("log", _LOG), ("document", _DOCUMENT))}  # fmt: skip
# Where no usual name is there: names that end like one, as `shop_click_timestamp` and `opened_product_code`.
_LIKELY = {
    "query": re.compile(r"(query|search|keywords?|searchterms?|typed|phrase)(text|string|term|value)?$"),
    "doc_id": re.compile(r"(product|item|doc|document|article|content|listing)(id|sku|code|number|no|key)$|sku$"),
    "user": re.compile(r"(user|visitor|customer|client|shopper|member)(id|hash|key|token|number|no|uuid)?$"),
    "session": re.compile(r"session(id|key|uuid|token|hash)?$"),
    "time": re.compile(r"(timestamp|time|date|datum|zeit|zeitpunkt|zeitstempel)$"),
}


def folded(name: str) -> str:
    """A name in lower case, without spaces and punctuation."""
    return "".join(char for char in name.casefold() if char.isalnum())


def usual_columns(
    kind: str,
    names: Sequence[str],
    given: Mapping[str, str],
    wanted: Iterable[str],
    fits: Callable[[str, str], bool],
) -> dict[str, str]:
    """The file's name for each of our fields that it seems to have. Those in `given` are certain.

    `kind` is log or document. A column with our own name is that field. Other columns must have a usual name, or a name
    that ends like one, and their values must fit, according to `fits(ours, theirs)`. A nested value such as
    `search.term` is found by its whole name or by the last part of it.
    """
    out = dict(given)
    by_name: dict[str, str] = {}
    for name in names:  # whole names go before last parts
        by_name.setdefault(folded(name), name)
    for name in names:
        by_name.setdefault(folded(name.rpartition(".")[2]), name)
    fields = [ours for ours in wanted if ours not in out]
    out |= {ours: ours for ours in fields if ours in names and ours not in given.values()}
    for ours in fields:
        known = [by_name[usual] for usual in _FOLDED[kind][ours] if usual in by_name]
        likely = [name for word, name in by_name.items() if ours in _LIKELY and _LIKELY[ours].search(word)]
        theirs = next((name for name in (*known, *likely) if name not in out.values() and fits(ours, name)), None)
        if ours not in out and theirs is not None:
            out[ours] = theirs
    return out


def nested_value(record: Mapping[str, object], name: str) -> object:
    """The value of a key; for a nested key, by its dotted name."""
    if name in record:
        return record[name]
    value: object = record
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value


def dotted_names(record: Mapping[str, object], depth: int = 4) -> list[str]:
    """The keys of a record; nested keys are written with dots."""
    out: list[str] = []
    for name, value in record.items():
        out.append(name)
        if isinstance(value, dict) and depth > 1:
            out += [f"{name}.{inner}" for inner in dotted_names(value, depth - 1)]
    return out
