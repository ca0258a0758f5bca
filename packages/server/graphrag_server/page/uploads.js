import { address, get, send } from "./api.js";
import { by, count, element, foreign, say } from "./dom.js";
import { link } from "./views.js";

const STAGES = ["documents", "chunks", "extractions", "graph", "published"];
const STAGE_NAMES = { documents: "read", chunks: "cut into passages", extractions: "entities extracted",
  graph: "in the graph", published: "published" };
const SOON = 2000, LATER = 15000;

/** Documents that are brought to the server, and what becomes of them. */
export class Uploads {
  constructor(onPublished) {
    this.onPublished = onPublished;
    this.queue = Promise.resolve();
    by("files").addEventListener("change", () => { this.send([...by("files").files]); by("files").value = ""; });
    const zone = by("drop");
    for (const name of ["dragenter", "dragover"]) {
      zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
    }
    for (const name of ["dragleave", "drop"]) {
      zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.remove("over"); });
    }
    zone.addEventListener("drop", (event) => this.send([...event.dataTransfer.files]));
    // A file that misses the zone would take the place of the page.
    for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
  }

  /** Take what a collection takes: null where nothing can be uploaded. */
  take(limits) {
    this.limits = limits;
    by("uploading").hidden = !limits;
    by("sent").replaceChildren();
    by("uploads").replaceChildren();
    clearTimeout(this.timer);
    if (!limits) return;
    by("files").accept = limits.kinds.join(",");
    by("upload-limits").textContent = `At most ${limits.most_mb} MB each: PDF, Word, Markdown, HTML, CSV, `
      + "mail and more. The next run indexes them.";
  }

  /** Send files one after another. */
  send(files) {
    for (const file of files) {
      const place = element("li", {}, foreign(file.name), element("span", { class: "note", text: "waiting" }));
      by("sent").append(place);
      this.queue = this.queue.then(() => this.sendOne(file, place));
    }
    this.queue = this.queue.then(() => this.watch());
  }

  async sendOne(file, place) {
    const note = place.querySelector(".note");
    note.textContent = "sending";
    try {
      if (file.size > this.limits.most_mb * 1e6) throw new Error(`more than ${this.limits.most_mb} MB`);
      const response = await send(address("/v1/documents", { name: file.name }), { method: "POST", body: file,
        headers: { "Content-Type": "application/octet-stream" } });
      const { is_new: isNew } = await response.json();
      if (isNew) place.remove();
      else note.textContent = "already there";
      say(`${file.name}: taken`);
    } catch (error) {
      note.textContent = error.message;
      note.classList.add("bad");
    }
  }

  /** Show how far each has come, again and again while one is on its way. */
  async watch() {
    clearTimeout(this.timer);
    if (!this.limits || by("documents").hidden) return;
    let isUnderWay = false;
    try {
      const { uploads } = await get("/v1/uploads");
      by("uploads").replaceChildren(...uploads.map(row));
      const published = uploads.filter(({ status }) => status === "published").length;
      if (this.published !== undefined && published > this.published) this.onPublished();
      this.published = published;
      isUnderWay = uploads.some(({ status }) => status === "waiting" || status === "indexing");
      this.tell(uploads);
    } catch (error) {
      by("upload-limits").textContent = error.message;
    }
    this.timer = setTimeout(() => this.watch(), isUnderWay ? SOON : LATER);
  }

  tell(uploads) {
    const now = uploads.map(({ name, status }) => `${name} ${status}`);
    const changed = this.told && now.filter((line) => !this.told.includes(line));
    if (changed?.length) say(changed.join(", "));
    this.told = now;
  }
}

function row({ name, status, stages, reason, document_id: id, n_documents: many }) {
  const title = id ? link("documents", id, {}, foreign(name)) : foreign(name);
  const last = stages.length ? STAGE_NAMES[stages.at(-1)] : "begun";
  const text = { waiting: "waits for the next run", indexing: last, published: many > 1
    ? `published, ${count(many, "document")}` : "published", quarantined: "not read" }[status];
  const bar = element("progress", { max: STAGES.length, value: stages.length, "aria-label": `${name}: ${text}` });
  return element("li", {}, title,
    element("span", { class: "note" }, status === "indexing" ? bar : null, ` ${text}`),
    reason ? element("p", { class: "bad", dir: "auto", text: reason }) : null);
}
