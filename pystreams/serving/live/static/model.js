// The state as the page shows it: tasks of all clients in one list, with rates, and sums by sub-topology.

import { Rates } from "./rates.js";

const rates = new Rates();

function sum(values) {
  return values.reduce((total, value) => (total === null || value === null ? null : total + value), 0);
}

// A sum of rates leaves out those that are not known yet; null: none is.
function sumOfKnown(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((total, value) => total + value, 0) : null;
}

function parts(task) {
  return task.split("_").map(Number);
}

export function compareTasks(one, other) {
  const [a, b] = [parts(one), parts(other)];
  return a[0] - b[0] || a[1] - b[1];
}

export function subtopology(task) {
  return task.split("_")[0];
}

// A client's name without what all of them have in common, and with the worker's number.
export function clientName(client) {
  const worker = client.worker === null ? null : `worker ${client.worker}`;
  return client.endpoint ? [client.endpoint, worker].filter(Boolean).join(", ") : (worker ?? "this process");
}

// The clients of the instance whose page this is.
export function ownClients(state) {
  return state.clients.filter((client) => !client.endpoint);
}

export function threadName(client, thread) {
  const short = thread.name.startsWith(`${client.client_id}-`) ? thread.name.slice(client.client_id.length + 1) : thread.name;
  return short.replace("StreamThread-", "thread ");
}

export function modelOf(state) {
  const used = new Set();
  const rateOf = (name, value, atMs) => {
    used.add(name);
    return rates.of(name, value, atMs);
  };
  const tasks = [];
  for (const client of state.clients) {
    client.rate = rateOf(`client ${client.client_id}`, client.records + client.internal_records, client.at_ms);
    for (const thread of client.threads) {
      for (const task of thread.tasks) {
        const name = `task ${client.client_id} ${task.task}`;
        tasks.push({ ...task, client, thread, rate: rateOf(name, task.processed, client.at_ms) });
      }
    }
    for (const step of client.steps) {
      const counted = step.processed !== null;
      step.rate = counted ? rateOf(`step ${client.client_id} ${step.step}`, step.processed, client.at_ms) : null;
    }
  }
  rates.keep(used);
  tasks.sort((one, other) => compareTasks(one.task, other.task));
  return {
    state,
    tasks,
    elsewhere: elsewhere(state, tasks),
    subtopologies: subtopologies(tasks),
    topics: topics(state, tasks),
    steps: merged(state.clients.flatMap((client) => client.steps), "step", ["late_ms", "grace_ms"]),
    stores: merged(state.clients.flatMap((client) => client.stores), "store", []),
    rate: sumOfKnown(state.clients.map((client) => client.rate)),
    lag: sum(tasks.map((task) => task.lag)),
    processed: sum(state.clients.map((client) => client.records)),
  };
}

// The tasks that other processes have, and those that nobody has, as the group knows them.
function elsewhere(state, tasks) {
  if (!state.group) return [];
  const own = new Set(tasks.map((task) => task.task));
  const threads = new Set(state.clients.flatMap((client) => client.threads.map((thread) => thread.name)));
  const memberOf = new Map();
  for (const member of state.group.members) {
    if (!threads.has(member.thread)) for (const task of member.tasks) memberOf.set(task, member);
  }
  const lags = new Map();
  for (const input of state.group.inputs) lags.set(input.task, (lags.get(input.task) ?? 0) + input.lag);
  return state.group.tasks
    .filter((task) => !own.has(task))
    .map((task) => ({ task, member: memberOf.get(task) ?? null, lag: lags.get(task) ?? null }));
}

function subtopologies(tasks) {
  const found = new Map();
  for (const task of tasks) {
    const id = subtopology(task.task);
    if (!found.has(id)) found.set(id, { id, tasks: [] });
    found.get(id).tasks.push(task);
  }
  for (const sub of found.values()) {
    const times = sub.tasks.map((task) => task.stream_time_ms).filter((time) => time !== null);
    sub.first = times.length ? Math.min(...times) : null;
    sub.last = times.length ? Math.max(...times) : null;
    sub.rate = sumOfKnown(sub.tasks.map((task) => task.rate));
    sub.lag = sum(sub.tasks.map((task) => task.lag));
    sub.restoring = sub.tasks.filter((task) => task.status !== "running").length;
  }
  return [...found.values()];
}

// The lag of each partition: as its task sees it, or else as it is committed.
function topics(state, tasks) {
  const found = new Map();
  const add = (topic, partition, lag, committed) => {
    if (!found.has(topic)) found.set(topic, new Map());
    found.get(topic).set(partition, { partition, lag, committed });
  };
  for (const input of state.group?.inputs ?? []) add(input.topic, input.partition, input.lag, true);
  for (const task of tasks) {
    for (const input of task.inputs) {
      if (input.lag !== null || !found.get(input.topic)?.has(input.partition)) {
        add(input.topic, input.partition, input.lag, false);
      }
    }
  }
  return [...found].sort().map(([topic, partitions]) => {
    const sorted = [...partitions.values()].sort((one, other) => one.partition - other.partition);
    return { topic, partitions: sorted, lag: sum(sorted.map((one) => one.lag)) };
  });
}

// Rows of several clients with the same name as one: numbers are added up, but for those of which the greatest counts.
// A text is the same in all of them, or empty.
function merged(rows, key, greatest) {
  const found = new Map();
  for (const row of rows) {
    const before = found.get(row[key]);
    if (!before) {
      found.set(row[key], { ...row });
      continue;
    }
    for (const [name, value] of Object.entries(row)) {
      if (typeof value === "string") before[name] ||= value;
      if (typeof value !== "number") continue;
      before[name] = greatest.includes(name) ? Math.max(before[name], value) : (before[name] ?? 0) + value;
    }
  }
  return found;
}
