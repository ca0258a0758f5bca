import { address, get, key, Problem } from "./api.js";
import { by, count, element, foreign, say } from "./dom.js";
import { viewAddress } from "./places.js";
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
    try {
      if (file.size > this.limits.most_mb * 1e6) throw new Error(`more than ${this.limits.most_mb} MB`);
      const sent = element("progress", { max: file.size, value: 0, "aria-label": `${file.name}: sending` });
      note.replaceChildren(sent, " sending");
      const { is_new: isNew } = await bring(file, (n) => { sent.value = n; });
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
    const now = uploads.map((upload) => `${upload.name} ${statusOf(upload)}`);
    const changed = this.told && now.filter((line) => !this.told.includes(line));
    if (changed?.length) say(changed.join(", "));
    this.told = now;
  }
}

/** Send a file, telling how many bytes are on their way: fetch does not. */
function bring(file, progress) {
  const request = new XMLHttpRequest();
  request.open("POST", address("/v1/documents", { name: file.name }));
  request.setRequestHeader("Content-Type", "application/octet-stream");
  if (key.get()) request.setRequestHeader("Authorization", `Bearer ${key.get()}`);
  request.responseType = "json";
  request.upload.addEventListener("progress", ({ loaded }) => progress(loaded));
  return new Promise((done, failed) => {
    request.addEventListener("error", () => failed(new Problem(0, "The server does not answer. Is it still running?")));
    request.addEventListener("load", () => (request.status < 300 ? done(request.response)
      : failed(new Problem(request.status, request.response?.detail ?? request.statusText))));
    request.send(file);
  });
}

const statusOf = ({ status, stages, n_documents: many }) => ({ waiting: "waits for the next run",
  indexing: stages.length ? STAGE_NAMES[stages.at(-1)] : "begun", quarantined: "not read",
  published: `can be asked of now${many > 1 ? `, ${count(many, "document")}` : ""}` }[status]);

function row(upload) {
  const { name, status, stages, reason, document_id: id, uri } = upload;
  const title = id ? link("documents", id, {}, foreign(name)) : foreign(name);
  const text = statusOf(upload);
  const bar = element("progress", { max: STAGES.length, value: stages.length, "aria-label": `${name}: ${text}` });
  const ask = uri && element("a", { href: viewAddress("ask", { where: [`uri=${uri}`] }), text: "Ask", "aria-label": `Ask of ${name}` });
  return element("li", {}, title,
    element("span", { class: "note" }, status === "indexing" ? bar : null, ` ${text}`, ask ? " · " : null, ask || null),
    reason ? element("p", { class: "bad", dir: "auto", text: reason }) : null);
}
