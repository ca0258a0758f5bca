import { get, where } from "./api.js";
import { corrections } from "./corrections.js";
import { count, element, foreign, growing, shortUri, typeName } from "./dom.js";
import { panel, titled } from "./panel.js";
import { picture } from "./picture.js";

const AROUND = 3000;
const MOST_NEAR = 60;

/** A button that opens a view in the panel. */
export function opener(view, ...children) {
  return element("button", { type: "button", class: "link", onclick: () => panel.open(view) },
    ...children);
}

export const entityLink = (id, title) => opener(() => entity(id), foreign(title));

/** The place a citation names: its document's text, with the cited words marked. */
export function cited(citation) {
  if (citation.report_id) return () => report(citation.report_id);
  return () => passage(citation);
}

async function passage({ document_id: id, document_title: title, uri, start_char: start,
  end_char: end, text }) {
  const first = Math.max(0, start - AROUND);
  const window = await get(`/v1/documents/${encodeURIComponent(id)}/text`,
    { start: first, end: end + AROUND });
  const shown = new Text(window, start, end);
  const stillThere = text === undefined || shown.marked === text;
  return [
    ...titled(title || shortUri(uri), "Passage"),
    origin(uri, `characters ${start.toLocaleString("en")} to ${end.toLocaleString("en")}`),
    stillThere ? null : element("p", { class: "notice", text: "The document has changed since this "
      + "answer. These characters hold other words now." }),
    ...shown.elements(),
  ];
}

export const wholeDocument = (document) => async () => {
  const path = `/v1/documents/${encodeURIComponent(document.id)}`;
  const [facts, text] = await Promise.all([get(path), get(`${path}/text`, { end: 2 * AROUND })]);
  const metadata = Object.entries(facts.metadata);
  return [
    ...titled(facts.title || shortUri(facts.uri), "Document"),
    origin(facts.uri, `${count(facts.n_chars, "character")}, ${count(facts.n_chunks, "passage")}`),
    metadata.length ? element("dl", { class: "metadata" }, metadata.map(([name, value]) => [
      element("dt", { text: name }),
      element("dd", {}, foreign(typeof value === "string" ? value : JSON.stringify(value)))])) : null,
    ...new Text(text, 0, 0).elements(),
  ];
};

const origin = (uri, facts) => element("p", { class: "origin" },
  element("bdi", { dir: "auto", title: uri, text: shortUri(uri) }), ` · ${facts}`);

/** A window on a document's text. Positions count characters, some of which are two of a string's. */
class Text {
  constructor({ id, text, start_char: start, end_char: end, n_chars: length }, first, last) {
    Object.assign(this, { id, start, end, length });
    const characters = Array.from(text);
    const cut = (from, to) => characters.slice(Math.max(0, from - start), Math.max(0, to - start)).join("");
    this.before = cut(start, first);
    this.marked = cut(first, last);
    this.after = cut(last, end);
  }

  elements() {
    const text = element("div", { class: "text", dir: "auto" });
    if (this.before) text.append(this.before);
    if (this.marked) text.append(element("mark", { text: this.marked }));
    text.append(this.after);
    const earlier = this.more("Earlier text", () => this.start > 0, async () => {
      const part = await this.part(Math.max(0, this.start - 2 * AROUND), this.start);
      this.start = part.start_char;
      text.prepend(part.text);
    });
    const later = this.more("Later text", () => this.end < this.length, async () => {
      const part = await this.part(this.end, this.end + 2 * AROUND);
      this.end = part.end_char;
      text.append(part.text);
    });
    return [earlier, text, later];
  }

  part(start, end) { return get(`/v1/documents/${encodeURIComponent(this.id)}/text`, { start, end }); }

  more(name, isThere, load) {
    const button = element("button", { type: "button", class: "plain more", text: name });
    button.hidden = !isThere();
    button.addEventListener("click", async () => {
      button.disabled = true;
      await load().catch((error) => button.after(element("p", { class: "bad", text: error.message })));
      button.disabled = false;
      button.hidden = !isThere();
    });
    return button;
  }
}

export async function entity(id, hops = 1) {
  const path = `/v1/entities/${encodeURIComponent(id)}`;
  const [facts, near] = await Promise.all([
    get(path), get(`${path}/neighbourhood`, { hops, most: MOST_NEAR })]);
  const titles = new Map(near.entities.map((each) => [each.id, each.title]));
  const ties = near.relationships.filter((tie) => tie.source_id === id || tie.target_id === id);
  const far = near.entities.filter((each) => each.hop > 1);
  return [
    ...titled(facts.title, typeName(facts.type)),
    facts.aliases.length ? element("p", { class: "quiet" }, "Also ",
      facts.aliases.flatMap((alias, n) => [n ? ", " : "", foreign(alias)])) : null,
    element("p", { class: "description", dir: "auto", text: facts.description }),
    element("p", { class: "links" }, explorerLink("entity", facts.human_readable_id)),
    section(`Neighbourhood (${ties.length.toLocaleString("en")})`,
      ties.length ? picture(near, id, (other) => panel.open(() => entity(other))) : null,
      ...growing(ties, (tie) => relationshipRow(tie, id, titles)),
      hops === 1 && ties.length
        ? element("button", { type: "button", class: "plain more", text: "Show two steps away",
          onclick: () => panel.show(() => entity(id, 2)) }) : null),
    far.length ? section("Two steps away", ...growing(far, (each) =>
      element("li", {}, entityLink(each.id, each.title),
        element("span", { class: "note", text: typeName(each.type) })))) : null,
    facts.communities.length ? section("Communities", element("ul", { class: "rows" },
      facts.communities.map((each) => element("li", {},
        opener(() => community(each.id), foreign(each.report ?? each.title)),
        element("span", { class: "note", text: each.level ? `level ${each.level}` : "root" }))))) : null,
    corrections(facts),
    facts.places.length ? section("Where documents tell of it", ...growing(facts.places, (place) =>
      element("li", {}, opener(() => passage(place), foreign(place.document_title || shortUri(place.uri))),
        element("span", { class: "note", text: `character ${place.start_char.toLocaleString("en")}` })))) : null,
  ];
}

function relationshipRow(tie, id, titles) {
  const other = tie.source_id === id ? tie.target_id : tie.source_id;
  return element("li", { class: "tie" }, element("div", { class: "line" },
    entityLink(other, titles.get(other) ?? tie.target),
    tie.type ? element("span", { class: "chip", text: tie.type }) : null,
    element("span", { class: "note", text: `weight ${+tie.weight.toFixed(2)}` })),
  tie.description ? element("p", { class: "quiet clamped", dir: "auto", text: tie.description }) : null);
}

/** A relationship among the evidence: what is told of it, and the way to both its ends. */
export const relationship = (record) => () => {
  const { source_id: source, target_id: target, weight } = record.attributes;
  return [
    ...titled(record.title, "Relationship"),
    element("p", { class: "description", dir: "auto", text: record.text }),
    weight === undefined ? null : element("p", { class: "quiet", text: `Weight ${+Number(weight).toFixed(2)}` }),
    source && target ? section("Between", element("ul", { class: "rows" },
      [source, target].map((id) => element("li", {}, namedLater(id))))) : null,
  ];
};

/** A link to an entity whose name has to be asked for. */
function namedLater(id) {
  const name = element("bdi", { dir: "auto", text: "…" });
  get(`/v1/entities/${encodeURIComponent(id)}`)
    .then((facts) => { name.textContent = facts.title; }, () => { name.textContent = "no longer there"; });
  return opener(() => entity(id), name);
}

export async function report(id) {
  const facts = await get(`/v1/reports/${encodeURIComponent(id)}`);
  const writer = { extractive: "sentences picked from the text", import: "imported" }[facts.writer]
    ?? `written by ${facts.writer}`;
  const covered = facts.coverage === null ? "" : `, on ${Math.round(facts.coverage * 100)} % of its relationships`;
  const findings = facts.findings ?? [];
  return [
    ...titled(facts.title, "Report"),
    element("p", { class: "quiet", title: facts.rating_explanation ?? "",
      text: `Rated ${Number(facts.rating).toFixed(1)} of 10. ${writer[0].toUpperCase()}${writer.slice(1)}${covered}.` }),
    facts.outdated ? element("p", { class: "notice", text: "Documents have changed since it was written." }) : null,
    element("p", { class: "description", dir: "auto", text: facts.summary }),
    element("p", { class: "links" }, opener(() => community(facts.community_id), "Its community")),
    findings.length ? section("Findings", element("ol", { class: "findings" }, findings.map((each) =>
      element("li", { dir: "auto" }, element("strong", { text: each.summary }),
        element("p", { text: each.explanation }))))) : null,
  ];
}

export async function community(id) {
  const facts = await get(`/v1/communities/${encodeURIComponent(id)}`);
  const place = facts.level === 0 ? "Root community" : `Community of level ${facts.level}`;
  return [
    ...titled(facts.report ?? facts.title, place),
    element("p", { class: "quiet", text: `${count(facts.size, "entity", "entities")}, `
      + count(facts.n_relationships, "relationship") }),
    facts.summary ? element("p", { class: "description", dir: "auto", text: facts.summary }) : null,
    element("p", { class: "links" }, facts.report_id ? opener(() => report(facts.report_id), "Its report") : null,
      facts.parent_id ? opener(() => community(facts.parent_id), "The community above") : null,
      explorerLink("community", facts.human_readable_id)),
    facts.parts.length ? section(`Communities inside (${facts.parts.length})`, ...growing(facts.parts,
      (part) => element("li", {}, opener(() => community(part.id), foreign(part.report ?? part.title)),
        element("span", { class: "note", text: part.size.toLocaleString("en") })))) : null,
    section(`Entities (${facts.size.toLocaleString("en")})`, ...growing(facts.members, (member) =>
      element("li", {}, entityLink(member.id, member.title),
        element("span", { class: "note", text: typeName(member.type) })))),
  ];
}

function explorerLink(kind, number) {
  const query = where.collection ? `?collection=${encodeURIComponent(where.collection)}` : "";
  return element("a", { href: `/explorer${query}#${kind}=${number}`, text: "Open in the explorer" });
}

function section(title, ...children) {
  return element("section", {}, element("h3", { text: title }), ...children);
}
