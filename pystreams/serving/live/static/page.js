// Keeps the page up to date: one event a second, as long as the page can be seen.

import { byId, setText } from "./dom.js";
import { offerLookup } from "./lookup.js";
import { modelOf, ownClients } from "./model.js";
import { showOverview } from "./overview.js";
import { showPanels } from "./panels.js";
import { showTasks } from "./tasks.js";
import { showTopology } from "./topology.js";

const AGAIN_MS = 5000;
const SILENT_MS = 5000;

let events = null;
let again = null;
let heardMs = Date.now();
const picture = Boolean(byId("topology").querySelector("svg"));

function show(state) {
  heardMs = Date.now();
  const model = modelOf(state);
  showOverview(model);
  showTopology(model);
  showTasks(model);
  showPanels(model);
  connected("");
  if (!ownClients(state).some((client) => client.client_id)) return;
  // The page was loaded before the client knew its log: there is a picture now.
  if (!picture) location.reload();
  offerLookup();
}

function connected(trouble) {
  byId("connection").hidden = !trouble;
  setText(byId("connection"), trouble);
  document.body.classList.toggle("stale", Boolean(trouble));
}

function open() {
  if (events || document.hidden) return;
  clearTimeout(again);
  events = new EventSource("events");
  events.addEventListener("message", (event) => show(JSON.parse(event.data)));
  events.addEventListener("error", () => {
    // The browser opens a stream that has ended again by itself, but not one that was refused.
    if (events?.readyState !== EventSource.CLOSED) return;
    close();
    again = setTimeout(open, AGAIN_MS);
  });
}

function close() {
  events?.close();
  events = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
addEventListener("pageshow", open);
setInterval(() => {
  if (!document.hidden && Date.now() - heardMs > SILENT_MS) connected("No answer; what is shown is old");
}, 1000);

open();
