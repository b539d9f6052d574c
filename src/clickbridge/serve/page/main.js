// The page: state, what happens when, and the address that leads back to it.

import * as api from "./api.js";
import { $, el } from "./dom.js";
import { clear, guarded } from "./errors.js";
import { showExperiments, showLearned } from "./learned.js";
import { column } from "./results.js";
import { suggestions } from "./suggestions.js";

const SHOWN = 10;
const state = { models: [], q: "", earlier: new Map(), taught: [], asked: null };

const spec = (name) => state.models.find((model) => model.name === name)?.spec ?? "";
const learns = (name) => spec(name).startsWith("online");
const list = (name) => `${name}\n${state.q}`;

// --- searching -------------------------------------------------------------------------------------

const run = guarded(async ({ moved = false } = {}) => {
  const q = $("query").value.trim();
  completion.close();
  state.asked?.abort();
  state.asked = new AbortController();
  const { signal } = state.asked;
  clear();
  state.q = q;
  remember();
  if (!q) {
    $("results").replaceChildren();
    $("similar").hidden = true;
    $("status").textContent = "";
    return;
  }
  const names = [$("left").value, $("right").value].filter(Boolean);
  const found = await Promise.all(names.map((name) => api.search(q, name, SHOWN, signal)));
  if (signal.aborted) return;
  found.forEach((answer, side) => Object.assign(answer, { side, spec: spec(answer.model), ids: answer.results.map((hit) => hit.doc_id) }));
  const earlier = (answer) => (moved ? state.earlier.get(list(answer.model)) : null);
  const columns = found.map((answer, side) => column(answer, q,
    side === 1 ? { ids: found[0].ids, name: found[0].model } : null, earlier(answer), teach));
  $("results").replaceChildren(...columns);
  $("results").dataset.columns = columns.length;
  for (const answer of found) state.earlier.set(list(answer.model), answer.ids);
  if (!moved) $("status").textContent = found.map((answer) => `${answer.model}: ${answer.results.length} results`).join(", ");
  await showSimilar(q, names, signal);
});

// Of the first model that has some.
async function showSimilar(q, names, signal) {
  let rows = [];
  for (const model of names) {
    try {
      rows = (await api.similar(q, model, signal)).results;
    } catch (error) {
      if (error.code !== "not_supported") throw error; // a model without likeness of queries has no chips
    }
    if (rows.length) break;
  }
  $("similar").replaceChildren(...rows.map((row) => el("button", { type: "button", class: "chip",
    onclick: () => { $("query").value = row.query; run(); } }, row.query)));
  $("similar").hidden = !rows.length;
}

// --- teaching --------------------------------------------------------------------------------------

const teach = guarded(async (found, hit) => {
  const event = { event_id: api.unique(), query: state.q, results: found.ids, clicks: [hit.doc_id], user: api.user() };
  await api.feedback(event);
  const title = hit.title || hit.doc_id;
  state.taught.unshift({ event_id: event.event_id, query: state.q, title });
  const when = [$("left").value, $("right").value].some(learns) ? "" : ` ${found.model} learns it at its next update.`;
  await run({ moved: true });
  say(`Taught: ${state.q} → ${title}.${when} `, state.taught[0]);
  document.querySelector(`[data-doc="${CSS.escape(hit.doc_id)}"] .title`)?.focus();
});

const undo = guarded(async (event) => {
  await api.undo(event.event_id);
  state.taught = state.taught.filter((other) => other.event_id !== event.event_id);
  if (view() === "learned") return open();
  await run({ moved: true });
  say(`Undone: ${event.query} → ${event.title}.`);
  $("query").focus();
});

function say(text, event) {
  $("status").replaceChildren(text, event ? el("button", { type: "button", id: "undo", onclick: () => undo(event) }, "Undo") : "");
}

// --- views and the address -------------------------------------------------------------------------

const view = () => (["learned", "experiments"].includes(location.hash.slice(1)) ? location.hash.slice(1) : "search");

const open = guarded(async () => {
  for (const part of document.querySelectorAll("main > section")) part.hidden = part.dataset.for !== view();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view()) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view() === "learned") await showLearned($("left").value, state.taught, undo);
  if (view() === "experiments") await showExperiments();
});

function remember() {
  const at = new URLSearchParams(Object.entries({ q: state.q, left: $("left").value, right: $("right").value }).filter(([, v]) => v));
  history.replaceState(null, "", `?${at}${location.hash}`);
}

function fillModels() {
  const asked = new URLSearchParams(location.search);
  const options = () => state.models.map((model) => el("option", { value: model.name }, `${model.name} (${model.spec})`));
  $("left").replaceChildren(...options());
  $("right").replaceChildren(el("option", { value: "" }, "nothing"), ...options());
  const known = (name) => state.models.some((model) => model.name === name);
  if (known(asked.get("left"))) $("left").value = asked.get("left");
  if (known(asked.get("right"))) $("right").value = asked.get("right");
  else if (!asked.has("q") && state.models.length > 1) $("right").value = state.models[1].name;
  $("query").value = asked.get("q") ?? "";
}

// --- keys ------------------------------------------------------------------------------------------

function step(forward) {
  const titles = [...document.querySelectorAll("#results .title")];
  const here = titles.findIndex((title) => title.closest("li") === document.activeElement.closest("li"));
  const next = titles[here + (forward ? 1 : -1)];
  if (next) next.focus();
  else if (!forward) $("query").focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const typing = event.target.matches("input, select, textarea");
  const inResults = event.target.closest("#results");
  if (event.key === "/" && !typing) $("query").select(), $("query").focus();
  else if (event.key === "ArrowDown" && (inResults || event.target === $("query"))) step(true);
  else if (event.key === "ArrowUp" && inResults) step(false);
  else if (event.key === "w" && inResults) event.target.closest("li")?.querySelector(".why-button").click();
  else if (event.key === "u" && !typing && state.taught.length) undo(state.taught[0]);
  else return;
  event.preventDefault();
});

// --- start -----------------------------------------------------------------------------------------

const completion = suggestions(() => $("left").value, () => run());

const start = guarded(async () => {
  clear();
  state.models = (await api.models()).models;
  $("key-form").hidden = true;
  fillModels();
  await open();
  if ($("query").value) await run();
});

$("search-form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
$("key-form").addEventListener("submit", (event) => { event.preventDefault(); api.useKey($("key").value); start(); });
for (const side of ["left", "right"]) $(side).addEventListener("change", () => run());
window.addEventListener("hashchange", open);
start();
