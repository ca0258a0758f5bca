import { get, where } from "./api.js";
import { by, count, element, foreign, say, shortUri, typeName } from "./dom.js";
import { Uploads } from "./uploads.js";
import { entityLink, link } from "./views.js";

const AT_ONCE = 50;

/** What is indexed: its documents, and its entities by name. */
export class Documents {
  constructor() {
    this.uploads = new Uploads(() => { this.isShown = false; this.show(); });
    this.isShown = false;
    by("find-form").addEventListener("submit", (event) => { event.preventDefault(); this.find(); });
    by("listed-more").addEventListener("click", () => this.more());
  }

  /** Begin again, when another collection is chosen. */
  forget(limits) {
    this.isShown = false;
    this.uploads.take(limits);
    by("listed").replaceChildren();
    by("entities").replaceChildren();
  }

  async show() {
    this.uploads.watch();
    if (this.isShown) return;
    this.isShown = true;
    this.next = -1;
    by("listed").replaceChildren();
    await this.more();
  }

  async more() {
    const before = by("listed").children.length;
    try {
      const { documents, total, next, release } = await get("/v1/documents", { after: this.next, most: AT_ONCE });
      by("listed").append(...documents.map((document) => row(document, release)));
      this.next = next;
      by("listed-more").hidden = next === null;
      by("listed-facts").textContent = count(total, "document");
      if (before) by("listed").children[before]?.querySelector("a").focus();
    } catch (error) {
      this.isShown = false;
      by("listed-facts").textContent = error.message;
    }
  }

  async find() {
    await where.ready;
    const q = by("find").value.trim();
    if (!q) return by("entities").replaceChildren();
    try {
      const { entities, release } = await get("/v1/entities", { q });
      const rows = entities.map(({ id, title, type, degree }) => element("li", {}, entityLink(id, title, release),
        element("span", { class: "note", text: `${typeName(type)} · ${count(degree, "relationship")}` })));
      const none = element("p", { class: "quiet", text: "No entity has this in its name." });
      by("entities").replaceChildren(rows.length ? element("ul", { class: "rows" }, rows) : none);
      say(`${count(rows.length, "entity", "entities")} found`);
    } catch (error) {
      by("entities").replaceChildren(element("p", { class: "bad", text: error.message }));
    }
  }
}

function row({ id, title, uri }, release) {
  return element("li", {}, link("documents", id, { release }, foreign(title || shortUri(uri))),
    element("bdi", { class: "note", dir: "auto", title: uri, text: shortUri(uri) }));
}
