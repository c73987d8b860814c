// Numbers, times and durations as text.

export const UNKNOWN = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export function number(value) {
  return value === null || value === undefined ? UNKNOWN : whole.format(value);
}

export function short(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return Math.abs(value) < 10000 ? whole.format(value) : compact.format(value);
}

// A number that is only estimated.
export function about(value) {
  return value === null || value === undefined ? UNKNOWN : `≈ ${short(value)}`;
}

export function rate(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return value > 0 && value < 10 ? small.format(value) : whole.format(value);
}

export function percent(ratio) {
  if (ratio === null || ratio === undefined) return UNKNOWN;
  return `${whole.format(ratio * 100)} %`;
}

export function bytes(value) {
  if (value === null || value === undefined) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : whole.format(value)} ${units[unit]}`;
}

const UNITS = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];

export function duration(ms) {
  for (const [n, [name, size]] of UNITS.entries()) {
    if (ms < size) continue;
    const [nextName, nextSize] = UNITS[n + 1] ?? ["", 1];
    const rest = nextName ? Math.floor((ms % size) / nextSize) : 0;
    const first = `${Math.floor(ms / size)} ${name}`;
    return rest && ms < size * 10 ? `${first} ${rest} ${nextName}` : first;
  }
  return `${Math.round(ms)} ms`;
}

// A duration that is enough: rounded up where another one is rounded down.
export function enough(ms) {
  const n = UNITS.findIndex(([, size]) => ms >= size);
  if (n < 0) return duration(ms);
  const [, size] = UNITS[n];
  const [, shown] = (ms < size * 10 && UNITS[n + 1]) || UNITS[n];
  return duration(Math.ceil(ms / shown) * shown);
}

// Date and time of day; a time outside of the calendar is its number. Years of five digits come as +012345.
function parts(ms) {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return ["", String(ms)];
  const [day, time] = date.toISOString().split("T");
  return [day.replace(/^\+0*/, ""), time.slice(0, 8)];
}

export function time(ms) {
  if (ms === null || ms === undefined) return UNKNOWN;
  return parts(ms).join(" ").trim();
}

export function date(ms) {
  return parts(ms)[0];
}

export function clock(ms) {
  return parts(ms)[1];
}

// A record that is a day ahead of the clock has a wrong timestamp, as in pystreams/times.py.
const AHEAD_MAX_MS = 86400000;

export function isAhead(ms, now) {
  return ms !== null && ms > now + AHEAD_MAX_MS;
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}
