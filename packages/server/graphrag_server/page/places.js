import { where } from "./api.js";

const KINDS = ["documents", "entities", "communities", "reports", "answers", "history"];
const VIEWS = { "/": "ask", "/compare": "compare", "/documents": "documents", "/state": "state" };
const NAMED = /^\/([a-z]+)\/([^/]+)$/;

/** The address of a document, entity, community or report. Citations of other programs have the same. */
export function addressOf(kind, id, { collection = where.collection, release, start, end } = {}) {
  return withQuery(`/${kind}/${encodeURIComponent(id)}`, { collection, release, start, end });
}

/** Which documents are asked: conditions KEY=VALUE, as in the addresses. */
export const filter = { conditions: [] };

/** Ask some documents from now on, by conditions KEY=VALUE. */
export function narrow(conditions = []) {
  if (String(conditions) === String(filter.conditions)) return;
  filter.conditions = conditions;
  dispatchEvent(new Event("narrowed"));
}

/** The same conditions as a question has them: for each key its values. */
export const whereOf = (conditions) => Object.fromEntries(Object.entries(Object.groupBy(conditions, (each) => each.split("=", 1)[0]))
  .map(([key, those]) => [key, those.map((each) => each.slice(key.length + 1))]));

/** The conditions of a question that was kept. */
export const conditionsIn = (asked) => Object.entries(asked ?? {}).flatMap(([key, values]) => [values].flat().map((value) => `${key}=${value}`));

/** The address of a view; it names the collection where there are several, and which documents are asked. */
export function viewAddress(view, parameters = {}) {
  const path = Object.keys(VIEWS).find((each) => VIEWS[each] === view);
  return withQuery(path, { where: view === "state" ? undefined : filter.conditions, ...parameters,
    collection: where.isOneOfSeveral ? where.collection : undefined });
}

/** The address of an answer's passage or report. */
export function citationAddress(citation, release) {
  if (!citation.document_id) return addressOf("reports", citation.report_id, { release });
  return addressOf("documents", citation.document_id,
    { release, start: citation.start_char, end: citation.end_char });
}

/** The page that a passage begins on, after its document's name. */
export const onPage = ({ page }) => (page ? `, page ${page.toLocaleString("en")}` : "");

/** Return what an address of this page shows: a view, or one thing; null for another address. */
export function placeOf({ origin, pathname, searchParams }) {
  if (origin !== location.origin) return null;
  const [collection, release, question, method, methods, q] = ["collection", "release", "question", "method", "methods", "q"]
    .map((name) => searchParams.get(name) || undefined);
  const conditions = searchParams.getAll("where").filter((each) => each.indexOf("=") > 0);
  if (Object.hasOwn(VIEWS, pathname)) return { view: VIEWS[pathname], collection, question, method, methods, q, conditions };
  const [, kind, id] = pathname.match(NAMED) ?? [];
  if (!KINDS.includes(kind)) return null;
  const number = (name) => (/^\d{1,15}$/.test(searchParams.get(name) ?? "") ? Number(searchParams.get(name)) : undefined);
  return { kind, id: decoded(id), collection, release, start: number("start"), end: number("end") };
}

/** What is open now; what has no address of its own is kept with the entry of the history. */
export function here() {
  return history.state?.place ?? placeOf(new URL(location.href)) ?? { view: "ask" };
}

/** Open an address, or a place without one, as a step that the browser can go back from. */
export function visit(href, place = undefined) {
  const { view = here().view, depth } = history.state ?? {};
  const target = place ?? placeOf(new URL(href, location.href));
  history.pushState({ view: target.view ?? view, depth: target.view ? 0 : (depth ?? 0) + 1, place }, "", href);
  dispatchEvent(new Event("visited"));
}

/** Say in the address what is shown already. */
export const readdress = (href) => history.replaceState(history.state, "", href);

/** Open links of this page without loading it again. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const isPlain = !event.button && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || event.defaultPrevented || !isPlain || !placeOf(new URL(link.href))) return;
    event.preventDefault();
    visit(link.href);
  });
}

/** An address with parameters; of those that are lists, each value is one. */
function withQuery(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).flatMap(([name, values]) => [values].flat()
    .filter((value) => value !== undefined && value !== null).map((value) => [name, value])));
  return query.size ? `${path}?${query}` : path;
}

function decoded(id) {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
