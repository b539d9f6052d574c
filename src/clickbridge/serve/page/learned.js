// What clicks have taught: pairs of words, new synonyms, the queries that taught most; and the experiment.

import * as api from "./api.js";
import { $, bar, el, number, table } from "./dom.js";

export async function showLearned(model, taught, undo) {
  const found = await api.learned(model);
  const out = [];
  if (taught.length) {
    out.push(el("h3", {}, "Taught by you, here"), el("ul", { class: "taught" }, taught.map((event) => el("li", {},
      el("q", {}, event.query), " → ", event.title, " ",
      el("button", { type: "button", class: "small", onclick: () => undo(event) }, "Undo")))));
  }
  out.push(el("p", {}, `${found.model} (${found.spec}), with ${number(found.events)} ${found.events === 1 ? "event" : "events"} of this service.`));
  if (found.pairs.length) {
    out.push(table("Strongest pairs of words", ["typed", "means", "strength", "clicks", "as in"], found.pairs.map((pair) =>
      [pair.typed, pair.means, [bar(pair.strength), ` ${pair.strength.toFixed(2)}`], number(pair.clicks), pair.queries.join(", ")])));
  } else out.push(el("p", { class: "empty" }, `${found.spec} only compares equal words, so it has no pairs of different words.`));
  if (found.synonyms.length) {
    out.push(table("New synonyms, from the clicks of this service", ["typed", "means", "kind", "clicks", "as in"],
      found.synonyms.map((row) => [row.typed, row.means, row.kind, number(row.clicks), row.queries.join(", ")])));
  } else out.push(el("p", { class: "empty" }, "No new synonyms yet: they need clicks by several people."));
  if (found.taught.length) {
    out.push(table("Most taught queries", ["query", "clicks", "people", "most clicked"], found.taught.map((row) =>
      [row.query, number(row.clicks), number(row.people), row.title])));
  } else out.push(el("p", { class: "empty" }, `No query has been taught by ${found.min_users} people yet.`));
  $("learned").replaceChildren(...out);
}

export async function showExperiments() {
  const { experiments } = await api.experiments();
  if (!experiments.length) {
    $("experiments").replaceChildren(el("p", { class: "empty" },
      "No experiment runs. Start one with ", el("code", {}, "clickbridge serve a b --experiment a,b"),
      ": both models fill one page, and clicks tell which is better."));
    return;
  }
  $("experiments").replaceChildren(...experiments.map((e) => {
    const decided = e.wins + e.losses;
    const verdict = e.decided ? `${e.leader} is significantly better.` :
      e.leader ? `${e.leader} leads; that may still be chance.` : "No difference so far.";
    return el("div", {}, el("p", { class: "verdict" }, verdict),
      table(`${e.first} against ${e.second}`, ["", "pages"], [[`${e.first} won`, number(e.wins)], [`${e.second} won`, number(e.losses)],
        ["undecided", number(e.ties)]]),
      el("p", {}, decided ? `${e.first} wins ${(100 * e.preference).toFixed(0)}% of the decided pages; p ${e.p_value.toPrecision(2)}, ` +
        "valid no matter how often you look." : "No page is decided yet: that needs clicks."));
  }));
}
