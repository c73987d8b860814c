// Rates of counters, from their values in the last seconds. The server sends totals alone.

const WINDOW_MS = 5000;

export class Rates {
  #marks = new Map();

  // The growth per second of a counter, which had this value at this time; null while that is not known. A counter
  // that has become smaller has begun anew.
  of(name, value, atMs) {
    let marks = this.#marks.get(name);
    const last = marks?.at(-1);
    if (!last || value < last.value || atMs < last.atMs) {
      this.#marks.set(name, [{ value, atMs }]);
      return null;
    }
    if (atMs > last.atMs) marks.push({ value, atMs });
    while (marks.length > 2 && marks[1].atMs <= atMs - WINDOW_MS) marks.shift();
    const first = marks[0];
    const elapsedMs = marks.at(-1).atMs - first.atMs;
    return elapsedMs > 0 ? (1000 * (marks.at(-1).value - first.value)) / elapsedMs : null;
  }

  // Forget the counters that are gone.
  keep(names) {
    for (const name of this.#marks.keys()) if (!names.has(name)) this.#marks.delete(name);
  }
}
