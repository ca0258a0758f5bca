import { element, say } from "./dom.js";
import { citationAddress } from "./places.js";

const SIGNS = /[\\`*_{}[\]<>#|!~]/g;

/** A button that copies what is made when it is pressed, and says whether it has. */
export function copyButton(make) {
  const button = element("button", { type: "button", class: "plain", text: "Copy",
    title: "Copy the answer with its sources, as Markdown" });
  button.addEventListener("click", async () => {
    const isCopied = await copied(make());
    button.textContent = isCopied ? "Copied" : "Cannot copy here";
    say(button.textContent);
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return button;
}

/** Where a page is served without TLS, from another machine, browsers have only the old way. */
export async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const box = element("textarea", { class: "unseen" });
  box.value = text;
  document.body.append(box);
  box.select();
  const isCopied = document.execCommand("copy");
  box.remove();
  return isCopied;
}

/** An answer and its sources as Markdown. Words of documents stay words: they hold no link, no picture. */
export function markdown(question, text, citations, release) {
  const sources = citations.map((each) => {
    const link = new URL(citationAddress(each, release), location.href).href;
    const quote = plain(each.text.replace(/\s+/g, " ").trim());
    return `${each.number}. [${plain(each.document_title || "A report")}](${link}): ${quote}`;
  });
  return [`## ${plain(question)}`, text, ...(sources.length ? ["### Sources", sources.join("\n")] : [])].join("\n\n") + "\n";
}

/** Text in which no sign means anything to Markdown. */
export const plain = (text) => text.replace(SIGNS, "\\$&");
