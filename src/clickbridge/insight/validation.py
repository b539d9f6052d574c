"""Checks whether a log is good enough to learn from. Each check has a name, counts, examples and its consequences.

A check passes, warns (learning works, but something is lost) or fails (what is learned would be wrong). Queries are
personal data: they are shown only if they are the problem, and redacted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clickbridge.graph.oddities import ONE_YEAR
from clickbridge.insight.log_counts import EXAMPLES, LogCounts, count_log
from clickbridge.log.documents import DocumentReader
from clickbridge.log.readers import LogReader
from clickbridge.log.row_events import OUT_OF_ORDER
from clickbridge.progress import Progress, silent
from clickbridge.wording import agree, count_of

PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
ENOUGH_CLICKS = 1000
"""Clicks below which models can hardly be told apart."""
FEW_CLICKS = 50
A_MINUTE, A_SHARE = 30, 0.05
"""Searches within one minute, and share of all records, beyond which a user is hardly a person."""
SINGLES, UNMATCHED, OUTSIDE = 0.9, 0.5, 0.5
"""Shares from which on a check fails or warns: queries seen once, clicks without a document, clicks outside."""


@dataclass(frozen=True)
class Check:
    name: str
    verdict: str
    found: str
    """What was counted, in words."""
    count: int = 0
    of: int = 0
    costs: str = ""
    """What it costs where it does not pass."""
    examples: tuple[str, ...] = ()


def validate(
    log: LogReader,
    documents: DocumentReader | None = None,
    progress: Progress = silent,
) -> list[Check]:
    """Runs all checks of a log and its documents. The readers' own limits of unusable lines are not applied, since that
    share is one of the checks."""
    return checks_of(log, count_log(log, progress), documents)


def checks_of(log: LogReader, counts: LogCounts, documents: DocumentReader | None = None) -> list[Check]:
    known = None if documents is None or not documents.paths else {d.doc_id for d in documents if d.fields}
    out = [unreadable("readable lines", log.rejects.count, log.rejects.lines, [r.reason for r in log.rejects.first])]
    if documents is not None and known is not None:
        lost = documents.rejects
        out.append(unreadable("readable documents", lost.count, lost.lines, [r.reason for r in lost.first]))
    out += [enough_clicks(counts), times(counts), time_order(counts), future_times(counts), repeats(log, counts)]
    out += [clicks_outside(counts), document_ids(counts, known), seen_once(counts), robots(counts), positions(counts)]
    out += [one_document_pages(counts), languages(counts), personal_data(counts), *event_notes(log)]
    return out


def worst(checks: list[Check]) -> str:
    verdicts = {check.verdict for check in checks}
    return FAIL if FAIL in verdicts else WARN if WARN in verdicts else PASS


# --- the checks --------------------------------------------------------------------------------------


def unreadable(name: str, lost: int, lines: int, reasons: list[str]) -> Check:
    share = lost / max(lines, 1)
    verdict = FAIL if share > 0.01 else WARN if lost else PASS
    costs = "what cannot be read is not learned; above 1% ingest refuses the file: name columns, encoding or format"
    return Check(name, verdict, f"{lost:,} of {lines:,} cannot be used", lost, lines, costs, tuple(reasons[:EXAMPLES]))


def enough_clicks(c: LogCounts) -> Check:
    verdict = FAIL if c.clicks < FEW_CLICKS else WARN if c.clicks < ENOUGH_CLICKS else PASS
    costs = f"under {ENOUGH_CLICKS:,} clicks models can hardly be compared: collect more, or use bm25 with --docs"
    found = f"{count_of(c.clicks, 'click')} in {count_of(c.records, 'record')}"
    return Check("clicks", verdict, found, c.clicks, c.records, costs)


def times(c: LogCounts) -> Check:
    span = "" if c.first is None or c.last is None else f", over {(c.last - c.first) / 86_400:,.1f} days"
    verdict = PASS if c.timed == c.records and c.timed else WARN
    costs = "without times a model can neither be tested on later clicks nor forget old ones: --columns time=…"
    if c.last is not None and c.last < ONE_YEAR:
        verdict, span = WARN, f"{span}, all of them in 1970"
        costs = "from the start of the log is fine; days of a spreadsheet, such as 45717.5, are to be written as dates"
    found = f"{count_of(c.timed, 'record', 'have', of=c.records)} a time{span}"
    return Check("times", verdict, found, c.timed, c.records, costs)


def time_order(c: LogCounts) -> Check:
    n = c.backwards.count
    costs = "harmless for learning; a sign of merged files or mixed time zones"
    verdict = WARN if n > 0.01 * max(c.timed, 1) else PASS
    found = f"{n:,} {agree(n, 'go')} back in time"
    return Check("times in order", verdict, found, n, c.timed, costs, tuple(c.backwards.examples))


def future_times(c: LogCounts) -> Check:
    n = c.future.count
    costs = "the split by time and --half-life count from a wrong last day: check --time-unit and --time-format"
    verdict = FAIL if n > 0.01 * max(c.timed, 1) else WARN if n else PASS
    found = f"{n:,} {agree(n, 'lie')} in the future"
    return Check("times in the past", verdict, found, n, c.timed, costs, tuple(c.future.examples))


def repeats(log: LogReader, c: LogCounts) -> Check:
    n = log.repeated
    costs = "each repetition counts as another click: --dedupe leaves them out"
    verdict = WARN if n > 0.001 * max(c.records, 1) else PASS
    found = f"{count_of(n, 'record', 'repeat')} the one before, with the same time"
    return Check("duplicates", verdict, found, n, c.records, costs)


def clicks_outside(c: LogCounts) -> Check:
    n, of = c.outside.count, c.outside.count + sum(c.positions.values())
    costs = "a click on what the page did not show says nothing about the page: do results and clicks use the same ids?"
    verdict = FAIL if n > OUTSIDE * max(of, 1) else WARN if n > 0.01 * max(of, 1) else PASS
    outside = f"{count_of(n, 'click', 'are', of=of)} outside of the results"
    found = outside if c.shown_pages else "no page says what was shown"
    return Check("clicks inside results", verdict, found, n, of, costs, tuple(c.outside.examples))


def document_ids(c: LogCounts, known: set[str] | None) -> Check:
    name, costs = "document ids", "words cannot be matched with documents that have no text: do the ids agree?"
    if known is None:
        text = "the log itself brings titles or texts" if c.own_documents else "no text: give --docs"
        found = f"{count_of(len(c.documents), 'clicked document')}, {text}"
        return Check(name, PASS if c.own_documents else WARN, found, 0, len(c.documents), costs)
    strange = [doc_id for doc_id, _ in c.documents.most_common() if doc_id not in known]
    n, of = sum(c.documents[doc_id] for doc_id in strange), sum(c.documents.values())
    verdict = FAIL if n > UNMATCHED * max(of, 1) else WARN if n > 0.01 * max(of, 1) else PASS
    found = f"{count_of(n, 'click', 'are', of=of)} on ids that no document has"
    return Check(name, verdict, found, n, of, costs, tuple(strange[:EXAMPLES]))


def seen_once(c: LogCounts) -> Check:
    n, of = sum(count == 1 for count in c.queries.values()), len(c.queries)
    costs = "a query typed once has no clicks to remember: models of words (bm25+pls) gain more than memory of clicks"
    verdict = WARN if n > SINGLES * max(of, 1) else PASS
    return Check("queries seen again", verdict, f"{count_of(n, 'query', 'occur', of=of)} once", n, of, costs)


def robots(c: LogCounts) -> Check:
    name, costs = "robots", "a program's clicks outnumber those of people: fit with --set max_clicks_per_user=…"
    if not c.users:
        found = "no users: robots cannot be found, and --min-users cannot be used"
        costs = "one person, or a program, may have made many of the clicks: --columns user=… or session=…"
        return Check(name, WARN, found, 0, c.records, costs)
    fast = {u for u, rate in c.users.items() if rate.most >= A_MINUTE}
    heavy = {u for u, rate in c.users.items() if rate.records > max(A_SHARE * c.records, 100)}
    suspect = fast | heavy
    n = sum(c.users[u].records for u in suspect)
    verdict = FAIL if n > 0.5 * c.records else WARN if n else PASS
    found = (
        f"{count_of(len(suspect), 'user', 'have', of=len(c.users))} improbable rates, "
        f"with {n:,} of {count_of(c.records, 'record')} "
        f"({A_MINUTE} in a minute, or {A_SHARE:.0%} of all)"
    )
    most = max((c.users[u].most for u in fast), default=0)
    examples = (f"{most:,} searches in one minute",) if fast else ()
    return Check(name, verdict, found, len(suspect), len(c.users), costs, examples)


def positions(c: LogCounts) -> Check:
    name, costs = "positions", "without the shown order clicks cannot be corrected for position (--response pbm, ips)"
    total = sum(c.positions.values())
    if not total:
        return Check(name, WARN, "no click has a known position", 0, c.clicks, costs)
    last = next(place for place in sorted(c.positions) if _up_to(c, place) >= 0.99 * total)
    shares = ", ".join(f"{p}: {c.positions[p] / total:.0%}" for p in range(1, min(last, 10) + 1))
    first = c.positions[1] / total
    verdict = WARN if first > 0.9 and total >= 100 else PASS
    costs = "nearly all clicks are on the first result: the position decides, not the people; vary the order at times"
    found = f"clicks by position: {shares}; 99% of them are at or above position {last}"
    return Check(name, verdict, found, total, c.clicks, costs)


def _up_to(c: LogCounts, place: int) -> int:
    return sum(count for p, count in c.positions.items() if p <= place)


def one_document_pages(c: LogCounts) -> Check:
    n, of = c.one_document.count, c.shown_pages
    costs = "a page of one result has no order to learn: were only the clicked ones logged as shown?"
    verdict = FAIL if of and n > 0.9 * of else WARN if n > 0.5 * max(of, 1) else PASS
    return Check("pages of one document", verdict, f"{count_of(n, 'page', 'show', of=of)} one document", n, of, costs)


def languages(c: LogCounts) -> Check:
    total = c.languages.total()
    told = {n: k for n, k in c.languages.items() if n not in ("no letters", "Latin letters, language not recognised")}
    others = total - max(told.values(), default=0) if told else 0
    mixed = sum(k > 0.2 * max(sum(told.values()), 1) for k in told.values()) > 1
    costs = "one stemmer and one list of stop words are used for all queries: fit with --set language=…, or none"
    found = ", ".join(f"{name} {count:,}" for name, count in c.languages.most_common(4)) or "no query has text"
    return Check("languages", WARN if mixed else PASS, found, others if mixed else 0, total, costs)


def personal_data(c: LogCounts) -> Check:
    n, of = c.personal.count, len(c.queries)
    costs = "others may see them in similar queries and reports: ingest with --redact learned, fit with --min-users"
    found = f"{count_of(n, 'query', 'hold', of=of)} an e-mail address, a phone or card number, or a long number"
    return Check("personal data", WARN if n else PASS, found, n, of, costs, tuple(c.personal.examples))


def event_notes(log: LogReader) -> Iterator[Check]:
    """Notes from joining events into pages, such as ids of the engine instead of documents, and whether positions start
    at 0 or 1."""
    if not any(layout.format in ("ubi", "metarank", "events", "shown") for layout in log.layouts.values()):
        return
    internal = [note for note in log.notes if "object_id_field" in note or "docId" in note or "internal" in note]
    costs = "results known by the engine's own numbers match no document: set object_id_field in the UBI plugin"
    found = internal[0] if internal else "results and clicks name documents"
    yield Check("UBI document ids", WARN if internal else PASS, found, len(internal), len(log.notes), costs)
    zero = [note for note in log.notes if "counted from 0" in note]
    yield Check("UBI ordinals", PASS, zero[0] if zero else "places on a page are counted from 1, or not needed")
    others = [note for note in log.notes if note not in (*internal, *zero)]
    early = [note for note in others if OUT_OF_ORDER in note]
    if others:
        costs = "clicks before the first search belong to no query: sort the log by time, oldest first" if early else ""
        found = "; ".join((early + [note for note in others if note not in early])[:EXAMPLES])
        yield Check("joined events", WARN if early else PASS, found, costs=costs)
