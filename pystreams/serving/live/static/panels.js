// The smaller parts of the page: instances, inputs, stores, and the records that were left out.

import { byId, keyed, make, setAttribute, setText, textRows } from "./dom.js";
import { about, bytes, clock, number, percent, plural, rate } from "./format.js";
import { clientName, ownClients, threadName } from "./model.js";

const FAILURES_MAX = 5;

export function showPanels(model) {
  byId("more").hidden = false;
  showInstances(model);
  showInputs(model);
  showStores(model);
  showLeftOut(model);
}

// Instances

function showInstances({ state }) {
  const own = new Set(state.clients.flatMap((client) => client.threads.map((thread) => thread.name)));
  const others = new Map();
  for (const member of state.group?.members ?? []) {
    if (own.has(member.thread)) continue;
    const id = member.process_id || member.thread;
    if (!others.has(id)) others.set(id, { id, member, threads: [] });
    others.get(id).threads.push(member);
  }
  const cards = [...state.clients.map((client) => ({ id: client.client_id, client })), ...others.values()];
  const dead = state.workers.filter((worker) => !ownClients(state).some((client) => client.worker === worker.number));
  cards.push(...dead.map((worker) => ({ id: `worker ${worker.number}`, worker })));
  keyed(byId("instances"), cards, (card) => card.id, newCard, (element, card) => {
    if (card.client) showClient(element, card.client, state.workers);
    else if (card.worker) showHead(element, `worker ${card.worker.number}`, "warn", card.worker.state, "");
    else showOther(element, card);
  });
}

function newCard() {
  const head = make("div", { class: "head" }, make("h3"), make("span", { class: "status" }));
  return make("article", { class: "card" }, head, make("p", { class: "note" }), make("ul", { class: "threads" }));
}

function showHead(element, name, status, words, note) {
  const [head, line] = element.children;
  setText(head.children[0], name);
  setAttribute(head.children[1], "data-status", status);
  setText(head.children[1], words);
  setText(line, note);
}

function showClient(element, client, workers) {
  const worker = client.endpoint ? null : workers.find((one) => one.number === client.worker);
  const { live, ready } = client.health;
  const notes = [`${rate(client.rate)} records/s`];
  const standbys = client.threads.reduce((total, thread) => total + thread.standbys.length, 0);
  if (standbys) notes.push(plural(standbys, "standby", "standbys"));
  if (worker?.pid) notes.push(`process ${worker.pid}`);
  if (worker?.restarts) notes.push(plural(worker.restarts, "restart"));
  showHead(element, clientName(client), live ? (ready ? "good" : "warn") : "bad", client.state, notes.join(" · "));
  keyed(element.children[2], client.threads, (thread) => thread.name, newThread, (item, thread) => showThread(item, client, thread));
}

function newThread() {
  const bar = make("div", { class: "bar", role: "img" }, make("span", { class: "processing" }), make("span", { class: "committing" }));
  return make("li", {}, make("span", { class: "name" }), bar, make("span", { class: "share" }), make("span", { class: "trouble" }));
}

function showThread(item, client, thread) {
  const [name, bar, share, trouble] = item.children;
  setText(name, threadName(client, thread));
  const known = thread.processing !== null || thread.committing !== null;
  const [processing, committing] = [thread.processing ?? 0, thread.committing ?? 0];
  bar.children[0].style.width = `${100 * processing}%`;
  bar.children[1].style.width = `${100 * committing}%`;
  setAttribute(bar, "aria-label", known ? `busy ${percent(processing + committing)}: processing ${percent(processing)}, committing ${percent(committing)}` : "not known how busy");
  setAttribute(bar, "title", bar.getAttribute("aria-label"));
  setText(share, known ? `${percent(processing + committing)} busy` : thread.state);
  setText(trouble, thread.trouble.join("; "));
}

function showOther(element, { member, threads }) {
  const tasks = threads.reduce((total, one) => total + one.tasks.length, 0);
  const standbys = threads.reduce((total, one) => total + one.standbys.length, 0);
  const other = threads.some((one) => one.same_program === false);
  const notes = [plural(threads.length, "thread"), plural(tasks, "task")];
  if (standbys) notes.push(plural(standbys, "standby", "standbys"));
  if (other) notes.push("another version of the program");
  const id = member.process_id ? member.process_id.slice(0, 8) : member.thread;
  showHead(element, `${member.host || "elsewhere"} · ${id}`, other ? "warn" : "plain", "in the group", notes.join(" · "));
}

// Inputs

function showInputs({ topics }) {
  const body = byId("inputs").tBodies[0];
  if (!topics.length) {
    keyed(body, [0], () => "empty", () => make("tr", { class: "empty" }, make("td", { colspan: 3 }, "No partition is read here now.")), () => {});
    return;
  }
  const newRow = () => make("tr", {}, make("th", { scope: "row", class: "name" }), make("td", { class: "bars-cell" }, make("div", { class: "bars", role: "img" })), make("td", { class: "number" }));
  keyed(body, topics, (topic) => topic.topic, newRow, (row, topic) => {
    const [name, cell, lag] = row.children;
    setText(name, topic.topic);
    setText(lag, number(topic.lag));
    const top = Math.max(1, ...topic.partitions.map((one) => one.lag ?? 0));
    const words = topic.partitions.map((one) => `${one.partition}: ${number(one.lag)}${one.committed ? " not committed" : ""}`);
    setAttribute(cell.firstElementChild, "aria-label", `lag by partition: ${words.join(", ")}`);
    setAttribute(cell.firstElementChild, "title", words.join("\n"));
    keyed(cell.firstElementChild, topic.partitions, (one) => String(one.partition), () => make("span"), (bar, one) => {
      bar.style.height = `${one.lag ? Math.max(8, (100 * one.lag) / top) : 0}%`;
      bar.classList.toggle("committed", one.committed);
    });
  });
}

// Stores

const ESTIMATE = "RocksDB's estimate: each write of an entry since the last flush counts as an entry";

function showStores({ stores }) {
  const rows = [...stores.values()].sort((one, other) => one.store.localeCompare(other.store));
  textRows(
    byId("stores").tBodies[0],
    rows,
    (one) => one.store,
    ["name", "number", "number", "number"],
    (one) => [one.store, { text: about(one.entries), title: ESTIMATE }, bytes(one.bytes), one.reads ? percent(one.hits / one.reads) : "–"],
    "No store of a running task is known here.",
  );
}

// What was left out

function showLeftOut({ state }) {
  const found = new Map();
  for (const one of state.clients.flatMap((client) => client.left_out_by)) {
    const key = `${one.fate}\n${one.step}\n${one.topic}\n${one.why}`;
    const before = found.get(key);
    found.set(key, { ...one, key, records: one.records + (before?.records ?? 0) });
  }
  const rows = [...found.values()].sort((one, other) => other.records - one.records);
  textRows(
    byId("reasons-left-out").tBodies[0],
    rows,
    (one) => one.key,
    ["why", "name", "number"],
    (one) => [`${one.fate}: ${one.why}`, one.step, number(one.records)],
    "No record was left out.",
  );
  const failures = state.clients.flatMap((client) => client.failures).sort((one, other) => other.at_ms - one.at_ms).slice(0, FAILURES_MAX);
  const keyOf = (one) => `${one.at_ms} ${one.task} ${one.position} ${one.step}`;
  const newItem = () => make("li", {}, make("time"), make("span", { class: "place" }), make("span", { class: "error" }));
  keyed(byId("failures"), failures, keyOf, newItem, (item, one) => {
    const [at, place, error] = item.children;
    setText(at, clock(one.at_ms));
    setText(place, `${one.position}, step ${one.step}`);
    setText(error, one.error || one.why);
  });
}
