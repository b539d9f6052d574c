// One column of results: what moved against another list, why each was found, and a click that teaches.

import * as api from "./api.js";
import { bar, el } from "./dom.js";
import { guarded } from "./errors.js";

const KINDS = { word: "code", query: "q", title: "cite" };

const spoken = (places, from) =>
  places === null ? `not ${from}` : places === 0 ? `same place ${from}` :
    `${Math.abs(places)} ${places > 0 ? "higher" : "lower"} than ${from}`;

// How far each result moved: `before` are ids in their order, `from` says where.
function badge(doc, place, before, from) {
  if (!before) return null;
  const old = before.indexOf(doc);
  const moved = old < 0 ? null : old - place;
  if (moved === 0) return null;
  const kind = moved === null ? "new" : moved > 0 ? "up" : "down";
  const text = moved === null ? "new" : `${moved > 0 ? "▲" : "▼"} ${Math.abs(moved)}`;
  return el("span", { class: `moved ${kind}`, title: spoken(moved, from) },
    el("span", { "aria-hidden": "true" }, text), el("span", { class: "quiet" }, spoken(moved, from)));
}

const capital = (text, place) => (place ? text : text.charAt(0).toUpperCase() + text.slice(1));

const sentence = (reason) =>
  reason.spans.map(([kind, text], place) => (KINDS[kind] ? el(KINDS[kind], {}, text) : capital(text, place)));

function whyPanel(id, reasons) {
  const lines = reasons.map((reason) => el("li", {}, bar(reason.share),
    el("span", {}, sentence(reason))));
  return el("div", { class: "why", id },
    lines.length ? el("ul", {}, lines) : el("p", {}, "The model cannot explain this result."));
}

function result(found, q, hit, place, marks, teach) {
  const id = `why-${found.side}-${place}`;
  const toggle = guarded(async (event) => {
    const button = event.currentTarget, item = button.closest("li");
    const open = item.querySelector(".why");
    if (open) {
      open.remove();
      button.setAttribute("aria-expanded", "false");
      return;
    }
    const told = await api.why(q, hit.doc_id, found.model);
    if (item.querySelector(".why")) return;
    item.append(whyPanel(id, told.reasons));
    button.setAttribute("aria-expanded", "true");
  });
  return el("li", { class: "result", "data-doc": hit.doc_id },
    el("div", { class: "line" },
      el("button", { type: "button", class: "title", title: "Choose this result: the models learn from it",
        onclick: () => teach(found, hit) }, hit.title || hit.doc_id),
      marks,
      el("button", { type: "button", class: "why-button", "aria-expanded": "false", "aria-controls": id,
        "aria-label": `Why ${hit.title || hit.doc_id}?`, onclick: toggle }, "why?")),
    hit.snippet ? el("p", { class: "snippet" }, hit.snippet) : null);
}

// `found` is an answer of /search with its side and spec; `against` is the list beside it, `earlier` the last one.
export function column(found, q, against, earlier, teach) {
  const items = found.results.map((hit, place) => result(found, q, hit, place, [
    badge(hit.doc_id, place, earlier, "before"),
    badge(hit.doc_id, place, against?.ids, `in ${against?.name}`),
  ], teach));
  const heading = `column-${found.side}`;
  return el("section", { class: "column", "aria-labelledby": heading },
    el("h2", { id: heading }, found.model, el("span", { class: "spec" }, ` ${found.spec} · ${found.took_ms.toFixed(1)} ms`)),
    items.length ? el("ol", {}, items) : el("p", { class: "empty" }, `${found.model} finds nothing for this query.`));
}
