const MOST_NAMES = 40;
const LINE_WIDTH = 140;
/** Communities smaller than this on the screen, in pixels, have no name there yet. */
const LEAST_EXTENT = 20;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/** Names of communities and titles of entities over the canvas; none covers another. */
class Labels {
  constructor(picture, parent) {
    this.picture = picture;
    this.canvas = parent.querySelector("#labels");
    this.context = this.canvas.getContext("2d");
    const { index } = picture;
    const degrees = Array.from({ length: index.size }, (_, v) => index.degree(v));
    this.buttons = parent.querySelector(".zoom");
    this.byDegree = Array.from(degrees.keys()).sort((a, b) => degrees[b] - degrees[a] || a - b);
    this.names = [];
    this.drawn = [];
  }

  /** Say which communities are to be named, most important first. */
  choose(communities) {
    const { index } = this.picture;
    const { title, size } = index.communities;
    const many = communities.filter((c) => size[c] > 1).slice(0, 400);
    this.names = many.map((c) => ({
      community: c, members: index.members[c], lines: this.lines(shortened(title[c], 48)),
    }));
  }

  lines(text) {
    this.context.font = `600 12px ${FONT}`;
    const lines = [""];
    for (const word of text.split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (this.context.measureText(longer).width <= LINE_WIDTH) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    const all = lines.filter(Boolean);
    return all.length > 2 ? [all[0], `${all[1].replace(/[\s,:;-]+$/, "")}…`] : all;
  }

  draw() {
    const { sigma } = this.picture;
    const { width, height } = sigma.getDimensions();
    this.prepare(width, height);
    this.drawn = [this.underButtons()];
    this.place = this.picture.placer();
    if (this.picture.focus !== ROOT) this.drawTitle(this.picture.focus, true);
    if (this.picture.focus === ROOT) this.drawNames(width, height);
    this.drawTitles(width, height);
    // Last and over the others, which stay where they are.
    if (this.picture.hovered != null) this.drawTitle(this.picture.hovered, true);
  }

  prepare(width, height) {
    const scale = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) ||
        this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.context.lineJoin = "round";
    this.width = width;
    this.height = height;
  }

  underButtons() {
    const { offsetLeft: left, offsetTop: top, offsetWidth: wide, offsetHeight: high } = this.buttons;
    return { left, top, wide, high, community: ROOT };
  }

  drawNames(width, height) {
    const most = width < 600 ? 14 : MOST_NAMES;
    let shown = 0;
    for (const { community, members, lines } of this.names) {
      if (shown >= most) break;
      const box = this.extent(members);
      // A community that fills the view is where the reader is: its entities are named instead.
      if (Math.max(box.wide, box.high) > 1.1 * Math.max(width, height)) continue;
      if (Math.max(box.wide, box.high) < LEAST_EXTENT) continue;
      if (box.x < 0 || box.x > width || box.y < 0 || box.y > height) continue;
      // Below a small one, so that it stays to be seen.
      const y = box.high < 48 ? box.y + box.high / 2 + lines.length * 7 + 7 : box.y;
      if (this.drawLines(lines, box.x, y, community)) shown++;
    }
  }

  extent(members) {
    let [left, top, right, bottom] = [1e9, 1e9, -1e9, -1e9];
    for (const v of members) {
      const [x, y] = this.place(v);
      left = Math.min(left, x); right = Math.max(right, x);
      top = Math.min(top, y); bottom = Math.max(bottom, y);
    }
    return { x: (left + right) / 2, y: (top + bottom) / 2, wide: right - left, high: bottom - top };
  }

  drawLines(lines, x, y, community) {
    const { context, picture } = this;
    context.font = `600 12px ${FONT}`;
    const wide = Math.max(...lines.map((line) => context.measureText(line).width)) + 6;
    const high = lines.length * 15 + 4;
    const left = Math.min(Math.max(x - wide / 2, 4), this.width - wide - 4);
    const top = Math.min(Math.max(y - high / 2, 2), this.height - high - 2);
    const rect = { left, top, wide, high, community };
    if (!this.claim(rect, 4)) return false;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 4;
    context.strokeStyle = picture.look.background;
    // Tinted, so that it is plain whose name it is.
    const colour = picture.communityColour.get(community) ?? picture.look.text;
    context.fillStyle = mixed(colour, picture.look.text, 0.55);
    lines.forEach((line, i) => {
      const at = rect.top + 2 + 15 * (i + 0.5);
      context.globalAlpha = 0.85;
      context.strokeText(line, left + wide / 2, at);
      context.globalAlpha = 1;
      context.fillText(line, left + wide / 2, at);
    });
    return true;
  }

  drawTitles(width, height) {
    const { picture } = this;
    const { highlighted, sigma } = picture;
    let room = Math.round((width * height) / 9000);
    for (const v of this.byDegree) {
      if (!room) break;
      if (highlighted && !highlighted.has(v)) continue;
      const size = sigma.scaleSize(sigma.getNodeDisplayData(String(v)).size);
      if (!highlighted && size < 5) break;
      const [x, y] = this.place(v);
      if (x < 0 || x > width || y < 8 || y > height - 8) continue;
      if (this.drawTitle(v, false)) room--;
    }
  }

  drawTitle(v, strong) {
    const { context, picture } = this;
    const { sigma, look, index } = picture;
    const [x, y] = this.place(v);
    const size = sigma.scaleSize(sigma.getNodeDisplayData(String(v)).size);
    const text = shortened(index.entities.title[v], strong ? 60 : 34);
    context.font = `${strong ? 600 : 400} ${strong ? 13 : 11.5}px ${FONT}`;
    const wide = context.measureText(text).width + 8;
    const fits = x + size + wide < this.width;
    const left = fits ? x + size + 1 : x - size - wide - 1;
    const rect = { left, top: y - 9, wide, high: 18, community: ROOT };
    if (!strong && (left < 0 || !this.claim(rect, 1))) return false;
    if (strong && v !== picture.hovered) this.drawn.push(rect);
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.strokeStyle = context.fillStyle = look.background;
    if (strong) {
      context.globalAlpha = 0.92;
      context.beginPath();
      context.roundRect(rect.left, rect.top - 1, rect.wide, 20, 4);
      context.fill();
      context.globalAlpha = 1;
    } else {
      context.lineWidth = 3;
      context.strokeText(text, left + 4, y);
    }
    context.fillStyle = look.text;
    context.fillText(text, left + 4, y);
    return true;
  }

  /** Take a rectangle for a label; false if another label is there. */
  claim(rect, margin) {
    const free = this.drawn.every((other) =>
      rect.left > other.left + other.wide + margin || other.left > rect.left + rect.wide + margin ||
      rect.top > other.top + other.high + margin || other.top > rect.top + rect.high + margin);
    if (free) this.drawn.push(rect);
    return free;
  }

  communityAt(x, y) {
    const found = this.drawn.find((r) => r.community !== ROOT && x >= r.left &&
      x <= r.left + r.wide && y >= r.top && y <= r.top + r.high);
    return found ? found.community : ROOT;
  }
}
