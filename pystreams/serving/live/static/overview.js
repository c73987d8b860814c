// The head of the page: health, facts, and the figures that matter most.

import { byId, keyed, make, makeSvg, setAttribute, setText } from "./dom.js";
import { clock, date, duration, isAhead, number, plural, rate } from "./format.js";
import { ownClients } from "./model.js";

const HISTORY = 60;
const history = [];

export function showOverview(model) {
  const { state } = model;
  showHealth(state);
  showFacts(state);
  setText(byId("rate"), rate(model.rate));
  setText(byId("lag"), number(model.lag));
  showStreamTime(model);
  showTasks(model);
  setText(byId("processed"), number(model.processed));
  showStart(state);
  showLeftOut(model);
  if (model.rate !== null) {
    history.push(model.rate);
    if (history.length > HISTORY) history.shift();
    showSpark();
  }
}

function showHealth({ health }) {
  const [status, words] = health.live ? (health.ready ? ["good", "Ready"] : ["warn", "Not ready"]) : ["bad", "Not live"];
  setAttribute(byId("health"), "data-status", status);
  setText(byId("health"), words);
  keyed(byId("reasons"), health.reasons, (reason) => reason, () => make("li"), setText);
}

function showFacts(state) {
  const { group } = state;
  const own = ownClients(state);
  const others = new Set((group?.members ?? []).map((member) => member.process_id || member.thread));
  const facts = [];
  if (own.length) {
    facts.push(["Up", duration(state.at_ms - Math.min(...own.map((client) => client.started_ms)))]);
  }
  if (group?.members.length) {
    // Workers share a state directory, by which the group knows processes.
    const where = others.size > 1 ? ` in ${others.size} places` : "";
    facts.push(["Group", `${plural(group.members.length, "thread")}${where}`]);
  }
  const restarts = state.workers.reduce((total, worker) => total + worker.restarts, 0);
  if (state.workers.length) {
    facts.push(["Workers", restarts ? `${state.workers.length}, ${plural(restarts, "restart")}` : `${state.workers.length}`]);
  }
  if (group?.rebalancing) facts.push(["Rebalance", "under way"]);
  if (group?.trouble) facts.push(["Log", `not reached since ${clock(group.at_ms)}: ${group.trouble}`]);
  const list = byId("facts");
  for (const [name, text] of facts) {
    const id = `fact-${name}`;
    let fact = byId(id);
    if (!fact) {
      fact = make("div", { id }, make("dt"), make("dd"));
      setText(fact.firstElementChild, name);
      list.append(fact);
    }
    setText(fact.lastElementChild, text);
  }
  const names = new Set(facts.map(([name]) => `fact-${name}`));
  for (const fact of [...list.children]) if (fact.id && !names.has(fact.id)) fact.remove();
}

function showStreamTime({ state, subtopologies }) {
  const times = subtopologies.filter((sub) => sub.last !== null);
  if (!times.length) return;
  const last = Math.max(...times.map((sub) => sub.last));
  const spread = Math.max(...times.map((sub) => sub.last - sub.first));
  setText(byId("stream-time"), clock(last));
  const apart = spread ? `up to ${duration(spread)} apart` : "no task is behind";
  const ahead = isAhead(last, state.at_ms);
  setAttribute(byId("stream-time").parentElement, "data-status", ahead ? "warn" : null);
  const wrong = "ahead of the clock, because of a wrong timestamp: pystreams doctor APP names the record";
  setText(byId("stream-time-note"), `${date(last)} UTC; ${ahead ? wrong : apart}`);
}

function showTasks({ tasks, elsewhere, state }) {
  const hidden = state.clients.reduce((total, client) => total + client.more_tasks, 0);
  const waiting = tasks.filter((task) => task.status !== "running").length;
  const nobody = elsewhere.filter((task) => !task.member).length;
  const notes = [];
  if (waiting) notes.push(`${number(waiting)} not running yet`);
  if (elsewhere.length - nobody) notes.push(`${number(elsewhere.length - nobody)} more in other processes`);
  if (nobody && !state.group.rebalancing) notes.push(`${number(nobody)} without a thread`);
  setText(byId("task-count"), number(tasks.length + hidden));
  setText(byId("task-note"), notes.join(", ") || "all of them run");
}

function showStart({ clients }) {
  const start = clients.length ? Math.min(...clients.map((client) => client.started_ms)) : null;
  const internal = clients.reduce((total, client) => total + client.internal_records, 0);
  const notes = [start === null ? "records" : `records since ${clock(start)} UTC`];
  if (internal) notes.push(`and ${number(internal)} from internal topics`);
  setText(byId("processed-note"), notes.join(", "));
}

function showLeftOut({ state }) {
  const fates = new Map();
  for (const client of state.clients) {
    for (const [fate, records] of Object.entries(client.left_out)) fates.set(fate, (fates.get(fate) ?? 0) + records);
  }
  const total = [...fates.values()].reduce((sum, records) => sum + records, 0);
  setText(byId("left-out"), number(total));
  setAttribute(byId("left-out").parentElement, "data-status", total ? "warn" : null);
  const words = [...fates].map(([fate, records]) => `${number(records)} ${fate}`).join(", ");
  setText(byId("left-out-note"), words || "no record was left out");
}

function showSpark() {
  const svg = byId("spark");
  if (!svg.firstElementChild) svg.append(makeSvg("path", { class: "area" }), makeSvg("path", { class: "line" }));
  const top = Math.max(1, ...history);
  const points = history.map((value, n) => {
    const x = 120 - (history.length - 1 - n) * (120 / (HISTORY - 1));
    return `${x.toFixed(1)},${(26 - (24 * value) / top).toFixed(1)}`;
  });
  const line = `M${points.join("L")}`;
  const left = points[0].split(",")[0];
  setAttribute(svg.children[0], "d", `${line}V28H${left}Z`);
  setAttribute(svg.children[1], "d", line);
}
