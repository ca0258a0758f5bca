/** Hues that differ at a glance; neighbours in the list differ most. */
const HUES = [
  "#e6404f", "#2f7fd6", "#2ea64a", "#f08a1d", "#8b4fd0", "#12a5a8", "#d63fae", "#9a8f12",
  "#7a4a24", "#5560c9", "#e58fb1", "#5f9e8f", "#b8860b", "#c2571a", "#6db33f", "#8a2d5c",
  "#3fa7dd", "#a87bc9", "#c98d6b", "#0f7a55", "#d9776f", "#7488a8", "#a3b02c", "#6a5d9e",
];

const parts = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
function mixed(one, other, share) {
  const [a, b] = [parts(one), parts(other)];
  const hex = a.map((v, i) => Math.round(v + (b[i] - v) * share).toString(16).padStart(2, "0"));
  return "#" + hex.join("");
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    background: of("canvas"), text: of("text"), grey: of("alone"), faded: of("faded"),
    link: of("link"), dark: matchMedia("(prefers-color-scheme: dark)").matches,
  };
}

/**
 * Return the colour of each community at a level: the first ones (largest) have hues of their own;
 * later ones a muted one, that of the community farthest away. One entity alone is grey.
 */
function communityColours(index, communities, look) {
  const bright = HUES.map((hue) => (look.dark ? mixed(hue, "#ffffff", 0.22) : hue));
  const muted = bright.map((hue) => mixed(hue, look.grey, 0.45));
  const colours = new Map();
  const used = HUES.map(() => []);
  communities.forEach((c, rank) => {
    if (index.communities.size[c] < 2) return colours.set(c, look.grey);
    const here = index.centre(c);
    const hue = rank < HUES.length ? rank : farthest(used, here);
    used[hue].push(here);
    colours.set(c, rank < HUES.length ? bright[hue] : muted[hue]);
  });
  return colours;
}

function farthest(used, here) {
  const nearest = used.map((places) =>
    places.reduce((least, at) => Math.min(least, Math.hypot(at.x - here.x, at.y - here.y)), 1e9));
  return nearest.indexOf(Math.max(...nearest));
}
