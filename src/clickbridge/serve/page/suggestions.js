// Suggestions while typing: a combobox with a listbox, all of it by keyboard.

import * as api from "./api.js";
import { $, el } from "./dom.js";
import { show } from "./errors.js";

const PAUSE = 80;

export function suggestions(model, choose) {
  const input = $("query"), list = $("suggestions");
  let waiting, asked, active = -1;

  const options = () => [...list.children];

  function close() {
    clearTimeout(waiting);
    asked?.abort();
    list.hidden = true;
    list.replaceChildren();
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function mark(place) {
    const all = options();
    active = (place + all.length + 1) % (all.length + 1);
    if (place === -1) active = -1;
    if (active === all.length) active = -1;
    all.forEach((option, i) => option.setAttribute("aria-selected", String(i === active)));
    if (active >= 0) input.setAttribute("aria-activedescendant", all[active].id);
    else input.removeAttribute("aria-activedescendant");
  }

  function open(queries) {
    if (!queries.length || document.activeElement !== input) return close();
    list.replaceChildren(...queries.map((text, i) => el("li", {
      id: `suggestion-${i}`, role: "option", "aria-selected": "false",
      onmousedown: (event) => { event.preventDefault(); take(text); },
    }, text)));
    active = -1;
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }

  function take(text) {
    input.value = text;
    close();
    choose(text);
  }

  async function ask() {
    asked?.abort();
    asked = new AbortController();
    const typed = input.value;
    if (!typed.trim()) return close();
    try {
      const found = await api.suggest(typed, model(), asked.signal);
      if (typed === input.value) open(found.results.map((row) => row.query).filter((text) => text !== typed.trim()));
    } catch (error) {
      show(error);
    }
  }

  input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(ask, PAUSE); });
  input.addEventListener("blur", () => close());
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "ArrowDown") mark(active + 1);
    else if (event.key === "ArrowUp") mark(active === -1 ? options().length - 1 : active - 1);
    else if (event.key === "Enter" && active >= 0) take(options()[active].textContent);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { close };
}
