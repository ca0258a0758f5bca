import { element, say } from "./dom.js";
import { citationAddress, onPage } from "./places.js";

const SIGNS = /[\\`*_{}[\]<>#|!~]/g;

/** A button that copies what is made when it is pressed, and says whether it has. */
export function copyButton(make, { text = "Copy", title = "Copy the answer with its sources, as Markdown and as formatted text", html: formatted } = {}) {
  const button = element("button", { type: "button", class: "plain", text, title });
  button.addEventListener("click", async () => {
    const isCopied = await copied(make(), formatted?.());
    button.textContent = isCopied ? "Copied" : "Cannot copy here";
    say(button.textContent);
    setTimeout(() => { button.textContent = text; }, 2000);
  });
  return button;
}

/** Where a page is served without TLS, from another machine, browsers have only the old way. */
export async function copied(text, formatted) {
  if (navigator.clipboard && formatted) {
    const kinds = { "text/plain": text, "text/html": formatted };
    const blobs = Object.entries(kinds).map(([type, data]) => [type, new Blob([data], { type })]);
    return navigator.clipboard.write([new ClipboardItem(Object.fromEntries(blobs))]).then(() => true, () => false);
  }
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const box = element("textarea", { class: "unseen" });
  box.value = text;
  document.body.append(box);
  box.select();
  const isCopied = document.execCommand("copy");
  box.remove();
  return isCopied;
}

/** An answer and its sources as HTML. It is made of elements, so words of documents stay words. */
export function html(question, prose, citations, release) {
  const words = prose.cloneNode(true);
  for (const link of words.querySelectorAll("a")) link.replaceWith(element("sup", {}, ` [${link.textContent}]`));
  const sources = element("ol", {}, citations.map((each) => element("li", { value: each.number },
    element("a", { href: new URL(citationAddress(each, release), location.href).href, text: each.document_title || "A report" }),
    `${onPage(each)}: ${each.text.replace(/\s+/g, " ").trim()}`)));
  const parts = [element("h2", { text: question }), words];
  if (citations.length) parts.push(element("h3", { text: "Sources" }), sources);
  return parts.map((part) => part.outerHTML).join("\n");
}

/** The sources of an answer for a bibliography: each document once, with the places that are cited. */
export function bibtex(citations, release) {
  const documents = new Map();
  for (const each of citations) {
    const id = each.document_id || each.report_id;
    documents.set(id, [...(documents.get(id) ?? []), each]);
  }
  return [...documents].map(([id, places]) => {
    const [first] = places;
    const at = places.filter((each) => each.document_id).map((each) => `${each.start_char}--${each.end_char}`);
    const pages = [...new Set(places.map((each) => each.page).filter(Boolean))];
    const fields = { title: inBraces(first.document_title || "A report"), howpublished: inBraces(first.uri ?? ""),
      url: new URL(citationAddress(first, release), location.href).href.replace(/[{}\\]/g, ""),
      pages: pages.join(", "),
      note: inBraces([`release ${release}`, at.length && `characters ${at.join(", ")}`].filter(Boolean).join(", ")) };
    const lines = Object.entries(fields).filter(([, value]) => value).map(([name, value]) => `  ${name} = {${value}},`);
    return `@misc{${id.replace(/[^A-Za-z0-9]/g, "").slice(0, 16)},\n${lines.join("\n")}\n}\n`;
  }).join("\n");
}

const inBraces = (text) => text.replace(/\s+/g, " ").replace(/[\\{}]/g, "").replace(/[#$%&_~^]/g, "\\$&").trim();

/** An answer and its sources as Markdown. Words of documents stay words: they hold no link, no picture. */
export function markdown(question, text, citations, release) {
  const sources = citations.map((each) => {
    const link = new URL(citationAddress(each, release), location.href).href;
    const quote = plain(each.text.replace(/\s+/g, " ").trim());
    return `${each.number}. [${plain(each.document_title || "A report")}](${link})${onPage(each)}: ${quote}`;
  });
  return [`## ${plain(question)}`, text, ...(sources.length ? ["### Sources", sources.join("\n")] : [])].join("\n\n") + "\n";
}

/** Text in which no sign means anything to Markdown. */
export const plain = (text) => text.replace(SIGNS, "\\$&");
