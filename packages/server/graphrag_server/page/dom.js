/** Make an element; text of documents, models and files only ever goes in as text. */
export function element(tag, { text, dataset, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, value);
  }
  Object.assign(made.dataset, dataset);
  if (text !== undefined && text !== null) made.textContent = text;
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Words of a document or a model: their direction is their own, and does not reach further. */
export const foreign = (text, attributes = {}) => element("bdi", { dir: "auto", ...attributes, text });

export const by = (id) => document.getElementById(id);

/** Tell those who do not see the page what has happened. */
export const say = (text) => { by("status").textContent = text; };

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export const seconds = (s) => (s < 1 ? `${Math.max(1, Math.round(s * 1000))} ms` : `${s.toFixed(1)} s`);

export const dollars = (cost) => (cost === null || cost === undefined ? "price unknown"
  : cost === 0 ? "$0" : `$${cost < 0.01 ? cost.toPrecision(2) : cost.toFixed(2)}`);

/** Bring a place into sight, smoothly where that is liked. */
export function reveal(place, block) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  place.scrollIntoView({ block, behavior: calm ? "auto" : "smooth" });
}

/** Show one of two buttons, which follows the other: who had that by the keyboard is brought to a box. */
export function swap(shown, hidden, box) {
  const isLeft = hidden.matches(":focus-visible");
  shown.hidden = false;
  hidden.hidden = true;
  if (isLeft) box.focus();
}

/** The end of a path or address, which tells documents apart; the whole is its tooltip. */
export function shortUri(uri) {
  const parts = uri.split("/").filter(Boolean);
  return parts.length > 2 ? `…/${parts.slice(-2).join("/")}` : uri;
}

export const typeName = (type) => ({ geo: "place", location: "place", organization: "organisation",
  other: "name" }[type?.toLowerCase()] ?? (type?.toLowerCase() || "no type"));

/** Rows of a list, the first of them shown and the others when asked. */
export function growing(rows, make, { first = 8, name = "rows", step = 50 } = {}) {
  const list = element("ul", { class: name });
  const more = element("button", { type: "button", class: "plain more" });
  const grow = (n) => {
    const shown = list.children.length;
    for (const row of rows.slice(shown, shown + n)) list.append(make(row));
    const left = rows.length - list.children.length;
    more.textContent = `Show ${Math.min(left, step).toLocaleString("en")} more`;
    more.hidden = left === 0;
    return list.children[shown];
  };
  more.addEventListener("click", () => grow(step)?.querySelector("button, a")?.focus());
  grow(first);
  return [list, more];
}
