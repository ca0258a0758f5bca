import { get, where } from "./api.js";
import { by, count, element, foreign, say } from "./dom.js";
import { filter, narrow } from "./places.js";

const NAMES = { folders: "Folder", endings: "Kind", label: "Label", labels: "Label", from: "Sender", to: "Recipient",
  sender: "Address of the sender", recipients: "Addresses of recipients", cc: "Copy to", author: "Author", date: "Date", tags: "Tag" };
const WAIT = 250;
const IN_FOLDER = /^(?:(.*)\/)?(\*\.[^*/]+)$/;

/** What a filter asks for by field: folders and kinds of files are both asked for by the path. */
function chosenIn(conditions) {
  const chosen = new Map();
  const add = (name, value) => value && chosen.set(name, [...new Set([...(chosen.get(name) ?? []), value])]);
  for (const condition of conditions) {
    const [key, value] = partsOf(condition);
    if (key !== "uri") add(key, value);
    else {
      const [, folder, ending] = value.match(IN_FOLDER) ?? [undefined, value];
      add("folders", folder);
      add("endings", ending);
    }
  }
  return chosen;
}

function conditionsOf(chosen) {
  const [folders, endings] = ["folders", "endings"].map((name) => chosen.get(name) ?? []);
  const paths = folders.length && endings.length ? folders.flatMap((folder) => endings.map((ending) => `${folder}/${ending}`))
    : [...folders, ...endings];
  const others = [...chosen].filter(([name]) => name !== "folders" && name !== "endings");
  return [...paths.map((path) => `uri=${path}`), ...others.flatMap(([name, values]) => values.map((value) => `${name}=${value}`))];
}

function partsOf(condition) {
  const place = condition.indexOf("=");
  return [condition.slice(0, place), condition.slice(place + 1)];
}

const nameOf = (key) => NAMES[key] ?? (key[0].toUpperCase() + key.slice(1)).replaceAll("_", " ");

const shownValue = (name, value) => (name === "endings" ? value.slice(1) : value);

/** A filter in words: what is asked for of each field. */
export function inWords(conditions) {
  return [...chosenIn(conditions)].map(([name, values]) => [name, sayField(name), values.map((value) => shownValue(name, value))]);
}

const sayField = (name) => (/[<>]$/.test(name) ? `${nameOf(name.slice(0, -1))} ${name.endsWith(">") ? "from" : "to"}` : nameOf(name));

/** A line that says which documents a question was narrowed to; nothing where to none. */
export function narrowedLine(conditions) {
  if (!conditions?.length) return null;
  return element("p", { class: "quiet narrowed-to" }, "Narrowed to ", inWords(conditions).flatMap(([, name, values], n) =>
    [n ? ", " : "", `${name[0].toLowerCase()}${name.slice(1)} `, ...values.flatMap((value, m) => [m ? " or " : "", foreign(value)])]));
}

/** The control beside a question, or a list of documents: what there is to narrow by, and what is chosen. */
class Narrowing {
  constructor() {
    this.chips = element("ul", { class: "chips narrowed", "aria-label": "Narrowed to", hidden: true });
    this.fields = element("div", { class: "fields" });
    this.told = element("p", { class: "quiet", role: "status" });
    this.panel = element("div", { class: "narrow-panel", id: "narrow-panel", role: "group", "aria-label": "Narrow to some documents", hidden: true },
      this.fields, this.told);
    // The form around it asks a question at Enter.
    this.panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { this.toggle(this.button); this.button.focus(); event.stopPropagation(); }
      if (event.key !== "Enter" || event.target.tagName === "BUTTON") return;
      event.preventDefault();
      event.target.dispatchEvent(new Event("change"));
    });
    addEventListener("narrowed", () => this.draw());
  }

  /** Stand in the view that is shown. */
  stand(view) {
    const slot = by(view).querySelector(".narrow-slot");
    this.button = by(view).querySelector("button.narrow");
    if (!slot || slot.contains(this.panel)) return;
    slot.append(this.chips, this.panel);
    this.arrange();
    this.draw();
  }

  toggle(button) {
    this.button = button;
    this.panel.hidden = !this.panel.hidden;
    this.arrange();
    if (!this.panel.hidden) this.load();
  }

  arrange() {
    for (const button of document.querySelectorAll("button.narrow")) {
      button.setAttribute("aria-expanded", String(button === this.button && !this.panel.hidden));
    }
  }

  async load() {
    const place = `${where.collection} ${where.release}`;
    if (this.place !== place) {
      this.place = place;
      this.told.textContent = "Looking";
      try {
        this.known = (await get("/v1/fields")).fields;
      } catch (error) {
        this.place = null;
        this.told.textContent = error.message;
        return;
      }
    }
    this.draw();
    this.fields.querySelector("select, input")?.focus();
  }

  draw() {
    const chosen = chosenIn(filter.conditions);
    const words = inWords(filter.conditions);
    this.chips.hidden = !words.length;
    this.chips.replaceChildren(...words.map(([name, said, values]) => element("li", { class: "chip" },
      `${said} `, values.flatMap((value, n) => [n ? " or " : "", foreign(value)]),
      element("button", { type: "button", class: "plain", text: "×", "aria-label": `Remove: ${said} ${values.join(" or ")}`,
        onclick: () => this.choose(name, []) }))));
    for (const button of document.querySelectorAll("button.narrow")) button.classList.toggle("on", words.length > 0);
    if (this.panel.hidden) return;
    const isSame = this.drawn === this.known;
    if (!isSame) this.fields.replaceChildren(...this.known.map((field) => this.field(field)));
    this.drawn = this.known;
    for (const input of this.fields.querySelectorAll("select, input")) show(input, chosen.get(input.name) ?? []);
    this.tell();
  }

  /** Say how many documents are left. */
  async tell() {
    if (!this.known.length) return void (this.told.textContent = "These documents tell nothing that they could be narrowed by.");
    const asked = filter.conditions;
    if (!asked.length || !where.scopes.includes("read")) return void (this.told.textContent = "");
    const text = await get("/v1/documents", { where: asked, most: 1 }).then(({ total }) => (total
      ? `${count(total, "document")} left.` : "No document is left: take something back."), (error) => error.message);
    if (asked === filter.conditions) this.told.textContent = text;
  }

  field(field) {
    const name = ["folders", "endings"].includes(field.kind) ? field.kind : field.key;
    const said = nameOf(name);
    if (field.values) return labelled(said, field.has_more ? this.typed(field, name) : this.listed(field, name));
    const kind = { type: field.kind === "days" ? "date" : "number", step: "any", min: field.least, max: field.greatest };
    if (kind.type === "date") Object.assign(kind, { step: null, min: whole(field.least), max: whole(field.greatest) });
    return element("div", { class: "range" }, [[">", "from"], ["<", "to"]].map(([sign, word]) => labelled(`${said} ${word}`,
      element("input", { ...kind, name: `${name}${sign}`, onchange: (event) => this.choose(event.target.name, [event.target.value]) }))));
  }

  listed({ values }, name) {
    const option = ({ value, documents }) => element("option", { value, text: `${shownValue(name, value)} (${documents.toLocaleString("en")})` });
    const sorted = name === "folders" ? values.toSorted((a, b) => a.value.localeCompare(b.value)) : values;
    return element("select", { name, onchange: (event) => this.choose(name, [event.target.value]) },
      element("option", { value: "", text: "Any" }), sorted.map(option));
  }

  /** A field of very many values: those that have what is typed are offered. */
  typed({ key, values }, name) {
    const id = `narrow-${key}`;
    const offered = element("datalist", { id });
    const offer = (those) => offered.replaceChildren(...those.map(({ value }) => element("option", { value })));
    let timer;
    const find = async (q) => offer((await get("/v1/fields/values", { key, q }).catch(() => ({ values: [] }))).values);
    offer(values);
    return [element("input", { name, list: id, placeholder: "Any", autocomplete: "off", spellcheck: "false", maxlength: 200,
      onchange: (event) => this.choose(name, [event.target.value.trim()]),
      oninput: (event) => { clearTimeout(timer); timer = setTimeout(() => find(event.target.value), WAIT); } }), offered];
  }

  choose(name, values) {
    const chosen = chosenIn(filter.conditions);
    const wanted = values.filter(Boolean);
    if (String(chosen.get(name) ?? []) === String(wanted)) return;
    if (wanted.length) chosen.set(name, wanted);
    else chosen.delete(name);
    narrow(conditionsOf(chosen));
    if (!this.chips.contains(document.activeElement) && document.activeElement === document.body) this.button.focus();
    say(inWords(filter.conditions).map(([, said, each]) => `${said} ${each.join(" or ")}`).join(", ") || "All documents");
  }
}

const labelled = (name, input) => element("label", { class: "field" }, element("span", { text: name }), input);

const whole = (day) => (day?.length === 10 ? day : null);

/** Show what is chosen in a field; a value that is not listed is listed then. */
function show(input, values) {
  const value = values.length > 1 ? values.join(" or ") : values[0] ?? "";
  if (input.tagName === "SELECT" && ![...input.options].some((option) => option.value === value)) {
    input.append(element("option", { value, text: shownValue(input.name, value) }));
  }
  if (input !== document.activeElement || input.tagName === "SELECT") input.value = value;
}

export const narrowing = new Narrowing();
