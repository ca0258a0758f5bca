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

/** The link to some characters of a document. */
const marked = (link, start, end) => link && `${link}&start=${start}&end=${end}`;

/** What is known of the thing selected, or of the whole release. */
class Panel {
  constructor(place, index) {
    this.place = place;
    this.index = index;
    this.more = new More(index);
    this.colourOf = () => "var(--alone)";
    this.byKeyboard = false;
    addEventListener("keydown", () => { this.byKeyboard = true; }, true);
    addEventListener("pointerdown", () => { this.byKeyboard = false; }, true);
  }

  /** Show parts; whoever came by keyboard and has no focus any more has it at their heading. */
  show(kind, ...parts) {
    const { activeElement: focused, body } = document;
    const isLost = this.byKeyboard && (focused === body || this.place.contains(focused));
    this.place.dataset.kind = kind;
    this.place.replaceChildren(...parts.filter((part) => part !== null));
    this.place.scrollTop = 0;
    const heading = this.place.querySelector("h2");
    heading?.setAttribute("tabindex", "-1");
    if (isLost) heading?.focus({ preventScroll: true });
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
    this.fill = null;
    this.show("release",
      element("h2", { text: "The graph" }),
      element("p", { class: "counts", text: [
        plural(release.n_entities, "entity", "entities"),
        plural(release.n_relationships, "relationship", "relationships"),
        plural(release.n_communities, "community", "communities"),
        plural(release.n_documents, "document", "documents")].join(" · ") }),
      element("p", { class: "quiet", text: `Release ${release.id}, published ${release.created_at} UTC.` }),
      ...this.leftOut(),
      edgesDrawn < total
        ? element("p", { class: "quiet", id: "edges-drawn", text:
          `Drawn: the ${edgesDrawn.toLocaleString("en")} strongest of ` +
          `${total.toLocaleString("en")} relationships. All of an entity's appear when you choose it.` })
        : null,
      this.section(level === 0 ? "Root communities" : `Communities at level ${level}`,
        element("p", { class: "quiet", id: "communities-counted", text: this.counted(standing, alone) }),
        ...this.list(standing, (c) => element("li", {}, this.communityLink(c)), "communities")));
  }

  /** What of the release is not in this file, and how to see it. */
  leftOut() {
    const { index } = this;
    if (index.isComplete) return [];
    const { left, release } = index;
    const drawn = index.size < release.n_entities ? [`${index.size.toLocaleString("en")} entities are drawn, ` +
      "of every root community those with most links."] : [];
    const texts = [[left.entities, "entity", "entities"], [left.reports, "report", "reports"],
      [left.sentences, "relationship", "relationships"]].filter(([n]) => n)
      .map((each) => plural(...each));
    if (texts.length) drawn.push(`The texts of ${texts.join(", ")} ` + (this.more.isServed
      ? "come from the server when you choose one."
      : `are not in this file; where they stand is. To read them: ${this.more.how("")}.`));
    return [element("p", { class: "quiet", id: "left-out", text: drawn.join(" ") })];
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
    const number = this.index.entities.number[v];
    this.fill = (found) => this.drawEntity(v, found);
    this.complete("entities", number, this.index.isWhole(v));
  }

  /** Show what is here, then what the server adds, unless something else is shown by then. */
  async complete(kind, number, isWhole) {
    const { fill, more } = this;
    fill(more.held(kind, number));
    if (isWhole || !more.isServed || more.held(kind, number)) return;
    const found = await more.ask(kind, number);
    if (this.fill === fill) fill(found);
  }

  drawEntity(v, found) {
    const { index } = this;
    const { title, frequency } = index.entities;
    const aliases = Array.from(index.aliasesOf.of(v), (i) => index.aliases.title[i]);
    const path = index.path(v).reverse().filter((c) => index.communities.size[c] > 1);
    const description = found?.description ?? index.entities.description[v];
    this.show("entity", this.back(path.at(-1) ?? ROOT),
      element("h2", { text: title[v] }),
      element("p", { class: "facts" },
        element("span", { class: "chip", text: this.typeName(v) }),
        element("span", { text: `${plural(index.entities.degree[v], "neighbour", "neighbours")} · named in ` +
          plural(frequency[v], "passage", "passages") }),
        this.address("entities", index.entities.id?.[v])),
      aliases.length ? element("p", { class: "quiet", text: `Also: ${aliases.join(", ")}` }) : null,
      description === null ? this.absent("Its description", found, `entity=${index.entities.number[v]}`)
        : element("p", { class: "description", text: description || "No description." }),
      path.length ? this.section("Communities", this.pathList(path)) : null,
      this.relationships(v, found), this.sources(v, found));
  }

  /** The permanent link of the thing that is shown, where the address of a server is known. */
  address(kind, id) {
    const around = this.index.links[kind];
    return around ? element("a", { href: around.join(encodeURIComponent(id)), rel: "noreferrer", class: "address",
      text: "Permanent link" }) : null;
  }

  /** A line for what is not in this file: it is asked for, could not be had, or how to see it. */
  absent(what, found, address) {
    const text = found?.problem ? `${what} could not be had: ${found.problem}`
      : this.more.isServed ? `${what} comes from the server …`
        : `${what} is not in this file. To read it: ${this.more.how(`#${address}`)}.`;
    return element("p", { class: "quiet absent", text });
  }

  pathList(path) {
    const { level } = this.index.communities;
    return element("ul", { class: "communities" }, ...path.map((c) =>
      element("li", {}, this.communityLink(c, this.levelName(level[c])))));
  }

  relationships(v, found) {
    const { index } = this;
    const rows = found?.relationships ?? Array.from(index.edges.of(v), (e) => this.relationship(v, e));
    if (!rows.length) return this.section("Relationships", element("p", { class: "quiet", text: "None." }));
    const total = index.entities.degree[v];
    const untold = rows.filter((row) => row.description === null).length;
    const here = untold && index.entities.description[v] !== null
      ? this.absent(`What is said of ${plural(untold, "relationship", "relationships")}`, found,
        `entity=${index.entities.number[v]}`) : null;
    const row = ({ number, title, type, weight, description }) => element("li", {},
      element("div", { class: "neighbour" },
        index.entityByNumber.has(number) ? this.entityLink(index.entityByNumber.get(number))
          : element("span", { text: title }),
        type ? element("span", { class: "chip", text: type }) : null,
        element("span", { class: "note", text: `weight ${+weight.toFixed(2)}` })),
      description === null ? null : element("p", { text: description }));
    const shown = rows.length < total ? `${rows.length.toLocaleString("en")} of ` : "";
    return this.section(`Relationships (${shown}${Math.max(total, rows.length).toLocaleString("en")})`, here,
      ...this.list(rows, row, "relationships"));
  }

  relationship(v, e) {
    const { relationships, entities, sentences } = this.index;
    const { weight, type, sentence } = relationships;
    const other = this.index.neighbour(v, e);
    return { number: entities.number[other], title: entities.title[other], type: type[e],
      weight: weight[e], description: sentence[e] < 0 ? null : sentences[sentence[e]] };
  }

  sources(v, found) {
    const { index } = this;
    const rows = found?.passages ?? Array.from(index.passagesOf.of(v), (i) => this.held(i));
    if (!rows.length) {
      const [origin] = index.originsOf.of(v);
      return this.section("Source text", origin === undefined
        ? element("p", { class: "quiet", text: "None is recorded." })
        : this.origin(index.origins.document[origin], index.origins.start[origin]));
    }
    const all = rows[0].n_chunks;
    return this.section("Source text",
      all > rows.length ? element("p", { class: "quiet", text:
        `${rows.length} of ${all.toLocaleString("en")} passages.` }) : null,
      ...rows.map((passage) => this.passage(passage)));
  }

  /** A passage that the page holds, as the server gives one. */
  held(i) {
    const { excerpts, passages, documents } = this.index;
    const excerpt = passages.excerpt[i];
    // Positions count characters, of which some are two units of a string.
    const text = Array.from(excerpts.text[excerpt]);
    const [first, last, at] = [passages.first[i], passages.last[i], passages.marked[i]];
    const end = at + passages.n_marked[i];
    const part = (from, to) => text.slice(from, to).join("");
    const document = excerpts.document[excerpt];
    return { before: part(first, at), name: part(at, end), after: part(end, last),
      title: documents.title[document], uri: documents.uri[document],
      link: documents.link?.[document],
      start: excerpts.start[excerpt] + at, n_chunks: passages.n_chunks[i] };
  }

  passage({ before, name, after, title, uri, start, link }) {
    const plain = (text) => text.replace(/\s+/g, " ");
    const quote = element("blockquote", {}, "… ", plain(before).replace(/^\S{0,14}\s/, ""));
    if (name) quote.append(element("mark", { text: plain(name) }));
    quote.append(plain(after).replace(/\s\S{0,14}$/, ""), " …");
    const end = start + Array.from(name).length;
    return element("figure", {}, quote, this.spot(title, uri, start, marked(link, start, end)));
  }

  origin(document, start) {
    const { title, uri, link } = this.index.documents;
    return this.spot(title[document], uri[document], start, link?.[document]);
  }

  /** Where a passage stands, with its permanent link where the address of a server is known. */
  spot(title, uri, start, link = undefined) {
    const name = title && title !== uri ? `${title} — ` : "";
    const text = `${name}${uri}, character ${start.toLocaleString("en")}`;
    return element("figcaption", link ? {} : { text }, link ? element("a", { href: link, rel: "noreferrer", text }) : null);
  }

  showCommunity(c) {
    const number = this.index.communities.number[c];
    this.fill = (found) => this.drawCommunity(c, found);
    this.complete("communities", number, this.index.isReported(c));
  }

  drawCommunity(c, found) {
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
          plural(inside[c], "relationship", "relationships") }),
        this.address("communities", index.communities.id?.[c])),
      ...this.report(c, found),
      children.length ? this.section(`Communities inside (${children.length})`,
        ...this.list(children, (k) => element("li", {}, this.communityLink(k)), "communities")) : null,
      this.section(`Entities (${members.length < size[c] ? `${members.length.toLocaleString("en")} of ` : ""}` +
        `${size[c].toLocaleString("en")})`,
        ...this.list(members, (v) => element("li", {}, this.entityLink(v)), "members")));
  }

  report(c, found) {
    const { index } = this;
    const { rating, writer, coverage, number } = index.communities;
    if (!writer[c]) return [element("p", { class: "quiet", text: "It has no report." })];
    const said = { extractive: "sentences picked from the text", import: "imported" }[writer[c]];
    const covered = writer[c] === "import" || coverage[c] == null ? ""
      : `, on ${Math.round(coverage[c] * 100)} % of its relationships`;
    const report = found?.summary !== undefined ? found : this.reportHeld(c);
    return [
      report ? element("p", { class: "description", text: report.summary })
        : this.absent("Its report", found, `community=${number[c]}`),
      element("p", { class: "quiet", title: report?.rating_explanation ?? "", text:
        `Rated ${rating[c].toFixed(1)} of 10. Report: ${said ?? `written by ${writer[c]}`}${covered}.` }),
      report ? this.findings(report.findings) : null];
  }

  /** The report of a community that the page holds, as the server gives one. */
  reportHeld(c) {
    const { communities, findings, documents } = this.index;
    if (communities.summary[c] === null) return null;
    return { summary: communities.summary[c], rating_explanation: communities.rating_explanation[c],
      findings: Array.from(this.index.findingsOf.of(c), (i) => ({
        summary: findings.summary[i], explanation: findings.explanation[i],
        title: documents.title[findings.document[i]], uri: documents.uri[findings.document[i]],
        link: documents.link?.[findings.document[i]], start: findings.start[i],
        end: findings.end[i] })) };
  }

  findings(rows) {
    if (!rows.length) return null;
    return this.section("Findings", element("ol", { class: "findings" }, ...rows.map((row) =>
      element("li", {},
        row.summary && row.summary !== "Evidence" ? element("strong", { text: row.summary }) : null,
        element("p", { text: row.explanation }),
        row.uri ? this.spot(row.title, row.uri, row.start, marked(row.link, row.start, row.end)) : null))));
  }
}
