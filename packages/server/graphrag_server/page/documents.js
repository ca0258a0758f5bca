import { get, where } from "./api.js";
import { by, count, element, foreign, growing, say, shortUri, typeName } from "./dom.js";
import { Uploads } from "./uploads.js";
import { filter, here, readdress, viewAddress } from "./places.js";
import { entityLink, link } from "./views.js";

const AT_ONCE = 50;

/** What is indexed: its documents, and its entities by name. */
export class Documents {
  constructor() {
    this.uploads = new Uploads(() => { this.isShown = false; this.show(); });
    this.isShown = false;
    this.q = "";
    this.turn = 0;
    by("find-form").addEventListener("submit", (event) => { event.preventDefault(); this.search(); });
    by("find").addEventListener("search", () => { if (!by("find").value && this.q) this.search(); });
    by("listed-more").addEventListener("click", () => this.more());
  }

  /** Begin again, when another collection is chosen. */
  forget(limits) {
    this.isShown = false;
    this.uploads.take(limits);
    by("listed").replaceChildren();
    by("entities").replaceChildren();
  }

  /** The address that shows the same documents again. */
  address() { return viewAddress("documents", { q: this.q || undefined }); }

  /** Other documents are asked from now on. */
  narrowed(isSeen) {
    this.isShown = false;
    if (isSeen) this.show({ q: this.q });
  }

  async show({ view, q = "" } = {}) {
    this.uploads.watch();
    if (view && q !== this.q) {
      this.isShown = false;
      by("find").value = q;
    }
    if (this.isShown) return;
    this.isShown = true;
    if (view) this.q = q;
    this.next = -1;
    this.turn++;
    by("documents").classList.toggle("searching", Boolean(this.q || filter.conditions.length));
    await Promise.all([this.more(), this.entities()]);
  }

  /** Look for documents that have the words in title, path or text, and for entities of that name. */
  async search() {
    await where.ready;
    this.q = by("find").value.trim();
    this.isShown = false;
    if (here().view === "documents") readdress(this.address());
    await this.show();
  }

  async more() {
    const { turn } = this;
    const isFirst = this.next === -1;
    if (isFirst) by("listed-facts").textContent = "Looking";
    by("listed-more").disabled = true;
    try {
      const { documents, total, next, release } = await get("/v1/documents",
        { after: this.next, most: AT_ONCE, q: this.q || undefined, where: filter.conditions });
      if (turn !== this.turn) return;
      if (isFirst) by("listed").replaceChildren();
      const rows = documents.map((document) => row(document, release));
      by("listed").append(...rows);
      this.next = next;
      by("listed-more").hidden = next === null;
      const isSome = this.q || filter.conditions.length;
      by("listed-facts").textContent = `${count(total, "document")}${isSome ? " found" : ""}`;
      if (isSome) say(by("listed-facts").textContent);
      if (!isFirst) rows[0]?.querySelector("a").focus();
    } catch (error) {
      if (turn !== this.turn) return;
      this.isShown = false;
      by("listed").replaceChildren();
      by("listed-more").hidden = true;
      by("listed-facts").textContent = error.message;
    } finally {
      by("listed-more").disabled = false;
    }
  }

  async entities() {
    const { q, turn } = this;
    if (!q) return by("entities").replaceChildren();
    try {
      const { entities, release } = await get("/v1/entities", { q });
      if (turn !== this.turn) return;
      const make = ({ id, title, type, degree }) => element("li", {}, entityLink(id, title, release),
        element("span", { class: "note", text: `${typeName(type)} · ${count(degree, "relationship")}` }));
      by("entities").replaceChildren(...(entities.length ? [element("h2", { text: "Entities" }), ...growing(entities, make, { first: 5 })]
        : [element("p", { class: "quiet", text: "No entity has this in its name." })]));
    } catch (error) {
      by("entities").replaceChildren(element("p", { class: "bad", text: error.message }));
    }
  }
}

function row({ id, title, uri, n_chars: size, excerpt, start_char: start, end_char: end }, release) {
  return element("li", {}, link("documents", id, { release, start, end }, foreign(title || shortUri(uri))),
    element("span", { class: "note" }, foreign(shortUri(uri), { title: uri }), ` · ${count(size, "character")}`),
    excerpt ? element("p", { class: "quiet clamped", dir: "auto", text: `… ${excerpt.trim()} …` }) : null);
}
