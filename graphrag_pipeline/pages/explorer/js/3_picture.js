const { Sigma, UndirectedGraph } = GraphLibraries;
/** More edges than this cannot be told apart, and slow the page down. */
const MOST_EDGES = 12000;
const MOST_SELECTED_EDGES = 3000;

/** The canvas: entities and their relationships, coloured by community, some highlighted. */
class Picture {
  constructor(container, index, actions) {
    this.index = index;
    this.container = container;
    this.highlighted = null;
    this.focus = ROOT;
    this.nearness = 0;
    this.colour(0, ROOT);
    this.sigma = new Sigma(this.graph(), container, {
      renderLabels: false,
      minEdgeThickness: 0.3,
      hideEdgesOnMove: index.relationships.source.length > 4000,
      zIndex: true,
      stagePadding: 26,
      minCameraRatio: 0.004,
      maxCameraRatio: 2,
      zoomToSizeRatioFunction: (ratio) => ratio ** 0.55,
      nodeReducer: (key, data) => this.drawnNode(+key, data),
      edgeReducer: (key, data) => this.drawnEdge(+key, data),
      defaultDrawNodeHover: () => {},
    });
    this.sigma.createCanvasContext("selection", { beforeLayer: "nodes" });
    this.sigma.resize(true);
    this.labels = new Labels(this, container.parentElement);
    this.sigma.getCamera().on("updated", ({ ratio }) => this.approach(ratio));
    this.sigma.on("afterRender", () => { this.drawSelection(); this.labels.draw(); });
    const choose = ({ event, node }) => {
      const community = this.namedAt(event, node);
      if (community !== ROOT) actions.openCommunity(community);
      else if (node !== undefined) actions.openEntity(+node);
    };
    this.sigma.on("clickNode", choose);
    this.sigma.on("clickStage", choose);
    this.sigma.on("moveBody", ({ event }) => {
      const named = this.labels.communityAt(event.x, event.y) !== ROOT;
      this.container.style.cursor = named || this.hovered != null ? "pointer" : "";
    });
    this.sigma.on("enterNode", ({ node, event }) => {
      if (this.namedAt(event, node) === ROOT) this.hover(+node);
    });
    this.sigma.on("leaveNode", () => this.hover(null));
  }

  /** The community whose name is pointed at, unless it is at an entity large enough to be meant. */
  namedAt(event, node) {
    const size = node === undefined ? 0 : this.sigma.getNodeDisplayData(node).size;
    return this.sigma.scaleSize(size) < 6 ? this.labels.communityAt(event.x, event.y) : ROOT;
  }

  graph() {
    const { index } = this;
    const { x, y } = index.entities;
    const { width, height } = this.container.getBoundingClientRect();
    const spacing = (Math.sqrt(0.9 / Math.max(index.size, 1)) * Math.min(width, height)) / 2;
    const base = Math.min(Math.max(spacing * 0.19, 0.95), 4.5);
    const graph = new UndirectedGraph();
    for (let v = 0; v < index.size; v++) {
      const size = base * (0.7 + 0.34 * Math.sqrt(Math.min(index.degree(v), 70)));
      graph.addNode(String(v), { x: x[v], y: y[v], size });
    }
    const { source, target, weight } = index.relationships;
    this.drawnEdges = Math.min(source.length, MOST_EDGES);
    const most = Math.log1p(weight[0] ?? 1);
    for (let e = this.drawnEdges - 1; e >= 0; e--) {
      const size = 0.5 + (1.6 * Math.log1p(weight[e])) / most;
      graph.addEdgeWithKey(String(e), String(source[e]), String(target[e]), { size });
    }
    return graph;
  }

  /** Colour by the communities of a level, those inside `within` most distinctly, and draw. */
  present(level, within) {
    this.colour(level, within);
    this.labels.choose(this.named);
    this.sigma.refresh();
  }

  colour(level, within) {
    const { index } = this;
    this.look = theme();
    this.fadeLinks();
    const inside = (c) => within !== ROOT && index.communities.parent[c] === within;
    const standing = index.standing(level);
    this.named = standing.filter(inside);
    const order = [...this.named, ...standing.filter((c) => !inside(c))];
    if (!this.named.length) this.named = within === ROOT ? standing : [within];
    this.communityColour = communityColours(index, order, this.look);
    this.communityOf = Array.from({ length: index.size }, (_, v) => index.at(v, level));
    const { look } = this;
    this.colours = this.communityOf.map((c) => this.communityColour.get(c) ?? look.grey);
    this.pale = new Map();
    for (const colour of new Set(this.colours)) {
      this.pale.set(colour, mixed(colour, look.background, 0.5));
    }
  }

  /** Keep to these entities, null for all; `focus` is the one chosen. Drawn by `present`. */
  highlight(nodes, focus) {
    this.highlighted = nodes && new Set(nodes);
    this.focus = focus;
  }

  drawnNode(v, data) {
    const lit = !this.highlighted || this.highlighted.has(v);
    const color = lit ? this.colours[v] : this.look.faded;
    const size = v === this.focus ? data.size * 1.25 + 2 : data.size;
    return { ...data, color, size, zIndex: v === this.focus ? 2 : lit ? 1 : 0 };
  }

  drawnEdge(e, data) {
    if (this.highlighted) return { ...data, hidden: true };
    const { source, target } = this.index.relationships;
    const within = this.communityOf[source[e]] === this.communityOf[target[e]];
    if (within) return { ...data, color: this.pale.get(this.colours[source[e]]), zIndex: 1 };
    const size = data.size * 0.6 ** this.nearness;
    return { ...data, color: this.linkColour, size, zIndex: 0 };
  }

  /** From near, links between communities only cross the view: they grow thin and faint. */
  approach(ratio) {
    const nearness = Math.min(Math.max(Math.round(-Math.log2(ratio)), 0), 5);
    if (nearness === this.nearness) return;
    this.nearness = nearness;
    this.fadeLinks();
    this.sigma.refresh({ schedule: true });
  }

  fadeLinks() {
    this.linkColour = mixed(this.look.link, this.look.background, Math.min(this.nearness * 0.2, 0.6));
  }

  /** Numbers of the relationships to draw above the others: all of an entity, or in a community. */
  selectedEdges() {
    const { index, highlighted } = this;
    if (!highlighted) return [];
    if (this.focus !== ROOT) return index.edges.of(this.focus).slice(0, MOST_SELECTED_EDGES);
    const { source, target } = index.relationships;
    const found = [];
    for (let e = 0; e < source.length && found.length < MOST_SELECTED_EDGES; e++) {
      if (highlighted.has(source[e]) && highlighted.has(target[e])) found.push(e);
    }
    return found;
  }

  drawSelection() {
    const context = this.sigma.getCanvases().selection.getContext("2d");
    const { width, height } = this.sigma.getDimensions();
    context.clearRect(0, 0, width, height);
    if (!this.highlighted) return;
    if (this.selectedOf !== this.highlighted) {
      this.selectedOf = this.highlighted;
      this.selected = this.selectedEdges();
    }
    const { source, target, weight } = this.index.relationships;
    const place = this.placer();
    context.globalAlpha = this.focus !== ROOT ? 0.55 : 0.4;
    for (const e of this.selected) {
      const other = this.focus === source[e] ? target[e] : source[e];
      context.strokeStyle = this.colours[other];
      context.lineWidth = Math.min(0.8 + Math.log1p(weight[e]) * 0.35, 3);
      context.beginPath();
      context.moveTo(...place(source[e]));
      context.lineTo(...place(target[e]));
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** Return the function from an entity to pixels; the view is never turned, so two points do. */
  placer() {
    const { x, y } = this.index.entities;
    const one = this.sigma.graphToViewport({ x: 0, y: 0 });
    const two = this.sigma.graphToViewport({ x: 1000, y: 1000 });
    const [wide, high] = [(two.x - one.x) / 1000, (two.y - one.y) / 1000];
    return (v) => [one.x + x[v] * wide, one.y + y[v] * high];
  }

  hover(v) {
    this.hovered = v;
    this.labels.draw();
  }

  /** Move the camera so that these entities fill most of the view. */
  show(nodes) {
    const at = nodes.map((v) => this.sigma.getNodeDisplayData(String(v)));
    const { width, height } = this.sigma.getDimensions();
    const least = Math.min(width, height);
    const [xs, ys] = [at.map((p) => p.x), at.map((p) => p.y)];
    const span = (values) => values.reduce((m, v) => Math.max(m, v), -9) -
      values.reduce((m, v) => Math.min(m, v), 9);
    const middle = (values) => values.reduce((m, v) => Math.max(m, v), -9) - span(values) / 2;
    const needed = Math.max((span(xs) * least) / width, (span(ys) * least) / height) * 1.35;
    const few = Math.min(1, Math.sqrt(30 / Math.max(this.index.size, 30)));
    const ratio = Math.min(Math.max(needed, 0.8 * few ** 1.5), 1.05);
    this.moveTo({ x: middle(xs), y: middle(ys), ratio });
  }

  showAll() { this.moveTo({ x: 0.5, y: 0.5, ratio: 1 }); }

  zoom(factor) { this.moveTo({ ratio: this.sigma.getCamera().ratio * factor }); }

  moveTo(state) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const moved = this.sigma.getCamera().animate({ angle: 0, ...state }, { duration: still ? 0 : 350 });
    // Relationships are left out while the picture moves, also if it has not far to go.
    moved.then(() => this.sigma.scheduleRender());
  }

  resized() { this.sigma.resize(); this.sigma.refresh(); }
}
