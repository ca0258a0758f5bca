import { get, where } from "./api.js";
import { corrections } from "./corrections.js";
import { count, element, foreign, growing, shortUri, typeName } from "./dom.js";
import { panel, titled } from "./panel.js";
import { picture } from "./picture.js";
import { addressOf, visit } from "./places.js";

const AROUND = 3000;
const MOST_NEAR = 60;
const SHOWN = { documents: documentText, entities: entity, communities: community, reports: report, relationship,
  answers: (place) => import("./earlier.js").then(({ answerView }) => answerView(place)) };

/** Return the elements that show a place: a document, entity, community, report or relationship. */
export async function shown(place) {
  try {
    return await SHOWN[place.kind](place);
  } catch (error) {
    const isElsewhere = place.release && where.scopes.includes("read") && [403, 404].includes(error.status);
    if (!isElsewhere) throw error;
    const now = addressOf(place.kind, place.id, { collection: place.collection });
    return [...titled("This cannot be shown"), element("p", { class: "bad", text: error.message }),
      element("p", {}, element("a", { href: now, text: "Look for it in what is published now" }))];
  }
}

/** A link to a document, entity, community or report of a release. */
export const link = (kind, id, { release, start, end }, ...children) =>
  element("a", { href: addressOf(kind, id, { release, start, end }) }, ...children);

export const entityLink = (id, title, release) => link("entities", id, { release }, foreign(title));

async function documentText({ id, release, start, end }) {
  const path = `/v1/documents/${encodeURIComponent(id)}`;
  const isPassage = start !== undefined && end !== undefined;
  const [first, last] = isPassage ? [Math.max(0, start - AROUND), end + AROUND] : [0, 2 * AROUND];
  const [text, facts] = await Promise.all([get(`${path}/text`, { start: first, end: last, release }),
    isPassage ? {} : get(path, { release })]);
  const metadata = Object.entries(facts.metadata ?? {});
  return [
    ...titled(text.title || shortUri(text.uri), isPassage ? "Passage" : "Document"),
    origin(text.uri, isPassage ? `characters ${start.toLocaleString("en")} to ${end.toLocaleString("en")}`
      : `${count(facts.n_chars, "character")}, ${count(facts.n_chunks, "passage")}`),
    isPassage ? element("p", { class: "links" }, link("documents", id, { release: text.release }, "Whole document")) : null,
    originalOf(id, { release: text.release, start }),
    earlier(text.release),
    text.uri.includes("#") ? rowsOf(id, text.release) : null,
    metadata.length ? element("dl", { class: "metadata" }, metadata.flatMap(([name, value]) => [
      element("dt", { text: name }),
      element("dd", {}, foreign(typeof value === "string" ? value : JSON.stringify(value)))])) : null,
    ...new Text(text, isPassage ? start : 0, isPassage ? end : 0).elements(),
  ];
}

/** The file that a document was read from, told when it is known where it is. */
function originalOf(id, place) {
  const line = element("p", { class: "links" });
  import("./originals.js").then(({ fillOriginal }) => fillOriginal(line, id, place));
  return line;
}

/** The table that a record is a row of. */
function rowsOf(id, release) {
  const table = element("div");
  import("./originals.js").then(({ fillRows }) => fillRows(table, id, release));
  return table;
}

/** Say that what is shown is of a release that another has taken the place of. */
const earlier = (release) => (release === where.release ? null : element("p", { class: "notice",
  text: "This is from an earlier release. What is published now may differ." }));

const origin = (uri, facts) => element("p", { class: "origin" },
  element("bdi", { dir: "auto", title: uri, text: shortUri(uri) }), ` · ${facts}`);

/** A window on a document's text. Positions count characters, some of which are two of a string's. */
class Text {
  constructor({ id, text, start_char: start, end_char: end, n_chars: length, release }, first, last) {
    Object.assign(this, { id, start, end, length, release });
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

  part(start, end) {
    return get(`/v1/documents/${encodeURIComponent(this.id)}/text`, { start, end, release: this.release });
  }

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

async function entity({ id, release: asked, hops = 1 }) {
  const path = `/v1/entities/${encodeURIComponent(id)}`;
  const [facts, near] = await Promise.all([get(path, { release: asked }),
    get(`${path}/neighbourhood`, { hops, most: MOST_NEAR, release: asked })]);
  const { release } = facts;
  const titles = new Map(near.entities.map((each) => [each.id, each.title]));
  const ties = near.relationships.filter((tie) => tie.source_id === id || tie.target_id === id);
  const far = near.entities.filter((each) => each.hop > 1);
  return [
    ...titled(facts.title, typeName(facts.type)),
    facts.aliases.length ? element("p", { class: "quiet" }, "Also ",
      facts.aliases.flatMap((alias, n) => [n ? ", " : "", foreign(alias)])) : null,
    earlier(release),
    element("p", { class: "description", dir: "auto", text: facts.description }),
    element("p", { class: "links" }, explorerLink("entity", facts.human_readable_id)),
    section(`Neighbourhood (${ties.length.toLocaleString("en")})`,
      ties.length ? picture(near, id, (other) => visit(addressOf("entities", other, { release }))) : null,
      ...growing(ties, (tie) => relationshipRow(tie, id, titles, release)),
      hops === 1 && ties.length
        ? element("button", { type: "button", class: "plain more", text: "Show two steps away",
          onclick: () => panel.show(() => entity({ id, release, hops: 2 })) }) : null),
    far.length ? section("Two steps away", ...growing(far, (each) =>
      element("li", {}, entityLink(each.id, each.title, release),
        element("span", { class: "note", text: typeName(each.type) })))) : null,
    facts.communities.length ? section("Communities", element("ul", { class: "rows" },
      facts.communities.map((each) => element("li", {},
        link("communities", each.id, { release }, foreign(each.report ?? each.title)),
        element("span", { class: "note", text: each.level ? `level ${each.level}` : "root" }))))) : null,
    release === where.release ? corrections(facts) : null,
    facts.places.length ? section("Where documents mention it", ...growing(facts.places, (place) =>
      element("li", {}, link("documents", place.document_id,
        { release, start: place.start_char, end: place.end_char }, foreign(place.document_title || shortUri(place.uri))),
        element("span", { class: "note", text: `character ${place.start_char.toLocaleString("en")}` })))) : null,
  ];
}

function relationshipRow(tie, id, titles, release) {
  const other = tie.source_id === id ? tie.target_id : tie.source_id;
  return element("li", { class: "tie" }, element("div", { class: "line" },
    entityLink(other, titles.get(other) ?? tie.target, release),
    tie.type ? element("span", { class: "chip", text: tie.type }) : null,
    element("span", { class: "note", text: `weight ${+tie.weight.toFixed(2)}` })),
  tie.description ? element("p", { class: "quiet clamped", dir: "auto", text: tie.description }) : null);
}

/** A button that opens a relationship among the evidence, which has no address of its own. */
export const relationshipButton = ({ title, text, attributes }, release) => element("button",
  { type: "button", class: "link", onclick: () => visit(location.href,
    { kind: "relationship", title, text, attributes, release, collection: where.collection }) }, foreign(title));

/** What is told of a relationship, and the way to both its ends. */
function relationship({ title, text, attributes, release }) {
  const { source_id: source, target_id: target, weight } = attributes;
  return [
    ...titled(title, "Relationship"),
    element("p", { class: "description", dir: "auto", text }),
    weight === undefined ? null : element("p", { class: "quiet", text: `Weight ${+Number(weight).toFixed(2)}` }),
    source && target ? section("Between", element("ul", { class: "rows" },
      [source, target].map((id) => element("li", {}, namedLater(id, release))))) : null,
  ];
}

/** A link to an entity whose name has to be asked for. */
function namedLater(id, release) {
  const name = element("bdi", { dir: "auto", text: "…" });
  get(`/v1/entities/${encodeURIComponent(id)}`, { release })
    .then((facts) => { name.textContent = facts.title; }, () => { name.textContent = "no longer there"; });
  return link("entities", id, { release }, name);
}

async function report({ id, release: asked }) {
  const facts = await get(`/v1/reports/${encodeURIComponent(id)}`, { release: asked });
  const { release } = facts;
  const writer = { extractive: "sentences picked from the text", import: "imported" }[facts.writer]
    ?? `written by ${facts.writer}`;
  const covered = facts.coverage === null ? "" : `, on ${Math.round(facts.coverage * 100)} % of its relationships`;
  const findings = facts.findings ?? [];
  return [
    ...titled(facts.title, "Report"),
    element("p", { class: "quiet", title: facts.rating_explanation ?? "",
      text: `Rated ${Number(facts.rating).toFixed(1)} of 10. ${writer[0].toUpperCase()}${writer.slice(1)}${covered}.` }),
    earlier(release),
    facts.outdated ? element("p", { class: "notice", text: "Documents have changed since it was written." }) : null,
    element("p", { class: "description", dir: "auto", text: facts.summary }),
    element("p", { class: "links" }, link("communities", facts.community_id, { release }, "Its community")),
    findings.length ? section("Findings", element("ol", { class: "findings" }, findings.map((each) =>
      element("li", { dir: "auto" }, element("strong", { text: each.summary }),
        element("p", { text: each.explanation }))))) : null,
  ];
}

async function community({ id, release: asked }) {
  const facts = await get(`/v1/communities/${encodeURIComponent(id)}`, { release: asked });
  const { release } = facts;
  const place = facts.level === 0 ? "Root community" : `Community of level ${facts.level}`;
  return [
    ...titled(facts.report ?? facts.title, place),
    element("p", { class: "quiet", text: `${count(facts.size, "entity", "entities")}, `
      + count(facts.n_relationships, "relationship") }),
    earlier(release),
    facts.summary ? element("p", { class: "description", dir: "auto", text: facts.summary }) : null,
    element("p", { class: "links" }, facts.report_id ? link("reports", facts.report_id, { release }, "Its report") : null,
      facts.parent_id ? link("communities", facts.parent_id, { release }, "The community above") : null,
      explorerLink("community", facts.human_readable_id)),
    facts.parts.length ? section(`Communities inside (${facts.parts.length})`, ...growing(facts.parts,
      (part) => element("li", {}, link("communities", part.id, { release }, foreign(part.report ?? part.title)),
        element("span", { class: "note", text: part.size.toLocaleString("en") })))) : null,
    section(`Entities (${facts.size.toLocaleString("en")})`, ...growing(facts.members, (member) =>
      element("li", {}, entityLink(member.id, member.title, release),
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
