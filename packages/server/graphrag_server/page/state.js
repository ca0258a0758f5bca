import { get } from "./api.js";
import { count, dollars, element, foreign, growing } from "./dom.js";
import { addressOf } from "./places.js";

const FAILED = { failed_chunks: ["passage", "could not be extracted"], cut_chunks: ["passage", "got an answer that was cut off"],
  outdated_chunks: ["passage", "could not be extracted again"], failed_reports: ["report", "could not be written"] };
const CALLS = ["calls", "cached", "failed", "tokens"];

/** Show the state of an index: how fresh it is, what failed, what it cost, who asked and what they said. */
export async function showState(place) {
  const status = await get("/v1/status");
  place.replaceChildren(...[published(status), failures(status), unread(status.quarantined), costs(status),
    keys(status.keys), said(status.feedback)].flat().filter(Boolean));
}

function published({ published: release, documents, pending_batches: pending, pending_because: because }) {
  const when = release && new Date(release.created_at);
  const parts = [element("p", { class: "facts" }, release
    ? `${count(release.documents, "document")}, ${count(release.entities, "entity", "entities")} and ${count(release.relationships, "relationship")} are published since ${when.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" })}.`
    : "Nothing is published yet.")];
  if (pending.length) {
    parts.push(element("p", { class: "notice", text: `${count(pending.length, "batch", "batches")} of documents ${pending.length === 1 ? "waits" : "wait"} for the next run${because.length ? `: ${because.join("; ")}` : ""}.` }));
  } else if (release && documents !== release.documents) {
    parts.push(element("p", { class: "notice", text: `${count(documents, "document")} are in the index: the next run publishes them.` }));
  }
  return parts;
}

function failures(status) {
  const lines = Object.entries(FAILED).filter(([name]) => status[name])
    .map(([name, [what, became]]) => element("li", { text: `${count(status[name], what)} ${became}.` }));
  return lines.length ? [element("h2", { text: "What failed" }), element("ul", {}, lines)] : [];
}

/** Files that could not be read, each with its reason; of other kinds, only how many there are of each. */
function unread(files) {
  const [bad, others] = [files.filter((file) => !file.is_other_kind), files.filter((file) => file.is_other_kind)];
  const kinds = Object.entries(Object.groupBy(others, ({ uri }) => uri.match(/[^/]\.([^./]+)$/)?.[1].toLowerCase() ?? ""))
    .sort(([, a], [, b]) => b.length - a.length).map(([suffix, those]) => `${suffix ? `.${suffix}` : "no suffix"} ${those.length.toLocaleString("en")}`);
  return [...(bad.length ? [element("h2", { text: `Not read (${bad.length.toLocaleString("en")})` }), ...growing(bad, (file) =>
    element("li", {}, foreign(file.uri), element("p", { class: "quiet", dir: "auto", text: file.reason })))] : []),
  others.length ? element("p", { class: "quiet other-kinds", text: `${count(others.length, "file")} of other kinds, not read: ${kinds.join(", ")}` }) : null];
}

function costs({ model_calls: stages, models }) {
  if (!stages.length) return [element("h2", { text: "Cost" }), element("p", { class: "quiet", text: "No model was asked." })];
  const by = (name, rows) => table([name, ...CALLS, "cost"], rows.map((row) => [row[name],
    ...CALLS.map((each) => row[each].toLocaleString("en")), dollars(row.cost)]));
  return [element("h2", { text: "Cost" }), by("stage", stages), models.length > 1 ? by("model", models) : null];
}

function keys(rows) {
  if (!rows.length) return [];
  return [element("h2", { text: "Who may ask" }), table(["name", "state", "for", "tokens", "spent"], rows.map((key) =>
    [key.name, key.state, key.scopes.join(", "), (key.prompt_tokens + key.completion_tokens).toLocaleString("en"), dollars(key.usd)]))];
}

function said({ good, bad, last }) {
  const summary = element("p", { class: "quiet", text: good + bad ? `${good.toLocaleString("en")} good, ${bad.toLocaleString("en")} bad.` : "Nobody has said yet whether an answer is good." });
  return [element("h2", { text: "What people say" }), summary, ...growing(last, ({ answer_id: id, question, verdict, words }) =>
    element("li", {}, element("a", { href: addressOf("answers", id) }, foreign(question)), element("span", { class: "note", text: verdict }),
      words ? element("p", { class: "quiet", dir: "auto", text: words }) : null))];
}

const table = (names, rows) => element("div", { class: "table" }, element("table", {},
  element("thead", {}, element("tr", {}, names.map((name) => element("th", { scope: "col", text: name })))),
  element("tbody", {}, rows.map((row) => element("tr", {}, row.map((value, n) =>
    element(n ? "td" : "th", n ? { class: /^[$\d]/.test(value) ? "number" : "" } : { scope: "row" }, foreign(value))))))));
