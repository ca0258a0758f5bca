import { post, where } from "./api.js";
import { Citations, counted, doubtsOf, stepsOf } from "./answer.js";
import { by, dollars, element, foreign, growing, reveal, say, seconds, swap } from "./dom.js";
import { entityLink } from "./views.js";
import { fit } from "./ask.js";
import { filter, readdress, viewAddress, whereOf } from "./places.js";
import { changedIn, fieldsOf, grouped, lineOf } from "./methods.js";

const FIRST_CHOSEN = ["hybrid", "local", "ppr"];
const LEAST = 2, MOST = 8;

/** One question, asked of several methods. */
export class Comparison {
  constructor() {
    by("compare-form").addEventListener("submit", (event) => { event.preventDefault(); this.compare(); });
    by("compare-stop").addEventListener("click", () => this.control?.abort());
    // What is wrong can be told only where it is seen.
    by("compare-variants").addEventListener("invalid", ({ target }) => { target.closest("details").open = true; }, true);
    by("compare-question").addEventListener("input", (event) => fit(event.target));
    by("compare-question").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      by("compare-form").requestSubmit();
    });
  }

  take(methods) {
    const usable = methods.filter((m) => m.can_answer);
    this.usable = usable;
    this.asked = null;
    const check = (method) => {
      const box = element("input", { type: "checkbox", value: method.name, checked: FIRST_CHOSEN.includes(method.name) });
      box.addEventListener("change", () => (box.checked ? this.add(method) : this.remove(method)));
      return element("label", { class: "check" }, box, element("span", {}, lineOf(method)));
    };
    by("compare-methods").replaceChildren(...Object.entries(grouped(usable)).map(([label, those]) => element("details",
      { open: label === "Recommended" }, element("summary", { text: `${label} (${those.length})` }),
      element("div", { class: "checks" }, those.map(check)))));
    by("compare-variants").replaceChildren();
    for (const method of usable) if (FIRST_CHOSEN.includes(method.name)) this.add(method);
    by("compared").replaceChildren();
  }

  /** Fill in a comparison of an address that somebody opened; make it where that costs nothing. */
  open({ question, methods }) {
    if (!question || asking(question) === this.asked) return;
    by("compare-question").value = question;
    fit(by("compare-question"));
    if (methods) this.choose(methods.split(","));
    if (!where.asksModel) by("compare-form").requestSubmit();
  }

  choose(specs) {
    by("compare-variants").replaceChildren();
    for (const [name, ...changed] of specs.map((spec) => spec.split(":"))) {
      const method = this.usable.find((each) => each.name === name);
      if (!method) continue;
      const variant = this.add(method);
      for (const [parameter, value] of changed.map((each) => each.split("="))) {
        const field = variant.querySelector(`[name="${CSS.escape(parameter)}"]`);
        if (field?.type === "checkbox") field.checked = value === "true";
        else if (field) field.value = value;
      }
      variant.dispatchEvent(new Event("change"));
    }
    for (const box of by("compare-methods").querySelectorAll("input")) box.checked = this.variants({ name: box.value }).length > 0;
  }

  /** Let a method be set, once more where it is set already: it can be compared with itself. */
  add(method) {
    const once = element("button", { type: "button", class: "plain", text: "Add again, with other parameters" });
    const fields = element("div", { class: "fields" }, fieldsOf(method));
    const summary = element("summary", { text: method.name });
    const variant = element("details", { class: "variant", dataset: { method: method.name } }, summary, fields, once);
    variant.addEventListener("change", () => {
      const [name, ...changed] = specOf(variant).split(":");
      summary.textContent = changed.length ? `${name}: ${changed.join(", ").replaceAll("_", " ")}` : name;
    });
    once.addEventListener("click", () => this.add(method).querySelector("summary").focus());
    const last = this.variants(method).at(-1);
    if (last) last.after(variant); else by("compare-variants").append(variant);
    variant.open = last !== undefined;
    return variant;
  }

  remove(method) { for (const variant of this.variants(method)) variant.remove(); }

  variants(method) {
    return [...by("compare-variants").children].filter(({ dataset }) => !method || dataset.method === method.name);
  }

  async compare() {
    await where.ready;
    const question = by("compare-question").value.trim();
    const methods = [...new Set(this.variants().map(specOf))];
    if (!question || this.control) return;
    if (methods.length < LEAST || methods.length > MOST) {
      return this.show(element("p", { class: "bad", role: "alert", text: `Choose ${LEAST} to ${MOST} methods, or one with several parameters.` }));
    }
    this.asked = asking(question);
    readdress(viewAddress("compare", { question, methods: methods.join(",") }));
    this.control = new AbortController();
    this.arrange();
    this.show(element("p", { class: "waiting", text: `Asking ${methods.join(", ")}` }));
    try {
      const retrieval_only = by("compare-retrieval").checked;
      const { conditions } = filter;
      const results = await post("/v1/compare", { question, methods, retrieval_only, where: whereOf(conditions) }, this.control.signal);
      const line = conditions.length ? (await import("./narrowing.js")).narrowedLine(conditions) : "";
      this.show(line, table(results), element("div", { class: "columns" }, results.map(column)));
      say(`Compared ${results.length} methods`);
    } catch (error) {
      const text = error.name === "AbortError" ? "Stopped." : error.message;
      this.show(element("p", { class: error.name === "AbortError" ? "quiet" : "bad", role: "alert", text }));
    } finally {
      this.control = null;
      this.arrange();
    }
  }

  show(...parts) {
    by("compared").replaceChildren(...parts);
    reveal(by("compared"), "nearest");
  }

  arrange() {
    const buttons = [by("compare-stop"), by("compare-send")];
    swap(...(this.control ? buttons : buttons.reverse()), by("compare-question"));
  }
}

/** What tells one comparison from another. */
const asking = (question) => JSON.stringify([question, filter.conditions]);

/** A method and the parameters that were changed, as in lightrag:mode=local. */
function specOf(variant) {
  const changed = changedIn(variant).map(([name, value]) => `${name}=${value}`);
  return [variant.dataset.method, ...changed].join(":");
}

function table(results) {
  const tokens = ({ prompt_tokens: prompt = 0, completion_tokens: written = 0 }) => (prompt + written).toLocaleString("en");
  const cells = (each) => (each.error ? [element("td", { colspan: 5, text: "failed" })] : [
    each.citations.length.toLocaleString("en"), each.context_tokens.toLocaleString("en"), tokens(each),
    each.model_calls ? dollars(each.cost) : "$0", seconds(each.seconds),
  ].map((text) => element("td", { text })));
  const head = ["Method", "Citations", "Context tokens", "Paid tokens", "Cost", "Time"];
  return element("div", { class: "table", tabindex: 0, role: "region", "aria-label": "What each method took" }, element("table", {},
    element("caption", { class: "unseen", text: "What each method took" }),
    element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col", text })))),
    element("tbody", {}, results.map((each) => element("tr", {},
      element("th", { scope: "row", text: each.method }), cells(each))))));
}

function column(result) {
  const place = element("article", { class: "column", "aria-label": result.method },
    element("h2", { text: result.method }));
  if (result.error) return place.append(element("p", { class: "bad", dir: "auto", text: result.error })), place;
  const citations = new Citations(result.citations, result.release);
  if (result.text !== undefined) {
    const prose = element("div", { class: "prose" });
    citations.write(prose, result.text, { generated: result.generated });
    place.append(prose);
  }
  const entities = result.records.filter(({ kind }) => kind === "entity");
  const sources = citations.sources(result.names_no_source && "Shown to the model");
  place.append(element("p", { class: "took", text: counted(result.records) || "nothing found" }));
  if (result.steps.length) {
    place.append(element("details", {}, element("summary", { text: "How it searched" }), stepsOf(result.steps)));
  }
  if (sources) place.append(sources);
  if (entities.length) {
    place.append(element("h3", { text: "Entities" }), ...growing(entities, ({ id, title }) =>
      element("li", { class: "chip" }, entityLink(id, title, result.release)), { name: "chips" }));
  }
  const doubts = doubtsOf(result);
  if (doubts) place.append(doubts);
  for (const line of result.failures ?? []) place.append(element("p", { class: "notice" }, foreign(line)));
  return place;
}
