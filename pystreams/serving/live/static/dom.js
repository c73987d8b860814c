// Changes to the page that touch only what has changed, so that nothing flickers, and selections and focus stay.

const SVG = "http://www.w3.org/2000/svg";

export function byId(id) {
  return document.getElementById(id);
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) setAttribute(element, key, value);
  element.append(...children);
  return element;
}

export function makeSvg(name, attributes = {}) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) setAttribute(element, key, value);
  return element;
}

// One element for each item, found again by its key: create(item) makes it, update(element, item) fills it.
export function keyed(parent, items, keyOf, create, update) {
  const had = new Map();
  for (const child of [...parent.children]) {
    if (child.dataset.key === undefined) child.remove();
    else had.set(child.dataset.key, child);
  }
  let before = null;
  for (const item of items) {
    const key = keyOf(item);
    let element = had.get(key);
    if (element) had.delete(key);
    else {
      element = create(item);
      element.dataset.key = key;
    }
    update(element, item);
    const place = before ? before.nextElementSibling : parent.firstElementChild;
    if (place !== element) parent.insertBefore(element, place);
    before = element;
  }
  for (const child of had.values()) child.remove();
}

// Rows of text, or of a text with a title. ``classes`` are those of the columns.
export function textRows(body, items, keyOf, classes, cellsOf, empty) {
  if (!items.length) {
    const row = [{ key: "empty", text: empty }];
    keyed(body, row, (one) => one.key, () => make("tr", { class: "empty" }, make("td", { colspan: classes.length })),
      (element, one) => setText(element.firstElementChild, one.text));
    return;
  }
  keyed(body, items, keyOf, () => {
    const cells = classes.map((name, n) => make(n ? "td" : "th", n ? { class: name } : { scope: "row", class: name }));
    return make("tr", {}, ...cells);
  }, (element, item) => {
    cellsOf(item).forEach((cell, n) => {
      setText(element.children[n], cell.text ?? cell);
      setAttribute(element.children[n], "title", cell.title ?? null);
    });
  });
}
