import { address, get, key, send } from "./api.js";
import { element, foreign } from "./dom.js";
import { onPage } from "./places.js";
import { link } from "./views.js";

const PDF = "application/pdf";
const KEPT_MS = 60_000;
const SIZES = [[1e6, "MB"], [1e3, "KB"], [1, "bytes"]];

/** Show the way to the file of a document, at the page of a passage, or why there is none. */
export async function fillOriginal(line, id, { release, start }) {
  const path = `/v1/documents/${encodeURIComponent(id)}`;
  try {
    const { name, media_type: type, n_bytes: size, page, problem } = await get(`${path}/original`, { release, start });
    if (problem) return tell(line, new Error(problem));
    const href = `${address(`${path}/file`, { release })}${page ? `#page=${page}` : ""}`;
    const isPdf = type === PDF;
    const shown = element("a", { href, target: isPdf ? "_blank" : null, rel: "noopener", download: isPdf ? null : name,
      text: "Original file" });
    if (key.get()) shown.addEventListener("click", (event) => { event.preventDefault(); open(href, name, isPdf).catch((error) => tell(line, error)); });
    line.append(element("span", {}, shown, element("span", { class: "note" }, " ", foreign(name),
      `${onPage({ page })}, ${sized(size)}`)));
  } catch (error) {
    tell(line, error);
  }
}

const tell = (line, error) => line.append(element("span", { class: "note", text: `No original file: ${error.message}.` }));

/** Get a file with the key, which a link of the browser would not show. */
async function open(href, name, isPdf) {
  const [path, page] = href.split("#");
  const tab = isPdf ? window.open("about:blank", "_blank") : null;
  try {
    const url = URL.createObjectURL(await (await send(path)).blob());
    setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
    if (tab) tab.location = page ? `${url}#${page}` : url;
    else element("a", { href: url, download: name }).click();
  } catch (error) {
    tab?.close();
    throw error;
  }
}

function sized(bytes) {
  const [unit, name] = SIZES.find(([least]) => bytes >= least) ?? SIZES.at(-1);
  return `${Math.round(bytes / unit).toLocaleString("en")} ${name}`;
}

/** Show the row of a table that a document is, marked, with those around it. */
export async function fillRows(place, id, release) {
  const { columns, rows } = await get(`/v1/documents/${encodeURIComponent(id)}/rows`, { release }).catch(() => ({ rows: [] }));
  if (rows.length < 2) return;
  const cell = (row, text, n) => (n ? element("td", {}, foreign(text))
    : element("th", { scope: "row" }, row.id === id ? foreign(text) : link("documents", row.id, { release }, foreign(text || "row"))));
  place.append(element("div", { class: "table around", tabindex: 0, role: "region", "aria-label": "Rows around it" }, element("table", {},
    element("thead", {}, element("tr", {}, columns.map((name) => element("th", { scope: "col" }, foreign(name))))),
    element("tbody", {}, rows.map((row) => element("tr", { "aria-current": row.id === id ? "true" : null },
      row.cells.map((text, n) => cell(row, text, n))))))));
  const marked = place.querySelector("[aria-current]");
  const box = place.firstChild;
  box.scrollTop = marked.offsetTop - box.clientHeight / 2;
}
