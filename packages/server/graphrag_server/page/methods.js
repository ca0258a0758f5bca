import { by, element } from "./dom.js";

const SUMMARY = "the server chooses how to search";
/** The method of a question that names none, where no model writes the answers. */
const AUTO = "auto";

/** What a method is called and, as its own line, what it finds; a list that has no room for lines has both in one. */
export const lineOf = ({ name, summary }) => [element("span", { class: "name", text: name }),
  element("span", { class: "unseen", text: ": " }), element("span", { class: "line", text: summary })];

/** Methods by what there is to know before one is chosen; those to begin with come first. */
export const grouped = (methods, writes) => Object.groupBy(methods.toSorted((a, b) => b.recommended - a.recommended),
  (m) => (m.can_answer ? (m.recommended ? "Recommended" : "More methods") : m.needs_model && !writes
    ? "Need a language model" : "Not in this index"));

/** The methods of a collection, and the form in which one is chosen and set. */
export class Methods {
  constructor() {
    this.known = new Map();
    by("method").addEventListener("change", () => this.describe());
    by("options-button").addEventListener("click", () => this.toggle());
  }

  take(methods) {
    this.known = new Map(methods.map((method) => [method.name, method]));
    this.writes = methods.some((method) => method.needs_model && method.can_answer);
    const [chosen, changed] = [by("method").value, changedIn(by("parameters"))];
    const option = (method) => element("option", { value: method.name, disabled: !method.can_answer }, lineOf(method));
    by("method").replaceChildren(
      element("button", {}, element("selectedcontent")),
      element("option", { value: "" }, lineOf({ name: this.writes ? "Default" : "Automatic", summary: SUMMARY })),
      ...Object.entries(grouped(methods.filter(({ name }) => this.writes || name !== AUTO), this.writes)).map(([label, those]) => element("optgroup", { label }, those.map(option))));
    this.pick(chosen);
    by("follow-ups-label").hidden = !this.writes;
    this.describe();
    // What somebody has set before the methods arrived stays set.
    if (by("method").value === chosen) changed.forEach(([name, value]) => set(by("parameters"), name, value));
  }

  /** The method of the entry that is chosen; undefined where only the server knows. */
  get method() {
    return this.known.get(by("method").value || (this.writes ? "" : AUTO));
  }

  pick(name) {
    const isListed = [...by("method").options].some((option) => option.value === name && !option.disabled);
    by("method").value = isListed ? name : "";
  }

  describe() {
    const method = this.method;
    by("method-summary").textContent = method
      ? `${method.name}: ${method.summary}.`
      : "The server chooses how to search. Choose a method yourself to set its parameters.";
    by("parameters").replaceChildren(...fieldsOf(method));
  }

  /** Choose a method by name, where it can answer. */
  choose(name) {
    this.pick(name);
    this.describe();
  }

  toggle() {
    const isOpen = by("options").hidden;
    by("options").hidden = !isOpen;
    by("options-button").setAttribute("aria-expanded", String(isOpen));
  }

  /** What is asked of the server: a method, and those parameters that were changed. */
  chosen() {
    const changed = changedIn(by("parameters"));
    const method = by("method").value || (changed.length ? this.method.name : "");
    return method ? { method, parameters: Object.fromEntries(changed) } : {};
  }
}

/** The fields by which the parameters of a method are set. */
export const fieldsOf = (method) => (method?.parameters ?? []).map(field);

/** Names and values of those parameters within a place that are not as they are by default. */
export function changedIn(place) {
  return [...place.querySelectorAll("[data-default]")].flatMap((input) => {
    const value = valueOf(input);
    return value === undefined || String(value) === input.dataset.default ? [] : [[input.name, value]];
  });
}

function field({ name, type, default: value, among, least, most }) {
  const label = name.replaceAll("_", " ");
  const common = { name, dataset: { type, default: String(value) } };
  if (type === "bool") {
    return element("label", { class: "check" },
      element("input", { ...common, type: "checkbox", checked: value === true }), ` ${label}`);
  }
  const number = type === "int" || type === "float";
  return element("label", { class: "field" }, element("span", { text: label }), among
    ? element("select", common, among.map((each) => element("option", { value: each, text: each, selected: each === value })))
    : element("input", { ...common, type: number ? "number" : "text", step: type === "int" ? 1 : "any",
      min: least, max: most, value: value ?? "", required: number }));
}

function set(place, name, value) {
  const input = place.querySelector(`[name="${CSS.escape(name)}"]`);
  if (input) input[input.dataset.type === "bool" ? "checked" : "value"] = value;
}

function valueOf(input) {
  if (input.dataset.type === "bool") return input.checked;
  if (input.type !== "number") return input.value;
  return Number.isNaN(input.valueAsNumber) ? undefined : input.valueAsNumber;
}
