const SVG = "http://www.w3.org/2000/svg";
const MOST = 12;
const WIDTH = 360, HEIGHT = 300;

/**
 * Draw an entity among its strongest neighbours, or among others that are given. The list below it says the same in words, so the
 * picture is one image to those who do not see it, and its names can be clicked.
 */
export function picture({ entities, relationships }, centre, open,
  { near = nearest(entities, relationships, centre), label = `${near.length} of its neighbours, and what relates them` } = {}) {
  const places = new Map([[centre, [WIDTH / 2, HEIGHT / 2]]]);
  near.forEach((each, n) => {
    const angle = (2 * Math.PI * n) / near.length - Math.PI / 2;
    const reach = near.length > 8 && n % 2 ? 0.68 : 1;
    const side = reach < 1 && Math.round(2 * Math.cos(angle));
    places.set(each.id, [WIDTH / 2 + Math.cos(angle) * 118 * reach, HEIGHT / 2 + Math.sin(angle) * 122 * reach, side]);
  });
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "picture", role: "img",
    "aria-label": label });
  for (const tie of relationships) {
    const [from, to] = [places.get(tie.source_id), places.get(tie.target_id)];
    if (!from || !to) continue;
    const isOurs = tie.source_id === centre || tie.target_id === centre;
    drawn.append(svg("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1],
      class: isOurs ? "ours" : "theirs", "stroke-width": Math.min(1 + Math.log2(Math.max(1, tie.weight)), 4) }));
  }
  for (const each of [...near, entities.find(({ id }) => id === centre)]) {
    drawn.append(node(each, places.get(each.id), each.id === centre, open));
  }
  return drawn;
}

/** Draw what an answer rests on: its entities, the one with most ties among them in the middle. */
export function answered(entities, relationships, open) {
  const ties = new Map(entities.map(({ id }) => [id, 0]));
  const between = relationships.filter((tie) => ties.has(tie.source_id) && ties.has(tie.target_id));
  for (const { source_id: a, target_id: b } of between) for (const id of [a, b]) ties.set(id, ties.get(id) + 1);
  const [centre, ...others] = entities.filter(({ id }) => ties.get(id)).sort((a, b) => ties.get(b.id) - ties.get(a.id));
  if (!others.length) return null;
  const drawn = new Set([centre, ...others.slice(0, MOST)].map(({ id }) => id));
  const within = between.filter((tie) => drawn.has(tie.source_id) && drawn.has(tie.target_id));
  const near = others.filter(({ id }) => drawn.has(id) && within.some((tie) => [tie.source_id, tie.target_id].includes(id)));
  return picture({ entities, relationships: within }, centre.id, open,
    { near, label: `${near.length + 1} entities of the answer, and what relates them` });
}

function nearest(entities, relationships, centre) {
  const weight = new Map();
  for (const { source_id: source, target_id: target, weight: w } of relationships) {
    if (source === centre) weight.set(target, w);
    else if (target === centre) weight.set(source, w);
  }
  return entities.filter(({ id }) => id !== centre && weight.has(id))
    .sort((a, b) => weight.get(b.id) - weight.get(a.id) || b.degree - a.degree).slice(0, MOST);
}

function node(each, [x, y, side], isCentre, open) {
  const group = svg("g", { class: isCentre ? "node centre" : "node" });
  // Names on the inner ring read away from the middle, where they would meet.
  const name = svg("text", { x: side ? x - 4 * Math.sign(side) : x, y: y < HEIGHT / 2 || isCentre ? y - 9 : y + 17,
    class: side ? (side < 0 ? "leftwards" : "rightwards") : "" });
  const letters = Array.from(each.title);
  name.textContent = letters.length > 18 ? `${letters.slice(0, 17).join("")}…` : each.title;
  const whole = svg("title");
  whole.textContent = each.title;
  group.append(whole, svg("circle", { cx: x, cy: y, r: isCentre ? 7 : 5 }), name);
  if (!isCentre) group.addEventListener("click", () => open(each.id));
  return group;
}

function svg(tag, attributes = {}) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
