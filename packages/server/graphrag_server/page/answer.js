import { count, dollars, element, foreign, growing, seconds, shortUri, typeName } from "./dom.js";
import { bibtex, copyButton, html, markdown, plain } from "./copying.js";
import { referencesIn, withReferences, writeAnswer } from "./prose.js";
import { answered } from "./picture.js";
import { addressOf, citationAddress, onPage, visit } from "./places.js";
import { entityLink, link, relationshipButton } from "./views.js";

const SHOWN_SOURCES = 5;

/** The citations of an answer of a release, by number and by the references that a model makes to them. */
export class Citations {
  constructor(citations = [], release = undefined) {
    this.all = citations;
    this.release = release;
    this.byNumber = new Map(citations.map((each) => [each.number, each]));
    this.byReference = new Map();
    for (const { number, references } of citations) {
      for (const name of references ?? []) {
        this.byReference.set(name, [...(this.byReference.get(name) ?? []), number]);
      }
    }
  }

  numbersOf(references) {
    return [...new Set(referencesIn(references).flatMap((name) => this.byReference.get(name) ?? []))];
  }

  /** Links to the places; before the places are known, only their number. */
  cite(numbers) {
    return element("span", { class: "cites" }, numbers.map((n) => {
      const citation = this.byNumber.get(n);
      if (!citation) return element("span", { class: "cite pending", text: n });
      const title = citation.document_title || "a report";
      return element("a", { href: citationAddress(citation, this.release), class: "cite", text: n, title,
        "aria-label": `Source ${n}: ${title}` });
    }));
  }

  write(place, text, { generated, whole = true }) {
    place.classList.toggle("picked", !generated);
    writeAnswer(place, text, { generated, whole, numbersOf: (names) => this.numbersOf(names),
      cite: (numbers) => this.cite(numbers) });
  }

  /** The answer as Markdown. A model's own markup stays, but for what would be fetched or followed. */
  markdown(question, { text, generated }) {
    const words = generated ? text.replace(/<|!(?=\[)|\](?=\()/g, "\\$&") : text;
    const body = withReferences(words, generated, (names) => this.numbersOf(names), plain);
    return markdown(question, body, this.once(), this.release);
  }

  /** The same as it stands on the page, for programs that take over more than text. */
  html(question, prose) { return html(question, prose, this.once(), this.release); }

  once() { return [...this.byNumber.values()].sort((a, b) => a.number - b.number); }

  sources(title) {
    if (!this.all.length) return null;
    return element("section", { class: "sources" }, element("div", { class: "line" }, element("h3", { text: title || "Sources" }),
      copyButton(() => bibtex(this.once(), this.release), { text: "BibTeX", title: "Copy the sources as BibTeX" })),
      ...growing(this.once(), (each) => sourceCard(each, this.release), { first: SHOWN_SOURCES, name: "cards" }));
  }
}

function sourceCard(citation, release) {
  const card = element("a", { class: "card", href: citationAddress(citation, release) },
    element("span", { class: "line" }, element("span", { class: "cite", text: citation.number }),
      foreign(citation.document_title || shortUri(citation.uri || "A report"), { class: "name" })),
    foreign(citation.text, { class: "quote" }),
    citation.uri ? element("span", { class: "note" }, foreign(shortUri(citation.uri), { title: citation.uri }), onPage(citation)) : null);
  return element("li", {}, card);
}

const KINDS = [["entity", "entities", "entity"], ["relationship", "relationships", "relationship"], ["report", "reports", "report", "finding"],
  ["other record", "other records", "claim", "summary"], ["passage", "passages", "chunk"]];

/** A finding is its report's, or what some text says of an entity. */
const kindOf = ({ kind, attributes }) => (kind === "finding" && !attributes.report_id ? "claim" : kind);

const byKind = (records) => KINDS.map(([one, many, ...kinds]) => {
  const those = records.filter((record) => kinds.includes(kindOf(record)));
  return { one, many, rows: one === "report" ? unique(those) : those };
});

/** How many records there are of each kind. */
export const counted = (records) => byKind(records).filter(({ rows }) => rows.length)
  .map(({ one, many, rows }) => count(rows.length, one, many)).join(", ");

/** What an answer rests on, by kind: entities, relationships, reports and passages. */
export function evidence({ records, release }) {
  const summary = counted(records);
  if (!summary) return null;
  const [entities, ties, reports, others, passages] = byKind(records).map(({ rows }) => rows);
  const details = element("details", { class: "evidence" },
    element("summary", { text: `Behind this: ${summary}` }));
  const part = (title, rows, make, name) => rows.length && details.append(
    element("h4", { text: title }), ...growing(rows, make, { first: 12, name }));
  const nodes = new Map(entities.map(({ id, title }) => [id, title]));
  for (const { title, attributes: { source_id: source, target_id: target } } of ties) {
    const names = title.split(" – ");
    if (names.length === 2) [source, target].forEach((id, n) => nodes.has(id) || nodes.set(id, names[n]));
  }
  const drawn = answered([...nodes].map(([id, title]) => ({ id, title })), ties.map(({ attributes }) => ({ weight: 1, ...attributes })),
    (id) => visit(addressOf("entities", id, { release })));
  if (drawn) details.append(drawn);
  part("Entities", entities, (record) => element("li", { class: "chip" }, entityLink(record.id, record.title, release),
    element("span", { class: "note", text: typeName(record.attributes?.type) })), "chips");
  part("Relationships", ties, (record) => element("li", {}, relationshipButton(record, release)), "rows");
  part("Reports", reports, ({ kind, id, title, attributes }) => element("li", {},
    link("reports", kind === "report" ? id : attributes.report_id, { release }, foreign(title))), "rows");
  part("Other records", others, (record) => element("li", {}, foreign(record.title),
    element("p", { class: "quiet clamped", dir: "auto", text: record.text })), "rows");
  part("Passages", passages, ({ title, text, attributes }) => element("li", {},
    element("a", { href: citationAddress(attributes, release) }, foreign(title)),
    element("p", { class: "quiet clamped", dir: "auto", text })), "rows");
  return details;
}

function unique(records) {
  const byTitle = new Map();
  for (const record of records) if (!byTitle.has(record.title)) byTitle.set(record.title, record);
  return [...byTitle.values()];
}

/** What is amiss with the references of an answer, and the sentences whose records share no word with them. */
export function doubtsOf({ doubts = [], unsupported = [] }) {
  if (!doubts.length) return null;
  const lines = doubts.map((line) => element("p", { class: "notice", text: line }));
  if (unsupported.length) {
    lines.push(element("details", {}, element("summary", { text: "Which sentences" }), element("ul", {},
      unsupported.map(({ reference, sentence }) => element("li", { dir: "auto", text: `${sentence} [${reference}]` })))));
  }
  return element("div", { class: "doubts" }, lines);
}

export function stepsOf(steps) {
  return element("ol", { class: "steps" }, steps.map((text) => element("li", { dir: "auto", text })));
}

/** What an answer took: calls, tokens, money and time. */
export function took(answer) {
  const tokens = answer.prompt_tokens + answer.completion_tokens;
  return [
    answer.model_calls ? count(answer.model_calls, "model call") : "no model call",
    answer.cached_calls ? `${answer.cached_calls.toLocaleString("en")} from the cache` : null,
    tokens ? count(tokens, "token") : null,
    answer.model_calls ? dollars(answer.cost) : null,
    seconds(answer.timings.total ?? 0),
  ].filter(Boolean).join(" · ");
}
