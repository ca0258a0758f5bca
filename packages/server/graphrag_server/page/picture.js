const SVG = "http://www.w3.org/2000/svg";
const MOST = 12;
const WIDTH = 360, HEIGHT = 300;

/**
 * Draw an entity among its strongest neighbours. The list below it says the same in words, so the
 * picture is one image to those who do not see it, and its names can be clicked.
 */
export function picture({ entities, relationships }, centre, open) {
  const near = nearest(entities, relationships, centre);
  const places = new Map([[centre, [WIDTH / 2, HEIGHT / 2]]]);
  near.forEach((each, n) => {
    const angle = (2 * Math.PI * n) / near.length - Math.PI / 2;
    const reach = near.length > 8 && n % 2 ? 0.68 : 1;
    const side = reach < 1 && Math.round(2 * Math.cos(angle));
    places.set(each.id, [WIDTH / 2 + Math.cos(angle) * 118 * reach, HEIGHT / 2 + Math.sin(angle) * 122 * reach, side]);
  });
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "picture", role: "img",
    "aria-label": `${near.length} of its neighbours, and what relates them` });
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
