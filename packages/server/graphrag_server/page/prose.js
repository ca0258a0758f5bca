import { element } from "./dom.js";

const BLOCKS = { heading: /^(#{1,6})\s+(.*)$/, item: /^\s*(?:[-*•]|\d{1,3}[.)])\s+(.*)$/,
  numbered: /^\s*\d{1,3}[.)]\s/, quote: /^>\s?(.*)$/, fence: /^\s*(```|~~~)/,
  row: /^\s*\|(.+)\|\s*$/, ruler: /^[\s|:-]+$/ };
const INLINE = /(`[^`\n]+`)|(\*\*|__)(?=\S)([^\n]{0,2000}?\S)\2|(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])/;
const REFERENCES = /[ \t]?\[Data: ([^\[\]]*)\]/g;
const NUMBERS = /[ \t]?\[(\d{1,4}(?:, ?\d{1,4})*)\]/g;
const LOOKS_CUT = /[ \t]?\[(?:D(?:ata[^\]]{0,300})?|\d[\d, ]*)?$/;

/**
 * Write an answer into an element: paragraphs, lists, headings, tables, emphasis and code, and
 * references as what `cite(numbers)` makes of them. There are no links and no pictures: what a
 * model or a document says is never fetched.
 *
 * A model refers to records, `[Data: Sources (3)]`, which `numbersOf` resolves to citations;
 * evidence that was picked from documents has `[1]`, and no markup of its own.
 */
export function writeAnswer(place, text, { generated, numbersOf, cite, whole = true }) {
  const writer = new Writer(generated, numbersOf, cite);
  const cut = whole ? text : text.replace(LOOKS_CUT, "");
  place.replaceChildren(...writer.blocks(cut.split("\n")));
}

/** Return an answer's Markdown, its references as plain numbers; `plain` is for what no model wrote. */
export function withReferences(text, generated, numbersOf, plain) {
  const numbers = (those) => those.map((n) => ` [${n}]`).join("");
  if (generated) return text.replace(REFERENCES, (_, names) => numbers(numbersOf(names)));
  const parts = text.split(NUMBERS);
  return parts.map((part, n) => (n % 2 ? numbers(part.split(/, ?/)) : plain(part))).join("");
}

class Writer {
  constructor(generated, numbersOf, cite) {
    Object.assign(this, { generated, numbersOf, cite });
  }

  blocks(lines) {
    const made = [];
    for (let i = 0; i < lines.length; ) {
      const [block, next] = this.block(lines, i);
      if (block) made.push(block);
      i = next;
    }
    return made;
  }

  block(lines, i) {
    const line = lines[i];
    const { heading, item, quote, fence, row } = BLOCKS;
    if (!line.trim()) return [null, i + 1];
    if (item.test(line)) return this.list(lines, i);
    if (this.generated && fence.test(line)) return this.code(lines, i);
    if (this.generated && heading.test(line)) {
      const [, marks, title] = line.match(heading);
      return [element(marks.length < 3 ? "h3" : "h4", {}, this.inline(title)), i + 1];
    }
    if (this.generated && quote.test(line)) {
      const end = until(lines, i, (l) => quote.test(l));
      const inner = lines.slice(i, end).map((l) => l.match(quote)[1]);
      return [element("blockquote", {}, this.blocks(inner)), end];
    }
    if (this.generated && row.test(line)) return this.table(lines, i);
    const starts = (l) => item.test(l)
      || (this.generated && [heading, fence, row].some((pattern) => pattern.test(l)));
    const end = until(lines, i + 1, (l) => l.trim() && !starts(l));
    return [element("p", { dir: "auto" }, this.inline(lines.slice(i, end).join("\n"))), end];
  }

  /** A list, and in its items those that stand further to the right, or begin within the item's line. */
  list(lines, i) {
    const { item, numbered, heading } = BLOCKS;
    const [ordered, indent] = [numbered.test(lines[i]), indentOf(lines[i])];
    const isInner = (l) => !item.test(l) || indentOf(l) > indent + 1;
    const items = [];
    let at = i;
    while (at < lines.length && !isInner(lines[at]) && numbered.test(lines[at]) === ordered) {
      const first = at;
      at = until(lines, at + 1, (l) => l.trim() && isInner(l) && !heading.test(l));
      const own = [lines[first].match(item)[1], ...lines.slice(first + 1, at)];
      const inner = until(own, 0, (l) => !item.test(l));
      const text = own.slice(0, inner).join("\n");
      const below = own.slice(inner).map((l, n) => (n + inner ? l : " ".repeat(indent + 2) + l));
      items.push(element("li", { dir: "auto" }, this.inline(text), this.blocks(below)));
      const after = until(lines, at, (l) => !l.trim());
      if (after < lines.length && item.test(lines[after])) at = after;
    }
    const start = ordered ? parseInt(lines[i], 10) : undefined;
    return [element(ordered ? "ol" : "ul", { start }, items), at];
  }

  code(lines, i) {
    const end = until(lines, i + 1, (l) => !BLOCKS.fence.test(l));
    const text = lines.slice(i + 1, end).join("\n");
    return [element("pre", {}, element("code", { text })), end + 1];
  }

  table(lines, i) {
    const { row, ruler } = BLOCKS;
    const end = until(lines, i, (l) => row.test(l));
    const rows = lines.slice(i, end).filter((l) => !ruler.test(l))
      .map((l) => l.match(row)[1].split("|").map((cell) => cell.trim()));
    const made = rows.map((cells, n) => element("tr", {}, cells.map((cell) =>
      element(n ? "td" : "th", n ? {} : { scope: "col" }, this.inline(cell)))));
    return [element("div", { class: "table" }, element("table", {}, made)), end];
  }

  /** Text with its references, and with emphasis where a model wrote it. */
  inline(text) {
    const made = [];
    const pattern = this.generated ? REFERENCES : NUMBERS;
    let last = 0;
    for (const match of text.matchAll(pattern)) {
      const cited = this.generated ? this.numbersOf(match[1]) : match[1].split(",").map(Number);
      made.push(...this.emphasised(text.slice(last, match.index)), this.cite(cited, match[1]));
      last = match.index + match[0].length;
    }
    return [...made, ...this.emphasised(text.slice(last))];
  }

  emphasised(text) {
    if (!this.generated) return text ? [text] : [];
    const made = [];
    let rest = text;
    for (let match; (match = rest.match(INLINE)); rest = rest.slice(match.index + match[0].length)) {
      if (match.index) made.push(rest.slice(0, match.index));
      if (match[1]) made.push(element("code", { text: match[1].slice(1, -1) }));
      else if (match[2]) made.push(element("strong", {}, this.emphasised(match[3])));
      else made.push(element("em", {}, this.emphasised(match[4])));
    }
    if (rest) made.push(rest);
    return made;
  }
}

const indentOf = (line) => line.search(/\S/);

function until(lines, i, holds) {
  while (i < lines.length && holds(lines[i])) i++;
  return i;
}

/** Return, for `Sources (3, 5); Reports (1)`, each reference as citations name it. */
export function referencesIn(text) {
  return text.split(";").flatMap((part) => {
    const [, kind, numbers] = part.match(/^\s*(\w+)\s*\(([^)]*)\)/) ?? [];
    if (!kind) return [];
    return numbers.split(",").map((n) => n.trim()).filter((n) => /^\d+$/.test(n))
      .map((n) => `${kind} (${n})`);
  });
}
