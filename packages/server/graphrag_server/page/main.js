import { get, key, where } from "./api.js";
import { Conversation } from "./ask.js";
import { by, count, element } from "./dom.js";
import { Methods } from "./methods.js";
import { panel, titled } from "./panel.js";
import { followLinks, here, narrow, readdress, viewAddress, visit } from "./places.js";
import { shown } from "./views.js";

const VIEWS = ["ask", "compare", "documents", "state"];
const PARTS = { compare: () => import("./compare.js").then(({ Comparison }) => new Comparison()),
  documents: () => import("./documents.js").then(({ Documents }) => new Documents()) };
const FORMS = { compare: "compare-form", documents: "find-form" };
const NARROWED = ["ask", "compare", "documents"];
const CHOSEN = "graphrag.collection";

/** Ties the parts together: the address says which view is shown, and what is open in it. */
class Page {
  constructor() {
    this.methods = new Methods();
    this.conversation = new Conversation(this.methods);
    this.parts = {};
    this.loading = {};
    this.known = [];
    for (const [view, form] of Object.entries(FORMS)) {
      by(form).addEventListener("submit", async (event) => {
        event.preventDefault();
        if (this.parts[view]) return;
        await this.part(view);
        by(form).requestSubmit();
      });
    }
    this.view = "ask";
    this.collections = [];
    followLinks();
    addEventListener("popstate", () => this.route());
    addEventListener("visited", () => this.route());
    addEventListener("narrowed", () => this.narrowed());
    for (const button of document.querySelectorAll("button.narrow")) {
      button.addEventListener("click", async () => (await this.narrowing()).toggle(button));
    }
    addEventListener("panel-left", () => visit(this.address()));
    addEventListener("key-wanted", (event) => this.askKey(event.detail));
    by("key").addEventListener("click", () => this.askKey());
    by("key-form").addEventListener("submit", () => this.useKey(by("key-value").value.trim()));
    by("key-forget").addEventListener("click", () => { by("key-dialog").close(); this.useKey(""); });
    by("key-cancel").addEventListener("click", () => by("key-dialog").close());
    by("collection").addEventListener("change", () => { where.ready = this.change(by("collection").value); });
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      (this.view === "compare" ? by("compare-question") : this.view === "documents" ? by("find") : by("question")).focus();
    });
  }

  /** Load what the key opens. What is asked meanwhile waits for it. */
  begin() { where.ready = this.load(); }

  async load() {
    where.collection = null;
    this.route();
    by("facts").textContent = "Looking at what is here";
    try {
      const { collections, scopes, has_key: hasKey } = await get("/v1/collections");
      this.collections = collections;
      where.scopes = scopes;
      by("key").hidden = !hasKey;
      by("to-explorer").hidden = !scopes.includes("read");
      by("to-state").hidden = !["read", "metrics"].every((scope) => scopes.includes(scope));
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
    where.isOneOfSeveral = names.length > 1;
    const chosen = here().collection ?? sessionStorage.getItem(CHOSEN);
    await this.choose(names.includes(chosen) ? chosen : names[0]);
    await this.route();
    if (!this.isStrange(here())) this.conversation.askLinked(here());
  }

  /** Whether an address names a collection that is not open here: no other answers in its place. */
  isStrange({ collection }) { return collection && !this.collections.some(({ name }) => name === collection); }

  /** Go on in another collection, where nothing is open yet. */
  async change(name) {
    await this.choose(name);
    visit(viewAddress(this.view));
  }

  async choose(name) {
    where.collection = name;
    this.isFilled = false;
    by("collection").value = name;
    sessionStorage.setItem(CHOSEN, name);
    const { counts, created_at: created, problem, uploads, release, asks_model: asksModel, keeps } = this.collections.find((each) => each.name === name);
    where.release = release;
    where.asksModel = asksModel;
    where.keeps = keeps;
    this.link();
    by("to-explorer").href = `/explorer?collection=${encodeURIComponent(name)}`;
    by("facts").textContent = problem ?? `${count(counts.documents, "document")}, `
      + `${count(counts.entities, "entity", "entities")} and ${count(counts.relationships, "relationship")}, `
      + `published ${day(created)}.`;
    try {
      const methods = await get("/v1/methods");
      this.methods.take(methods);
      this.known = methods;
    } catch (error) {
      by("facts").textContent = error.message;
    }
    this.uploads = where.scopes.includes("write") ? uploads : null;
    this.isFilled = true;
    Object.keys(this.parts).forEach((view) => this.fill(view));
    this.conversation.restore();
    this.conversation.suggest(problem ? [] : await examples());
  }

  link() { for (const view of VIEWS) by(`to-${view}`).href = viewAddress(view); }

  /** The control that narrows the view that is shown, loaded when it is first needed. */
  async narrowing() {
    const { narrowing } = await import("./narrowing.js");
    narrowing.stand(this.view);
    return narrowing;
  }

  /** Say in the address which documents are asked from now on. */
  narrowed() {
    this.link();
    this.isNarrowed = true;
    this.narrowing();
    if (here().view && where.collection) readdress(this.address());
    this.parts.documents?.narrowed(this.view === "documents");
  }

  /** Load what a view is made of, once. */
  part(view) {
    return this.loading[view] ??= PARTS[view]?.().then((part) => {
      this.parts[view] = part;
      if (this.isFilled) this.fill(view);
      return part;
    });
  }

  fill(view) {
    if (view === "compare") this.parts.compare.take(this.known);
    else this.parts.documents.forget(this.uploads);
  }

  /** Show what the address names, in its collection. */
  async route() {
    const place = here();
    if (place.view && place.view !== "state") narrow(place.conditions);
    this.show(place.kind === "history" ? "ask" : place.view ?? history.state?.view ?? this.view);
    if (!where.collection) return;
    if (this.isStrange(place)) return panel.show(() => strange(place.collection));
    if (place.collection && place.collection !== where.collection) await (where.ready = this.choose(place.collection));
    if (this.view === "documents") (await this.part("documents")).show(place);
    if (this.isNarrowed && NARROWED.includes(this.view)) this.narrowing();
    if (place.view === "compare") (await this.part("compare")).open(place);
    if (place.view === "state") this.tellState();
    if (place.kind === "history") {
      panel.close();
      await this.conversation.open(place.id).catch((error) => panel.show(() => { throw error; }));
    } else if (place.view) {
      panel.close();
      this.conversation.find(place.question);
    } else {
      const isAlone = this.view === "ask" && this.conversation.isEmpty;
      document.body.classList.toggle("reading", isAlone);
      await panel.show(() => shown(place));
    }
  }

  async tellState() {
    const facts = by("state-facts");
    facts.replaceChildren(element("p", { class: "quiet", text: "Looking" }));
    try {
      await (await import("./state.js")).showState(facts);
    } catch (error) {
      facts.replaceChildren(element("p", { class: "bad", text: error.message }));
    }
  }

  show(view) {
    this.view = view;
    this.part(view);
    for (const name of VIEWS) {
      by(name).hidden = name !== view;
      if (name === view) by(`to-${name}`).setAttribute("aria-current", "page");
      else by(`to-${name}`).removeAttribute("aria-current");
    }
  }

  /** The address of what is under the panel. */
  address() {
    if (this.view === "ask") return this.conversation.address();
    return this.view === "documents" && this.parts.documents ? this.parts.documents.address() : viewAddress(this.view);
  }

  askKey(message) {
    by("key").hidden = false;
    if (message) by("key-message").textContent = message;
    by("key-value").value = key.get();
    by("key-forget").hidden = !key.get();
    if (!by("key-dialog").open) by("key-dialog").showModal();
    // What is typed replaces a key that was refused.
    by("key-value").select();
  }

  useKey(value) {
    key.set(value);
    this.begin();
  }
}

const examples = () => get("/v1/examples").then(({ questions }) => questions, () => []);

const strange = (collection) => [...titled("This cannot be shown"), element("p", { class: "bad",
  text: `There is no collection ${collection} here, or it is not open to you.` })];

const day = (time) => new Date(time.slice(0, 10)).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });

new Page().begin();
