import { get, put, where } from "./api.js";
import { count, element, foreign, say, typeName } from "./dom.js";

const TYPES = ["PERSON", "ORGANIZATION", "GEO", "EVENT", "CONCEPT", "WORK", "DATE", "OTHER"];

/** What somebody may say of an entity who knows better: its name, its type, that it is another. */
export function corrections(entity) {
  if (!where.scopes.includes("write")) return null;
  const told = element("p", { class: "quiet", role: "status" });
  const tell = async (action, value, documents = []) => {
    told.className = "quiet";
    told.textContent = "";
    try {
      await put(`/v1/entities/${encodeURIComponent(entity.id)}/corrections`, { action, value, documents });
      told.textContent = "Noted. The next run goes by it.";
    } catch (error) {
      told.className = "bad";
      told.textContent = error.message;
    }
  };
  return element("details", { class: "corrections" }, element("summary", { text: "Correct it" }),
    oneLine("Call it", entity.title, "Rename", (value) => tell("rename", value)),
    oneLine("It is a", entity.type, "Retype", (value) => tell("type", value), TYPES),
    merging(entity, (value) => tell("merge", value)),
    splitting(entity, (value, documents) => tell("split", value, documents)), told);
}

let n = 0;

function oneLine(label, value, verb, act, choices = null) {
  const id = `correction-${++n}`;
  const input = element("input", { id, value, maxlength: 200, required: true, autocomplete: "off",
    list: choices ? `${id}-choices` : null });
  const form = element("form", { class: "find" }, element("label", { for: id, text: label }), input,
    choices ? element("datalist", { id: `${id}-choices` }, choices.map((each) =>
      element("option", { value: each, label: typeName(each) }))) : null,
    element("button", { text: verb }));
  form.addEventListener("submit", (event) => { event.preventDefault(); act(input.value.trim()); });
  return form;
}

/** Say which documents mean another of the same name, and what that one is to be called. */
function splitting({ title, places }, act) {
  const documents = [...new Map(places.map((place) => [place.document_id, place])).values()];
  if (documents.length < 2) return null;
  const boxes = documents.map(({ document_id }) => element("input", { type: "checkbox", value: document_id }));
  const form = oneLine("Another is", `${title} (2)`, "Split", (value) => {
    const chosen = boxes.filter(({ checked }) => checked).map((box) => box.value);
    if (chosen.length) act(value, chosen);
    else say("Choose the documents of the other one");
  });
  return element("div", {}, form, element("fieldset", { class: "another" },
    element("legend", { text: "who is meant in" }), documents.map((place, n) =>
      element("label", {}, boxes[n], foreign(place.document_title || place.uri)))));
}

/** Look for the other one, and say that both are the same. */
function merging(entity, act) {
  const found = element("ul", { class: "rows" });
  const form = oneLine("The same as", "", "Find", async (q) => {
    try {
      const { entities } = await get("/v1/entities", { q, most: 8 });
      const others = entities.filter(({ id }) => id !== entity.id);
      found.replaceChildren(...others.map(({ title, type }) => element("li", {}, foreign(title),
        element("span", { class: "note", text: typeName(type) }),
        element("button", { type: "button", text: "Merge", "aria-label": `Merge with ${title}`, onclick: () => act(title) }))));
      say(`${count(others.length, "entity", "entities")} found`);
    } catch (error) {
      found.replaceChildren(element("li", { class: "bad", text: error.message }));
    }
  });
  return element("div", {}, form, found);
}
