const FIRST_SHOWN = 40;
const TYPE_NAMES = { geo: "place", location: "place", organization: "organisation",
  concept: "idea or term", other: "name" };

/** Make an element; text of documents only ever goes in as text. */
function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children.filter((child) => child !== null));
  return made;
}

function dot(colour) {
  const made = element("i", { class: "dot", "aria-hidden": "true" });
  made.style.background = colour;
  return made;
}

/** What is known of the thing selected, or of the whole release. */
class Panel {
  constructor(place, index) {
    this.place = place;
    this.index = index;
    this.colourOf = () => "var(--alone)";
  }

  show(kind, ...parts) {
    this.place.dataset.kind = kind;
    this.place.replaceChildren(...parts.filter((part) => part !== null));
    this.place.scrollTop = 0;
  }

  section(title, ...children) {
    return element("section", {}, element("h3", { text: title }), ...children);
  }

  /** A list that shows its first rows, and the rest when asked. */
  list(rows, make, name) {
    const list = element("ul", { class: name });
    const more = element("button", { type: "button", class: "more" });
    const grow = (n) => {
      for (const row of rows.slice(list.children.length, list.children.length + n)) {
        list.append(make(row));
      }
      const left = rows.length - list.children.length;
      more.textContent = `Show ${Math.min(left, 500).toLocaleString("en")} more`;
      more.hidden = left === 0;
    };
    more.addEventListener("click", () => grow(500));
    grow(FIRST_SHOWN);
    return [list, more];
  }

  entityLink(v) {
    const { title, number } = this.index.entities;
    return element("a", { href: `#entity=${number[v]}` }, dot(this.colourOf("entity", v)),
      element("span", { text: title[v] }));
  }

  communityLink(c, note) {
    const { title, number, size } = this.index.communities;
    return element("a", { href: `#community=${number[c]}`, class: "community" },
      dot(this.colourOf("community", c)), element("span", { class: "name", text: title[c] }),
      element("span", { class: "note", text: note ?? size[c].toLocaleString("en") }));
  }

  typeName(v) {
    const name = this.index.types[this.index.entities.type[v]].toLowerCase();
    return TYPE_NAMES[name] ?? (name || "no type");
  }

  levelName(level) { return level === 0 ? "root" : `level ${level}`; }

  back(c) {
    if (c === ROOT) return element("nav", {}, element("a", { href: "#", text: "‹ Whole graph" }));
    const { title, number } = this.index.communities;
    const to = `#community=${number[c]}`;
    return element("nav", {}, element("a", { href: "#", text: "‹ Whole graph" }),
      element("a", { href: to, text: `‹ ${shortened(title[c], 40)}` }));
  }

  showRelease(level, edgesDrawn) {
    const { index } = this;
    const { release } = index;
    const standing = index.standing(level).filter((c) => index.communities.size[c] > 1);
    const alone = index.standing(level).length - standing.length;
    const total = index.relationships.source.length;
    this.show("release",
      element("h2", { text: "The graph" }),
      element("p", { class: "counts", text: [
        plural(release.n_entities, "entity", "entities"),
        plural(release.n_relationships, "relationship", "relationships"),
        plural(release.n_communities, "community", "communities"),
        plural(release.n_documents, "document", "documents")].join(" · ") }),
      element("p", { class: "quiet", text: `Release ${release.id}, published ${release.created_at} UTC.` }),
      edgesDrawn < total
        ? element("p", { class: "quiet", id: "edges-drawn", text:
          `Drawn: the ${edgesDrawn.toLocaleString("en")} strongest of ` +
          `${total.toLocaleString("en")} relationships. All of an entity's appear when you choose it.` })
        : null,
      this.section(level === 0 ? "Root communities" : `Communities at level ${level}`,
        element("p", { class: "quiet", id: "communities-counted", text: this.counted(standing, alone) }),
        ...this.list(standing, (c) => element("li", {}, this.communityLink(c)), "communities")));
  }

  counted(standing, alone) {
    const { writer } = this.index.communities;
    const imported = standing.filter((c) => writer[c] === "import").length;
    const found = plural(standing.length, "community", "communities");
    const from = imported && imported < standing.length
      ? ` (${imported} from the import, ${standing.length - imported} found here)` : "";
    return `${found}${from}` +
      (alone ? `, and ${plural(alone, "entity", "entities")} in none.` : ".");
  }

  showEntity(v) {
    const { index } = this;
    const { title, description, frequency } = index.entities;
    const aliases = Array.from(index.aliasesOf.of(v), (i) => index.aliases.title[i]);
    const path = index.path(v).reverse().filter((c) => index.communities.size[c] > 1);
    this.show("entity", this.back(path.at(-1) ?? ROOT),
      element("h2", { text: title[v] }),
      element("p", { class: "facts" },
        element("span", { class: "chip", text: this.typeName(v) }),
        element("span", { text: `${plural(index.degree(v), "neighbour", "neighbours")} · named in ` +
          plural(frequency[v], "passage", "passages") })),
      aliases.length ? element("p", { class: "quiet", text: `Also: ${aliases.join(", ")}` }) : null,
      element("p", { class: "description", text: description[v] || "No description." }),
      path.length ? this.section("Communities", this.pathList(path)) : null,
      this.relationships(v), this.sources(v));
  }

  pathList(path) {
    const { level } = this.index.communities;
    return element("ul", { class: "communities" }, ...path.map((c) =>
      element("li", {}, this.communityLink(c, this.levelName(level[c])))));
  }

  relationships(v) {
    const { index } = this;
    const { weight, type, description } = index.relationships;
    const edges = Array.from(index.edges.of(v));
    if (!edges.length) return this.section("Relationships", element("p", { class: "quiet", text: "None." }));
    const row = (e) => element("li", {},
      element("div", { class: "neighbour" }, this.entityLink(index.neighbour(v, e)),
        type[e] ? element("span", { class: "chip", text: type[e] }) : null,
        element("span", { class: "note", text: `weight ${+weight[e].toFixed(2)}` })),
      element("p", { text: description[e] }));
    return this.section(`Relationships (${edges.length.toLocaleString("en")})`,
      ...this.list(edges, row, "relationships"));
  }

  sources(v) {
    const { index } = this;
    const rows = Array.from(index.passagesOf.of(v));
    if (!rows.length) return this.section("Source text", element("p", { class: "quiet", text: "None is recorded." }));
    const all = index.passages.n_chunks[rows[0]];
    return this.section("Source text",
      all > rows.length ? element("p", { class: "quiet", text:
        `${rows.length} of ${all.toLocaleString("en")} passages.` }) : null,
      ...rows.map((i) => this.passage(i)));
  }

  passage(i) {
    const { excerpts, passages, documents } = this.index;
    const excerpt = passages.excerpt[i];
    // Positions count characters, of which some are two units of a string.
    const text = Array.from(excerpts.text[excerpt]);
    const [first, last, at] = [passages.first[i], passages.last[i], passages.marked[i]];
    const end = at + passages.n_marked[i];
    const part = (from, to) => text.slice(from, to).join("").replace(/\s+/g, " ");
    const quote = element("blockquote", {}, "… ", part(first, at).replace(/^\S{0,14}\s/, ""));
    if (end > at) quote.append(element("mark", { text: part(at, end) }));
    quote.append(part(end, last).replace(/\s\S{0,14}$/, ""), " …");
    const document = excerpts.document[excerpt];
    return element("figure", {}, quote,
      this.origin(document, excerpts.start[excerpt] + at, documents.title[document]));
  }

  origin(document, start) {
    const { title, uri } = this.index.documents;
    const name = title[document] && title[document] !== uri[document] ? `${title[document]} — ` : "";
    return element("figcaption", { text: `${name}${uri[document]}, character ${start.toLocaleString("en")}` });
  }

  showCommunity(c) {
    const { index } = this;
    const { title, level, last_level: last, size, n_relationships: inside, parent } = index.communities;
    const levels = last[c] > level[c] ? `level ${level[c]} to ${last[c]}` : `level ${level[c]}`;
    const name = level[c] === 0 ? "root community" : levels;
    const children = index.children[c];
    const members = index.members[c].slice().sort((a, b) => index.degree(b) - index.degree(a) || a - b);
    this.show("community", this.back(parent[c]),
      element("h2", { text: title[c] }),
      element("p", { class: "facts" }, element("span", { class: "chip", text: name }),
        element("span", { text: `${plural(size[c], "entity", "entities")} · ` +
          plural(inside[c], "relationship", "relationships") })),
      ...this.report(c),
      children.length ? this.section(`Communities inside (${children.length})`,
        ...this.list(children, (k) => element("li", {}, this.communityLink(k)), "communities")) : null,
      this.section(`Entities (${members.length.toLocaleString("en")})`,
        ...this.list(members, (v) => element("li", {}, this.entityLink(v)), "members")));
  }

  report(c) {
    const { index } = this;
    const { summary, rating, rating_explanation: why, writer, coverage } = index.communities;
    if (!writer[c]) return [element("p", { class: "quiet", text: "It has no report." })];
    const said = { extractive: "sentences picked from the text", import: "imported" }[writer[c]];
    const covered = writer[c] === "import" || coverage[c] == null ? ""
      : `, on ${Math.round(coverage[c] * 100)} % of its relationships`;
    return [
      element("p", { class: "description", text: summary[c] }),
      element("p", { class: "quiet", title: why[c], text:
        `Rated ${rating[c].toFixed(1)} of 10. Report: ${said ?? `written by ${writer[c]}`}${covered}.` }),
      this.findings(c)];
  }

  findings(c) {
    const { findings } = this.index;
    const rows = Array.from(this.index.findingsOf.of(c));
    if (!rows.length) return null;
    return this.section("Findings", element("ol", { class: "findings" }, ...rows.map((i) =>
      element("li", {},
        findings.summary[i] && findings.summary[i] !== "Evidence"
          ? element("strong", { text: findings.summary[i] }) : null,
        element("p", { text: findings.explanation[i] }),
        findings.document[i] >= 0 ? this.origin(findings.document[i], findings.start[i]) : null))));
  }
}
