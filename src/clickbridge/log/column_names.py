"""The names that columns usually have, in any case and with any punctuation, and how to find them in a file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from clickbridge.log.translated_names import CODES, DOUBTFUL, KINDS, NAMES

# Each field of ours, with the names that others give it, the likeliest first. Names are folded: letters and digits
# alone, in lower case and without accents, so that `search_term`, `Search Term` and `searchTerm` are one. Those of
# other languages follow, but for an address, which is the last resort.
_LOG = {
    "query": """query q searchterm searchquery searchterms searchstring searchtext searchphrase searchkeyword
        searchkeywords querytext querystring userquery rawquery keyword keywords phrase term terms search
        suchbegriff suchanfrage suchwort recherche busqueda queries topqueries searchqueries""",
    "query_id": "queryid qid",
    "doc_id": """docid documentid doc document docno sku skuid productid productsku productcode product itemid itemsku
        item articleid articlenumber article asin ean gtin upc variantid offerid listingid contentid objectid resultid
        targetid clickeddocid clickeddocumentid clickedid clickedsku clickeditem clickedproduct clickeddoc
        clickeddocument clickedarticle openedarticle openeddocument selectedproduct selecteditem clickedurl movieid
        entityid artikelnummer""",
    "results": """results result resultids shownids shown shownresults displayed displayedids hits hitids resultlist
        ranking docids documents docs productids products itemids items skus serp shownproducts returned returnedids
        returnedskus returnedproducts returneditems returneddocs returneddocuments returnedresults showndocs
        showndocuments shownitems shownskus displayedproducts displayeditems displayeddocuments""",
    "clicks": """clicks clicked clickcount clickcounts nclicks numclicks clickscount totalclicks isclicked isclick
        wasclicked hasclick clickflag click clickedids clickeddocs clickeddocids clickeditems clickedproducts
        clickedskus clickthroughs frequency freq count""",
    "impressions": """impressions impressioncount nimpressions numimpressions totalimpressions impr timesshown
        displays showncount shown""",
    "search_id": """searchid requestid impressionid serpid searchuuid searchuid queryuid queryuuid rankingid listid
        resultpageid searcheventid responseid""",
    "position": "position pos rank ordinal slot place resultposition resultrank clickposition",
    "user": """user userid visitor visitorid customer customerid client clientid uid anonid anonymousid cookie cookieid
        usertoken deviceid person personid shopper shopperid member memberid custid userpseudoid fullvisitorid
        distinctid kunde besucher""",
    "session": "session sessionid sid visitid visit sess sessionuuid",
    "time": """time timestamp ts datetime clicktime clickedat eventtime eventtimestamp createdat created occurredat
        loggedat date day searchtime querytime searchedat localtime zeit zeitpunkt zeitstempel datum uhrzeit""",
    "event": "event eventtype eventname action actionname actiontype interaction interactiontype activity type",
}
_DOCUMENT = {
    "doc_id": """docid documentid docno doc id sku skuid productid productsku productcode product itemid itemsku item
        articleid articlenumber asin ean gtin upc variantid offerid listingid contentid objectid movieid entityid
        artikelnummer""",
    "title": """title name heading producttitle productname itemtitle itemname articletitle articlename documenttitle
        doctitle pagetitle displayname headline label subject bezeichnung titel""",
}
_ADDRESSES = {"log": "url pageurl link", "document": "url link"}


def _all_names(kind: str, table: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The names of each field, in every language."""
    of_ids = (KINDS, _ADDRESSES[kind]) if kind == "log" else (_ADDRESSES[kind], KINDS, CODES)
    last = {"doc_id": " ".join(of_ids)}
    words = {ours: f"{names} {NAMES.get(ours, '')} {last.get(ours, '')}".split() for ours, names in table.items()}
    return {ours: tuple(dict.fromkeys(names)) for ours, names in words.items()}


_FOLDED = {kind: _all_names(kind, table) for kind, table in (("log", _LOG), ("document", _DOCUMENT))}
_EVERY = frozenset(word for table in _FOLDED.values() for names in table.values() for word in names)
# Where no usual name is there: names that end like one, as `shop_click_timestamp` and `opened_product_code`.
_LIKELY = {
    "query": re.compile(r"(query|search|keywords?|searchterms?|typed|phrase)(text|string|term|value)?$"
                        r"|(such(begriff|anfrage|wort)|zoek(term|woord|opdracht))(e?n|e)?$"),
    "doc_id": re.compile(r"(product|item|doc|document|article|content|listing)(id|sku|code|number|no|key)$|sku$"
                         r"|(artikel|produkt|dokument)(nr|nummer|id|code)$"),
    "user": re.compile(r"(user|visitor|customer|client|shopper|member)(id|hash|key|token|number|no|uuid)?$"),
    "session": re.compile(r"session(id|key|uuid|token|hash)?$"),
    "time": re.compile(r"(timestamp|time|date|datum|zeit|zeitpunkt|zeitstempel|tijdstip)$|^(fecha|horodatage)"),
}  # fmt: skip


_GENERIC = ("id", "name", "label", "subject", "heading", "key", "url", "link", "nom", "nome", "nombre", "naam")
"""Last parts of nested names that say nothing without their parent: `search.id` and `brand.name` are no document's."""
_OF_DOCUMENT = (
    "product", "item", "doc", "document", "article", "content", "listing", "result", "hit", "target", "object", "page",
    "offer", "movie", "asset", "entity", "clicked", "clickeddoc", "clickeddocument", "clickeditem", "clickedproduct",
    "attributes", "attrs", "fields", "data", "source",
)  # fmt: skip
_OF_OTHERS = (
    "brand", "author", "category", "categories", "seller", "vendor", "merchant", "publisher", "supplier", "parent",
)  # fmt: skip
_AROUND = ("user", "search", "session", "query", "event", "store", "shop")
"""Parents that stand for the document; things beside it, which have ids and names of their own; what happened to it."""


def folded(name: str) -> str:
    """A name in lower case, without accents, spaces and punctuation.

    >>> folded("Término de búsqueda")
    'terminodebusqueda'
    """
    return "".join(char for char in without_accents(name.casefold()) if char.isalnum())


def without_accents(text: str) -> str:
    """Letters without what is written above or below them: `sì` and `si` are one."""
    if text.isascii():
        return text
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFC", plain)


def doubt(ours: str, name: str) -> str | None:
    """What the values of a column must be, besides fitting the field, because its name alone does not say enough."""
    return DOUBTFUL.get(ours, {}).get(folded(name))


def is_kind_name(name: str) -> bool:
    """Whether a column may hold the kinds of documents, or codes of something else, instead of their ids."""
    return folded(name) in f"{KINDS} {CODES}".split()


def usual_columns(
    kind: str,
    names: Sequence[str],
    given: Mapping[str, str],
    wanted: Iterable[str],
    fits: Callable[[str, str], bool],
    filled: Callable[[str], bool] = lambda name: True,
) -> dict[str, str]:
    """The file's name for each of our fields that it seems to have. Those in `given` are certain.

    `kind` is log, document, or result for an object that stands for a document. A column with our own name is that
    field, unless its values are objects that have the value inside. Other columns must have a usual name, or a name
    that ends like one, and their values must fit, according to `fits(ours, theirs)`; of several, one that is `filled`
    goes first: `user_id` may be empty where `device_id` is not. A nested value such as `search.term` is found by its
    whole name, by its last two parts or, if that says enough, by the last part.
    """
    out = dict(given)
    whole, nested = _by_name(names)
    fields = [ours for ours in wanted if ours not in out]
    own = [ours for ours in fields if ours in names and ours not in given.values()]
    out |= {ours: ours for ours in own if fits(ours, ours)}
    for ours in fields:
        if ours in out:
            continue
        fitting = [
            name
            for name in _candidates(kind, ours, whole, nested, out)
            if name not in out.values() and fits(ours, name)
        ]
        if fitting:
            out[ours] = next(filter(filled, fitting), fitting[0])
        elif ours in own and ours != "event":  # objects here make no log of events
            out[ours] = ours
    return out


def usual_names(ours: str, names: Sequence[str]) -> list[str]:
    """The columns of a log that have a usual name of this field, whatever their values are."""
    whole, nested = _by_name(names)
    return [name for word in _FOLDED["log"][ours] for name in (*whole.get(word, ()), *nested.get(word, ()))]


def is_usual_name(name: str) -> bool:
    """Whether columns of logs or documents usually have this name."""
    return folded(name) in _EVERY


def is_likely_name(name: str) -> bool:
    """Whether a name ends like those that columns usually have."""
    return any(form.search(folded(name)) for form in _LIKELY.values())


def _by_name(names: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The columns by their whole name, and nested ones by its last two parts and by the last."""
    whole: dict[str, list[str]] = {}
    nested: dict[str, list[str]] = {}
    for name in names:
        whole.setdefault(folded(name), []).append(name)
    for name in names:
        *before, last = name.rsplit(".", 2)
        if before:
            for word in (folded(before[-1] + last), folded(last)):
                nested.setdefault(word, []).append(name)
    return whole, nested


def _candidates(
    kind: str, ours: str, whole: Mapping[str, list[str]], nested: Mapping[str, list[str]], found: Mapping[str, str]
) -> Iterator[str]:
    """The columns that may be a field, the likeliest first."""
    usual = _FOLDED["document" if kind == "document" else "log"][ours]
    home = found.get("doc_id", "").rpartition(".")[0]

    def inside(word: str) -> list[str]:
        return [name for name in nested.get(word, ()) if _says_enough(kind, ours, word, name, home)]

    if kind == "document":
        # A field of the document itself goes before that of anything it mentions; its address, and what may name its
        # kind, are the last resorts.
        late = {*_ADDRESSES[kind].split(), *KINDS.split()}
        for words in ([word for word in usual if word not in late], [word for word in usual if word in late]):
            yield from (name for word in words for name in whole.get(word, ()))
            yield from (name for word in words for name in inside(word))
    else:
        for word in usual:
            yield from (*whole.get(word, ()), *inside(word))
    if ours == "doc_id" and kind == "result":
        yield from whole.get("id", ())
    if ours in _LIKELY:
        for word in dict.fromkeys((*whole, *nested)):
            if _LIKELY[ours].search(word):
                yield from (*whole.get(word, ()), *inside(word))
    if ours == "doc_id" and kind == "log":
        yield from whole.get("id", ())  # in a log it may be that of the record


def _says_enough(kind: str, ours: str, word: str, name: str, home: str) -> bool:
    """Whether a nested column may go by this part of its name. `home` is the parent of the document id."""
    before, _, last = name.rpartition(".")
    if word != folded(last):
        return True
    parent = folded(before.rpartition(".")[2])
    if ours == "title":
        if home and before == home:
            return True
        return parent in _OF_DOCUMENT if word in _GENERIC else parent not in (*_OF_OTHERS, *_AROUND)
    if word in _GENERIC:
        return parent in _OF_DOCUMENT and (kind == "document" or word != "id")
    return ours != "doc_id" or parent not in _OF_OTHERS


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
