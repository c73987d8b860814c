// The look-up of a key, where the server has stores to read. Paths are relative to that of the page.

import { byId, make, setAttribute } from "./dom.js";

let asked = false;

// Called again and again: who opens the page early finds no client yet that answers for the stores.
export async function offerLookup() {
  if (asked || byId("lookup").dataset.stores !== "served") return;
  asked = true;
  const answer = await fetch("stores").catch(() => null);
  asked = Boolean(answer?.ok);
  if (!asked) return;
  const { stores } = await answer.json();
  if (!stores?.length) return;
  const names = stores.map((store) => (typeof store === "string" ? store : store.name));
  byId("lookup-store").replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  byId("lookup").addEventListener("submit", (event) => {
    event.preventDefault();
    lookUp(byId("lookup-store").value, byId("lookup-key").value);
  });
  byId("lookup").hidden = false;
}

async function lookUp(store, key) {
  const shown = byId("lookup-answer");
  shown.hidden = false;
  setAttribute(shown, "aria-busy", "true");
  try {
    const answer = await fetch(`stores/${encodeURIComponent(store)}/keys/${encodeURIComponent(key)}`);
    const text = await answer.text();
    setAttribute(shown, "data-status", answer.ok ? null : "warn");
    shown.textContent = pretty(text) || `${answer.status} ${answer.statusText}`;
  } catch (error) {
    setAttribute(shown, "data-status", "bad");
    shown.textContent = `The application does not answer: ${error.message}`;
  }
  setAttribute(shown, "aria-busy", null);
}

// Parsed numbers would lose digits, so only text that stays the same is written anew.
function pretty(text) {
  try {
    const parsed = JSON.parse(text);
    const same = JSON.stringify(parsed) === text.replace(/\s+$/, "");
    return same ? JSON.stringify(parsed, null, 2) : text;
  } catch {
    return text;
  }
}
