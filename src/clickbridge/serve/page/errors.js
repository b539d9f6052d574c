// Errors are shown, each once, until they are put away. That includes errors in this page's own code.

import { $, el } from "./dom.js";

export function show(error) {
  if (error?.name === "AbortError") return;
  if (error?.status === 401 || error?.status === 403) $("key-form").hidden = false;
  const text = error?.status === undefined ? `Error in this page: ${error?.message ?? error}` : error.message;
  if ([...$("errors").children].some((line) => line.dataset.text === text)) return;
  const line = el("p", { class: "error", "data-text": text }, el("span", {}, text),
    el("button", { type: "button", "aria-label": "Close this error", onclick: () => line.remove() }, "×"));
  $("errors").append(line);
}

export const clear = () => $("errors").replaceChildren();

// Runs something that may fail, and shows how it failed.
export const guarded = (work) => async (...values) => {
  try {
    return await work(...values);
  } catch (error) {
    show(error);
    return undefined;
  }
};

window.addEventListener("error", (event) => show(event.error ?? new Error(event.message)));
window.addEventListener("unhandledrejection", (event) => show(event.reason));
