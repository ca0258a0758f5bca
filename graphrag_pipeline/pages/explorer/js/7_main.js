/** Ties the parts together: the address after # says what is selected. */
class Explorer {
  constructor(data) {
    this.index = new Index(data);
    this.level = 0;
    this.chosenLevel = 0;
    this.panel = new Panel(document.getElementById("panel"), this.index);
    this.levelBox = document.getElementById("level");
    this.picture = this.index.size ? this.draw() : null;
    this.panel.colourOf = (kind, at) => this.colourOf(kind, at);
    new SearchBox(document.getElementById("search"), document.getElementById("found"),
      this.index, this.panel.colourOf, (kind, at) => this.open(kind, at));
    this.offerLevels();
    this.listen();
  }

  draw() {
    try {
      return new Picture(document.getElementById("canvas"), this.index, {
        openEntity: (v) => this.open("entity", v),
        openCommunity: (c) => this.open("community", c),
      });
    } catch (error) {
      console.warn(error);
      this.say("This browser cannot draw the graph (it needs WebGL 2). Search and lists work.");
      return null;
    }
  }

  say(text) {
    const note = document.getElementById("message");
    note.textContent = text;
    note.hidden = false;
  }

  offerLevels() {
    const { index } = this;
    for (let level = 0; level < index.levels; level++) {
      const many = index.standing(level).filter((c) => index.communities.size[c] > 1).length;
      const name = level === 0 ? "Root" : `Level ${level}`;
      const text = `${name} (${many.toLocaleString("en")})`;
      this.levelBox.append(element("option", { value: level, text }));
    }
    this.levelBox.disabled = index.levels < 2;
  }

  listen() {
    addEventListener("hashchange", () => this.route());
    this.levelBox.addEventListener("change", () => this.setLevel(+this.levelBox.value));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    const on = (id, act) => document.getElementById(id).addEventListener("click", act);
    on("closer", () => this.picture?.zoom(0.6));
    on("wider", () => this.picture?.zoom(1 / 0.6));
    on("whole", () => this.picture?.showAll());
    on("fold", () => {
      const folded = document.body.classList.toggle("folded");
      document.getElementById("fold").setAttribute("aria-expanded", String(!folded));
    });
    if (this.picture) new ResizeObserver(() => this.picture.resized()).observe(this.picture.container);
  }

  colourOf(kind, at) {
    const { picture } = this;
    if (!picture) return "var(--alone)";
    if (kind === "entity") return picture.colours[at];
    return picture.communityColour.get(at) ?? this.nearestColour(at);
  }

  /** A community that does not stand at the level shown has the colour of the one above, if any. */
  nearestColour(c) {
    for (let up = c; up !== ROOT; up = this.index.communities.parent[up]) {
      const colour = this.picture.communityColour.get(up);
      if (colour) return colour;
    }
    return "var(--alone)";
  }

  open(kind, at) {
    const numbers = kind === "entity" ? this.index.entities.number : this.index.communities.number;
    location.hash = `${kind}=${numbers[at]}`;
  }

  selection() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const of = (name, known) => known.get(Number(asked.get(name) ?? NaN)) ?? ROOT;
    return {
      entity: of("entity", this.index.entityByNumber),
      community: of("community", this.index.communityByNumber),
    };
  }

  setLevel(level) {
    this.level = this.chosenLevel = level;
    this.recolour();
  }

  recolour() {
    this.levelBox.value = String(this.level);
    const { community } = this.selection();
    this.picture?.present(this.level, community);
    this.fill();
  }

  /** Show what the address asks for. */
  route() {
    const { entity, community } = this.selection();
    const { picture, index } = this;
    if (entity !== ROOT) {
      const near = Array.from(index.edges.of(entity), (e) => index.neighbour(entity, e));
      picture?.highlight([entity, ...near], entity);
      picture?.show([entity, ...near.slice(0, 40)]);
    } else if (community !== ROOT) {
      const { level } = index.communities;
      this.level = Math.min(level[community] + (index.children[community].length ? 1 : 0),
        index.levels - 1);
      picture?.highlight(index.members[community], ROOT);
      picture?.show(index.members[community]);
    } else {
      // Looking into a community has shown the level below it.
      this.level = this.chosenLevel;
      picture?.highlight(null, ROOT);
      picture?.showAll();
    }
    document.body.classList.remove("folded");
    this.recolour();
  }

  fill() {
    const { entity, community } = this.selection();
    if (entity !== ROOT) this.panel.showEntity(entity);
    else if (community !== ROOT) this.panel.showCommunity(community);
    else this.panel.showRelease(this.level, this.picture?.drawnEdges ?? 0);
  }
}

async function start() {
  const note = document.getElementById("message");
  try {
    const data = await unpack(document.getElementById("data"));
    note.hidden = true;
    const explorer = new Explorer(data);
    explorer.route();
    if (!explorer.index.size) explorer.say("This release holds no entities: there is no graph to draw.");
    window.explorer = explorer;
  } catch (error) {
    note.hidden = false;
    if (error instanceof Refused) {
      note.textContent = error.message;
      return;
    }
    note.textContent = "The page could not be read; it needs a browser of 2023 or later.";
    throw error;
  }
}

start();
