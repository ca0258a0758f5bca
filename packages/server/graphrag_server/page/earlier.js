import { get, put, remove, where } from "./api.js";
import { Citations, doubtsOf, evidence, took } from "./answer.js";
import { copied } from "./copying.js";
import { count, element, foreign, say } from "./dom.js";
import { titled } from "./panel.js";
import { narrowedLine } from "./narrowing.js";
import { addressOf, conditionsIn } from "./places.js";

const AT_ONCE = 30;
const path = (id) => `/v1/history/${encodeURIComponent(id)}`;

/** The conversations that a caller had: to find, open, name, take along, delete. */
export function earlier(conversation) {
  const list = element("ul", { class: "rows" });
  const more = element("button", { type: "button", text: "Show more", hidden: true });
  const input = element("input", { type: "search", maxlength: 200, placeholder: "Find a conversation",
    "aria-label": "Find a conversation by words of its questions", autocomplete: "off" });
  const form = element("form", { class: "find", role: "search" }, input, element("button", { text: "Find" }));
  const none = element("p", { class: "quiet", hidden: true });
  let next = null;
  const load = async (before) => {
    const page = await get("/v1/history", { q: input.value.trim(), before, most: AT_ONCE });
    if (!before) list.replaceChildren();
    list.append(...page.conversations.map((each) => row(each, conversation)));
    next = page.next;
    more.hidden = next === null;
    none.textContent = input.value.trim() ? "No question of yours has this in it." : "You have not asked anything yet.";
    none.hidden = list.children.length > 0;
    say(count(list.children.length, "conversation"));
  };
  const told = (work) => work.catch((error) => { none.textContent = error.message; none.hidden = false; });
  form.addEventListener("submit", (event) => { event.preventDefault(); told(load()); });
  more.addEventListener("click", () => told(load(next)));
  return load().then(() => [...titled("Earlier", "Your conversations"), form, none, list, more]);
}

function row({ id, title, changed_at: changed, n_questions: n }, conversation) {
  const name = element("a", { href: addressOf("history", id) }, foreign(title));
  const button = (text, onclick) => element("button", { type: "button", class: "plain", text,
    "aria-label": `${text}: ${title}`, onclick });
  const line = element("li", {}, name,
    element("span", { class: "note", text: `${new Date(changed * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })} · ${count(n, "question")}` }),
    element("p", { class: "deeds" }, button("Rename", () => rename()),
      button("Markdown", () => save()), button("Delete", (event) => drop(event.currentTarget))));
  const told = (error) => line.append(element("p", { class: "bad", role: "alert", text: error.message }));
  const rename = () => {
    const input = element("input", { value: title, maxlength: 200, required: true, "aria-label": "Its name" });
    const form = element("form", { class: "find" }, input, element("button", { text: "Rename" }));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        ({ title } = await put(path(id), { title: input.value.trim() }));
        name.replaceChildren(foreign(title));
        form.replaceWith(name);
        name.focus();
      } catch (error) { told(error); }
    });
    name.replaceWith(form);
    input.select();
  };
  const save = async () => {
    try {
      const { answers } = await get(path(id));
      const parts = answers.map(({ question, answer, release }) => (answer
        ? new Citations(answer.citations, release).markdown(question, answer) : `## ${question}\n\n${GONE}\n`));
      const url = URL.createObjectURL(new Blob([parts.join("\n")], { type: "text/markdown" }));
      element("a", { href: url, download: `${title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) || "conversation"}.md` }).click();
      URL.revokeObjectURL(url);
    } catch (error) { told(error); }
  };
  const drop = async (pressed) => {
    if (pressed.textContent === "Delete") {
      pressed.textContent = "Delete for good?";
      pressed.setAttribute("aria-label", `Delete for good? ${title}`);
      return;
    }
    pressed.disabled = true;
    try {
      await remove(path(id));
      conversation.forget(id);
      (line.nextElementSibling ?? line.previousElementSibling)?.querySelector("a")?.focus();
      line.remove();
      say("Deleted");
    } catch (error) {
      pressed.disabled = false;
      told(error);
    }
  };
  return line;
}

const GONE = "What this answer rested on is no longer indexed, so it was removed.";

/** One answer that somebody got, whoever opens its address. */
export async function answerView({ id, collection }) {
  const { question, answer, release, verdict, words, method } = await get(`/v1/answers/${encodeURIComponent(id)}`);
  if (!answer) return [...titled(question, "Answer"), element("p", { class: "notice", text: GONE })];
  const shown = answer.names_no_source ? answer.retrieval.citations : null;
  const citations = new Citations(shown ?? answer.citations, release);
  const prose = element("div", { class: "prose" });
  citations.write(prose, answer.text, { generated: answer.generated });
  const old = release === where.release ? null : element("p", { class: "notice",
    text: "This is from an earlier release. What is published now may differ." });
  return [...titled(question, "Answer"), narrowedLine(conditionsIn(answer.where)), old, prose, doubtsOf(answer), citations.sources(shown && "Shown to the model"),
    evidence(answer.retrieval),
    element("div", { class: "foot" }, element("p", { class: "took", text: `${method} · ${took(answer)}` }),
      judging(id, { verdict, words, collection }))];
}

/** Buttons that say whether an answer is good, why, and that copy its address. */
export function judging(id, { verdict = null, words = "", collection = where.collection } = {}) {
  const place = element("span", { class: "judging" });
  const told = element("span", { class: "note", role: "status" });
  let isSending = false;
  const tell = async (next, why = "") => {
    if (isSending) return;
    isSending = true;
    told.textContent = "Sending";
    try {
      const path = `/v1/answers/${encodeURIComponent(id)}/feedback`;
      ({ verdict, words } = await put(path, { verdict: next, words: why }));
      told.textContent = verdict ? "Thank you." : "";
    } catch (error) {
      told.textContent = error.message;
    }
    isSending = false;
    const had = place.contains(document.activeElement);
    draw();
    if (had) (place.querySelector("input") ?? place.querySelector("[aria-pressed=true]") ?? place.querySelector("button")).focus();
  };
  const button = (name, text, title) => element("button", { type: "button", class: "plain", text, title,
    "aria-pressed": String(verdict === name), onclick: () => tell(verdict === name ? null : name) });
  const why = () => {
    const input = element("input", { value: words ?? "", maxlength: 2000, placeholder: "What is wrong?", "aria-label": "What is wrong with it" });
    const form = element("form", { class: "find" }, input, element("button", { text: "Send" }));
    form.addEventListener("submit", (event) => { event.preventDefault(); tell("bad", input.value.trim()); });
    return form;
  };
  const link = element("button", { type: "button", class: "plain", text: "Link", title: "Copy the address of this answer" });
  link.addEventListener("click", async () => {
    const address = new URL(addressOf("answers", id, { collection }), location.href).href;
    link.textContent = (await copied(address)) ? "Copied" : address;
    say(link.textContent);
    setTimeout(() => { link.textContent = "Link"; }, 2000);
  });
  const draw = () => place.replaceChildren(...[button("good", "Good", "This answer is good"),
    button("bad", "Bad", "This answer is not good"), verdict === "bad" && !words ? why() : null, told, link].filter(Boolean));
  draw();
  return place;
}
