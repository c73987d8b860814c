// The figures on the picture of the topology, which the server has drawn: a label at the lower edge of a shape, and at
// the upper right of a sub-topology. Labels lie above all else.

import { byId, makeSvg, setAttribute, setText } from "./dom.js";
import { about, duration, enough, number, percent, plural, rate, short } from "./format.js";

const LETTER = 6.7;
const HEIGHT = 17;

// A picture that is too wide for the page is made smaller, as far as it can be read; then it scrolls.
const SCALE_MIN = 0.68;

// Nothing is said of a join in which fewer records have found nothing, as in the last line of a run.
const MISSED_MIN = 10;

const badges = new Map();

export function showTopology(model) {
  const svg = byId("topology").querySelector("svg");
  if (!svg) return;
  // As an image, readers of screens would not get to the figures.
  setAttribute(svg, "role", "group");
  if (!svg.style.minWidth) fit(svg);
  const topics = new Map(model.topics.map((topic) => [topic.topic, topic]));
  const subtopologies = new Map(model.subtopologies.map((sub) => [sub.id, sub]));
  for (const group of svg.querySelectorAll("g[data-name]")) {
    const name = group.dataset.name;
    const [kind] = group.classList;
    if (kind === "frame") label(group, ofSubtopology(subtopologies.get(name)), name);
    if (kind === "topic") label(group, ofTopic(topics.get(name)), name);
    if (kind === "store") label(group, ofStore(model.stores.get(name)), name);
    if (kind === "step") label(group, ofStep(model.steps.get(name)), name);
  }
}

function fit(svg) {
  svg.style.minWidth = `${SCALE_MIN * Number(svg.getAttribute("width"))}px`;
  const frame = svg.querySelector("g.frame rect")?.getBoundingClientRect();
  const around = byId("topology");
  if (frame) around.scrollLeft = frame.left + frame.width / 2 - around.getBoundingClientRect().left - around.clientWidth / 2;
}

function ofSubtopology(sub) {
  if (!sub) return null;
  const texts = [];
  if (sub.rate !== null) texts.push(`${rate(sub.rate)}/s`);
  if (sub.lag) texts.push(`lag ${short(sub.lag)}`);
  if (sub.restoring) texts.push(`${sub.restoring} not running`);
  const words = [`${plural(sub.tasks.length, "task")}, ${rate(sub.rate)} records a second, lag ${number(sub.lag)}`];
  if (sub.restoring) words.push(`${plural(sub.restoring, "task")} not running yet`);
  return { text: texts.join(" · "), words: words.join("; "), status: sub.restoring ? "warn" : "plain" };
}

function ofTopic(topic) {
  if (!topic) return null;
  if (topic.lag === null) return { text: "lag not known", words: "its lag is not known", status: "plain" };
  return { text: `lag ${short(topic.lag)}`, words: `lag ${number(topic.lag)} records`, status: "plain" };
}

function ofStore(store) {
  if (!store) return null;
  const [texts, words] = [[], []];
  if (store.entries !== null) {
    texts.push(about(store.entries));
    words.push(`about ${plural(store.entries, "entry", "entries")}`);
  }
  if (store.reads) {
    texts.push(`${percent(store.hits / store.reads)} hits`);
    words.push(`the cache has answered ${percent(store.hits / store.reads)} of its reads`);
  }
  return texts.length ? { text: texts.join(" · "), words: words.join("; "), status: "plain" } : null;
}

function ofStep(step) {
  if (!step) return null;
  const [texts, words] = [[], []];
  const failed = step.skipped + step.dead_letters;
  if (step.rate !== null && step.rate !== undefined) {
    texts.push(`${rate(step.rate)}/s`);
    words.push(`${rate(step.rate)} records a second`);
  }
  if (step.late) {
    texts.push(`${short(step.late)} late`);
    words.push(`${plural(step.late, "record")} too late, by ${duration(step.late_ms)} at most; a grace of ${enough(step.grace_ms)} would keep them`);
  }
  const dropped = step.dropped - step.late_dropped;
  if (dropped > 0) {
    texts.push(`${short(dropped)} dropped`);
    words.push(`${plural(dropped, "record")} dropped`);
  }
  if (failed) {
    texts.push(`${short(failed)} failed`);
    words.push(`${plural(step.dead_letters, "dead letter")}, ${number(step.skipped)} skipped`);
  }
  const inVain = step.missed >= MISSED_MIN && !step.found;
  if (inVain) {
    texts.push("finds nothing");
    words.push(`none of ${number(step.missed)} ${step.sought}; look ${step.hint}`);
  }
  const status = failed ? "bad" : step.dropped || step.late || inVain ? "warn" : "plain";
  return texts.length ? { text: texts.join(" · "), words: words.join("; "), status } : null;
}

function label(group, figures, name) {
  let badge = badges.get(group);
  if (!figures || !figures.text) {
    badge?.remove();
    badges.delete(group);
    return;
  }
  const frame = group.classList.contains("frame");
  if (!badge) {
    badge = makeSvg("g", { class: frame ? "badge of-frame" : "badge", tabindex: 0, role: "img", "data-of": name });
    badge.append(makeSvg("rect", { rx: HEIGHT / 2, height: HEIGHT }), makeSvg("text"), makeSvg("title"));
    group.ownerSVGElement.append(badge);
    badges.set(group, badge);
  }
  const [left, top, width, height] = group.dataset.box.split(" ").map(Number);
  const size = figures.text.length * LETTER + 16;
  const x = frame ? left + width - size - 10 : left + width / 2 - size / 2;
  const y = frame ? top + 7 : top + height - HEIGHT / 2 + (group.classList.contains("store") ? 6 : 0);
  const [box, text, title] = badge.children;
  setAttribute(badge, "data-status", figures.status);
  for (const [attribute, value] of Object.entries({ x: x.toFixed(1), y: y.toFixed(1), width: size.toFixed(1) })) {
    setAttribute(box, attribute, value);
  }
  setAttribute(text, "x", (x + size / 2).toFixed(1));
  setAttribute(text, "y", (y + 12.3).toFixed(1));
  setText(text, figures.text);
  const spoken = `${frame ? `Sub-topology ${name}` : name}: ${figures.words}`;
  setText(title, spoken);
  setAttribute(badge, "aria-label", spoken);
}
