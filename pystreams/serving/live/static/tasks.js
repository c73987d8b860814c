// The table of tasks: where each runs, its state or how far it is restored, its rate and lag, and its stream time
// between those of the others of its sub-topology.

import { byId, keyed, make, setAttribute, setText } from "./dom.js";
import { UNKNOWN, clock, date, duration, isAhead, number, percent, rate, time } from "./format.js";
import { clientName, compareTasks, subtopology, threadName } from "./model.js";

// Tracks are so long at least, in ms of stream time: where all tasks are as good as together, none looks far behind.
const TRACK_MS = 10000;

export function showTasks(model) {
  const subs = new Map(model.subtopologies.map((sub) => [sub.id, sub]));
  const rows = [...model.tasks, ...model.elsewhere].sort((one, other) => compareTasks(one.task, other.task));
  const body = byId("tasks").tBodies[0];
  if (!rows.length) {
    keyed(body, [0], () => "empty", emptyRow, () => {});
    return;
  }
  keyed(body, rows, (row) => `${row.task} ${row.client?.client_id ?? ""}`, newRow, (element, row) => {
    if (row.client) {
      showOwn(element, row, model.state.clients.length > 1);
      showTime(element.lastElementChild, row, subs.get(subtopology(row.task)), model.state.at_ms);
    } else {
      showElsewhere(element, row);
    }
  });
  let before = null;
  for (const element of body.children) {
    const id = subtopology(element.children[0].textContent);
    element.classList.toggle("first", before !== null && before !== id);
    before = id;
  }
}

function emptyRow() {
  return make("tr", { class: "empty" }, make("td", { colspan: 6 }, "No process has tasks of this application now."));
}

function newRow() {
  const progress = make("progress", { max: 1, hidden: "" });
  const track = make("div", { class: "track", role: "img" }, make("span", { class: "behind" }), make("span", { class: "dot" }));
  return make(
    "tr",
    {},
    make("th", { scope: "row" }),
    make("td", { class: "where" }),
    make("td", { class: "state" }, make("span", { class: "status" }), progress),
    make("td", { class: "number" }),
    make("td", { class: "number" }),
    make("td", { class: "time" }, track, make("span", { class: "when" }, make("span", { class: "wide" }), make("span"))),
  );
}

function showOwn(element, row, several) {
  const [task, where, state, speed, lag] = element.children;
  setText(task, row.task);
  const thread = threadName(row.client, row.thread);
  setText(where, several || row.client.worker !== null ? `${clientName(row.client)}, ${thread}` : thread);
  const [status, progress] = state.children;
  setAttribute(status, "data-status", row.status === "running" ? "good" : "warn");
  const done = row.restoring.reduce((total, store) => total + store.done, 0);
  const total = row.restoring.reduce((sum, store) => sum + store.total, 0);
  progress.hidden = !total;
  if (total) {
    progress.value = done / total;
    setAttribute(progress, "aria-label", `${row.task} restores: ${number(done)} of ${number(total)}`);
  }
  setText(status, total ? `restoring ${percent(done / total)}` : row.status);
  setText(speed, rate(row.rate));
  setText(lag, number(row.lag));
}

function showTime(cell, row, sub, now) {
  const [track, when] = cell.children;
  const known = row.stream_time_ms !== null && sub && sub.last !== null;
  track.hidden = !known;
  if (!known) {
    setWhen(when, "", UNKNOWN);
    return;
  }
  const behind = sub.last - row.stream_time_ms;
  const spread = sub.last - sub.first;
  const place = 1 - behind / Math.max(spread, TRACK_MS);
  const [gap, dot] = track.children;
  gap.style.width = `${100 * (1 - place)}%`;
  dot.style.left = `${100 * place}%`;
  const words = behind ? `${duration(behind)} behind` : spread ? "ahead of the others" : "";
  setAttribute(track, "aria-label", `stream time ${time(row.stream_time_ms)} ${words}`);
  const at = row.stream_time_ms;
  if (behind) setWhen(when, "", `${duration(behind)} behind`);
  else setWhen(when, `${date(at)} `, clock(at));
  const ahead = isAhead(at, now);
  setAttribute(when, "data-status", ahead ? "warn" : null);
  setAttribute(when, "title", `${time(at)} UTC${ahead ? ", ahead of the clock" : ""}`);
}

// The first part is shown where there is room.
function setWhen(when, wide, text) {
  setText(when.children[0], wide);
  setText(when.children[1], text);
}

function showElsewhere(element, row) {
  const [task, where, state, speed, lag, when] = element.children;
  setText(task, row.task);
  setText(where, row.member ? `other process on ${row.member.host}` : "nobody");
  const [status, progress] = state.children;
  progress.hidden = true;
  setAttribute(status, "data-status", row.member ? "plain" : "warn");
  setText(status, row.member ? "elsewhere" : "unassigned");
  setText(speed, UNKNOWN);
  setText(lag, number(row.lag));
  setAttribute(lag, "title", "records that are not committed");
  when.children[0].hidden = true;
  setWhen(when.children[1], "", UNKNOWN);
}
