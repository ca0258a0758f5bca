import { get, key, where } from "./api.js";
import { Comparison } from "./compare.js";
import { Conversation } from "./ask.js";
import { Documents } from "./documents.js";
import { by, count, element } from "./dom.js";
import { Methods } from "./methods.js";
import { panel } from "./panel.js";

const VIEWS = ["ask", "compare", "documents"];
const CHOSEN = "graphrag.collection";

/** Ties the parts together: the address after # says which view is shown. */
class Page {
  constructor() {
    this.methods = new Methods();
    this.conversation = new Conversation(this.methods);
    this.comparison = new Comparison();
    this.documents = new Documents();
    this.collections = [];
    addEventListener("hashchange", () => this.route());
    addEventListener("key-wanted", (event) => this.askKey(event.detail));
    by("key").addEventListener("click", () => this.askKey());
    by("key-form").addEventListener("submit", () => this.useKey(by("key-value").value.trim()));
    by("key-forget").addEventListener("click", () => { by("key-dialog").close(); this.useKey(""); });
    by("key-cancel").addEventListener("click", () => by("key-dialog").close());
    by("collection").addEventListener("change", () => { where.ready = this.choose(by("collection").value); });
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      (this.view === "compare" ? by("compare-question") : this.view === "documents" ? by("find") : by("question")).focus();
    });
  }

  /** Load what the key opens. What is asked meanwhile waits for it. */
  begin() { where.ready = this.load(); }

  async load() {
    this.route();
    where.collection = null;
    try {
      ({ collections: this.collections, scopes: where.scopes } = await get("/v1/collections"));
    } catch (error) {
      by("facts").textContent = error.message;
      return;
    }
    if (!this.collections.length) {
      by("facts").textContent = "This key opens no collection.";
      return;
    }
    const names = this.collections.map(({ name }) => name);
    by("collection").replaceChildren(...names.map((name) => element("option", { value: name, text: name })));
    by("collection-label").hidden = names.length < 2;
    const chosen = new URLSearchParams(location.search).get("collection") ?? sessionStorage.getItem(CHOSEN);
    await this.choose(names.includes(chosen) ? chosen : names[0]);
  }

  async choose(name) {
    where.collection = name;
    by("collection").value = name;
    sessionStorage.setItem(CHOSEN, name);
    panel.close();
    const { counts, created_at: created, problem, uploads } = this.collections.find((each) => each.name === name);
    by("facts").textContent = problem ?? `${count(counts.documents, "document")}, `
      + `${count(counts.entities, "entity", "entities")} and ${count(counts.relationships, "relationship")}, `
      + `published ${day(created)}.`;
    try {
      const methods = await get("/v1/methods");
      this.methods.take(methods);
      this.comparison.take(methods);
    } catch (error) {
      by("facts").textContent = error.message;
    }
    this.conversation.restore();
    this.documents.forget(where.scopes.includes("write") ? uploads : null);
    this.route();
  }

  route() {
    const asked = location.hash.slice(1);
    const before = this.view;
    this.view = VIEWS.includes(asked) ? asked : "ask";
    if (before && before !== this.view) panel.close();
    for (const name of VIEWS) {
      by(name).hidden = name !== this.view;
      if (name === this.view) by(`to-${name}`).setAttribute("aria-current", "page");
      else by(`to-${name}`).removeAttribute("aria-current");
    }
    if (this.view === "documents" && where.collection) this.documents.show();
  }

  askKey(message) {
    if (message) by("key-message").textContent = message;
    by("key-value").value = key.get();
    by("key-forget").hidden = !key.get();
    if (!by("key-dialog").open) by("key-dialog").showModal();
  }

  useKey(value) {
    key.set(value);
    this.begin();
  }
}

const day = (time) => new Date(time.slice(0, 10)).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });

new Page().begin();
