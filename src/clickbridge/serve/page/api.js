// The service's endpoints. Whatever goes wrong becomes an Error with a message for people; nothing is swallowed.

const KEY = "clickbridge-key";

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function call(path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "unreachable", "The service does not answer. Is it still running?");
  }
  const text = await response.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refused(response.status, "not_json", `The service answered ${response.status} with something that is not JSON.`);
  }
  if (!response.ok) {
    const { code, message } = value.error ?? { code: "error", message: `status ${response.status}` };
    throw new Refused(response.status, code, message);
  }
  return value;
}

const query = (values) => {
  const set = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return new URLSearchParams(set).toString();
};

export const useKey = (key) => sessionStorage.setItem(KEY, key);
export const models = () => call("models");
export const search = (q, model, k, signal) => call(`search?${query({ q, model, k, user: user() })}`, null, signal);
export const suggest = (q, model, signal) => call(`suggest?${query({ q, model, k: 8 })}`, null, signal);
export const similar = (q, model, signal) => call(`similar/queries?${query({ q, model, k: 8 })}`, null, signal);
export const why = (q, doc_id, model) => call(`why?${query({ q, doc_id, model })}`);
export const learned = (model) => call(`learned?${query({ model })}`);
export const experiments = () => call("experiments");
export const feedback = (event) => call("feedback", { events: [event] });
export const undo = (event_id) => call("feedback/undo", { event_id });

// A random name for this browser, so that people can be counted without being known.
export function user() {
  let name = localStorage.getItem("clickbridge-user");
  if (!name) {
    name = unique();
    localStorage.setItem("clickbridge-user", name);
  }
  return name;
}

// crypto.randomUUID exists on secure pages only; a service in a local network has no certificate.
export function unique() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
