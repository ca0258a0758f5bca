import { events, get, where } from "./api.js";
import { conditionsIn, filter, here, narrow, readdress, viewAddress, visit, whereOf } from "./places.js";
import { Citations, doubtsOf, evidence, stepsOf, took } from "./answer.js";
import { copyButton } from "./copying.js";
import { by, element, reveal, say, swap } from "./dom.js";
import { panel } from "./panel.js";

const KEPT = "graphrag.conversation";
const MOST_KEPT = 30;
const GONE = "What this answer rested on is no longer indexed, so it was removed.";
const HISTORY_TURNS = 10;
const LINE = 24, PADDING = 12, MOST_LINES = 8;

/** A conversation: questions, their answers as they come, and what was asked before. */
export class Conversation {
  constructor(methods) {
    this.methods = methods;
    this.turns = [];
    this.asking = null;
    this.place = by("conversation");
    by("composer").addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    by("stop").addEventListener("click", () => this.asking?.abort());
    by("new").addEventListener("click", () => this.begin());
    by("earlier").addEventListener("click", () => panel.show(() =>
      import("./earlier.js").then(({ earlier }) => earlier(this))));
    by("question").addEventListener("input", (event) => fit(event.target));
    by("question").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.asking && event.target.value.trim()) by("composer").requestSubmit();
    });
  }

  /** Show the conversation of this tab again, after the explorer or a reload. */
  restore() {
    const turns = kept().filter((turn) => turn.collection === where.collection);
    this.take(turns, turns.at(-1)?.conversation ?? "");
    if (!here().conditions?.length) narrow(turns.at(-1)?.conditions);
  }

  take(turns, id) {
    Object.assign(this, { turns, id });
    this.place.replaceChildren();
    for (const turn of turns) {
      if (turn.answer) new Turn(this, turn.question, turn).finish(turn.answer);
      else new Turn(this, turn.question, turn).fail(GONE);
    }
    this.turns = turns.filter(({ answer }) => answer);
    this.asked = turns.length ? { question: turns.at(-1).question, conditions: turns.at(-1).conditions } : null;
    this.arrange();
  }

  /** Go on with a conversation that is kept on the server. */
  async open(id) {
    if (id === this.id) return;
    const { answers } = await get(`/v1/history/${encodeURIComponent(id)}`);
    const turns = answers.map((each) => ({ ...each, answerId: each.id, conversation: id, collection: where.collection,
      conditions: conditionsIn(each.answer?.where) }));
    this.asking?.abort();
    this.take(turns, id);
    narrow(turns.at(-1)?.conditions);
    this.store();
  }

  /** Begin anew where the conversation that is shown was deleted. */
  forget(id) {
    if (id === this.id) this.begin();
  }

  begin() {
    this.asking?.abort();
    this.turns = [];
    this.id = "";
    sessionStorage.removeItem(KEPT);
    this.place.replaceChildren();
    this.asked = null;
    narrow();
    visit(this.address());
    this.arrange();
    by("question").focus();
  }

  /** Show questions to begin with, in the empty conversation. */
  suggest(questions) {
    by("examples").replaceChildren(...this.suggested(questions));
    this.arrange();
  }

  suggested(questions) {
    return questions.map((question) => element("li", {}, element("button", { type: "button", dir: "auto",
      text: question, onclick: () => { if (!this.asking) this.ask(question); } })));
  }

  get isEmpty() { return !this.place.children.length; }

  /** The address that asks the last question again, of the documents that it was asked of. */
  address() {
    const isOfThese = String(this.asked?.conditions ?? []) === String(filter.conditions);
    return viewAddress("ask", isOfThese && this.asked ? { question: this.asked.question, method: this.asked.method } : {});
  }

  /** Fill in the question of an address that somebody opened; ask it where that costs nothing. */
  askLinked({ question, method = "", conditions = [] }) {
    const isAsked = (turn) => turn.question === question && String(turn.conditions ?? []) === String(conditions);
    if (!question || this.turns.some(isAsked)) return;
    by("question").value = question;
    fit(by("question"));
    this.methods.choose(method);
    if (!where.asksModel) by("composer").requestSubmit();
  }

  /** Bring a question of this conversation into sight. */
  find(question) {
    const turn = [...this.place.children].findLast((each) => each.dataset.question === question
      && each.dataset.conditions === JSON.stringify(filter.conditions));
    if (turn) reveal(turn, "start");
  }

  async submit() {
    await where.ready;
    const question = by("question").value.trim();
    if (!question || this.asking) return;
    by("question").value = "";
    fit(by("question"));
    this.ask(question);
  }

  async ask(question) {
    const { method } = this.methods.chosen();
    const { conditions } = filter;
    this.asked = { question, method, conditions };
    if (here().view === "ask") readdress(this.address());
    const turn = new Turn(this, question, { conditions });
    const control = new AbortController();
    this.asking = control;
    this.arrange();
    turn.show();
    say("Searching");
    try {
      const body = { question, history: this.history(), ...this.methods.chosen() };
      if (conditions.length) body.where = whereOf(conditions);
      if (where.keeps) body.conversation = this.id;
      if (this.methods.writes && by("follow-ups").checked) body.follow_ups = 3;
      for await (const [name, value] of events("/v1/query/stream", body, control.signal)) turn.take(name, value);
      if (!turn.isDone) turn.fail("The answer broke off. Ask again.");
    } catch (error) {
      if (error.name === "AbortError") turn.stop();
      else turn.fail(error.message);
    } finally {
      if (this.asking === control) this.asking = null;
      this.arrange();
    }
  }

  /** What a model is told of the turns before; without a model each question stands alone. */
  history() {
    if (!this.methods.writes) return [];
    return this.turns.slice(-HISTORY_TURNS).flatMap(({ question, answer }) => [
      { role: "user", content: question }, { role: "assistant", content: answer.text }]);
  }

  keep({ question, conditions, answerId }, answer) {
    this.turns.push({ question, conditions, answer, answerId, conversation: this.id, collection: where.collection });
    this.store();
  }

  store() {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(this.turns.slice(-MOST_KEPT)));
    } catch {
      sessionStorage.removeItem(KEPT);
    }
  }

  arrange() {
    const isAsking = this.asking !== null;
    by("welcome").classList.toggle("unseen", !this.isEmpty);
    by("examples").hidden = !this.isEmpty || !by("examples").children.length;
    by("new").hidden = this.isEmpty || isAsking;
    by("earlier").hidden = !where.keeps || isAsking;
    const buttons = [by("stop"), by("send")];
    swap(...(isAsking ? buttons : buttons.reverse()), by("question"));
    by("question").placeholder = !this.turns.length ? "What would you like to know?"
      : this.methods.writes ? "Ask on, or anew" : "Another question";
  }
}

/** One question and its answer on the page. */
class Turn {
  constructor(conversation, question, { conditions = [], answerId, verdict, words } = {}) {
    Object.assign(this, { conversation, question, conditions, answerId, said: { verdict, words }, text: "", steps: [], isDone: false,
      citations: new Citations() });
    this.wait = element("p", { class: "waiting", text: "Searching" });
    const began = Date.now();
    this.clock = setInterval(() => { this.wait.dataset.seconds = Math.round((Date.now() - began) / 1000); }, 1000);
    this.how = element("details", { class: "how", hidden: true }, element("summary", { text: "How it searched" }));
    this.prose = element("div", { class: "prose" });
    this.rest = element("div", { class: "rest" });
    this.body = element("div", { class: "answer", "aria-busy": "true" }, this.wait, this.how, this.prose, this.rest);
    const asked = element("h2", { class: "asked", dir: "auto", text: question });
    this.place = element("article", { class: "turn", dataset: { question, conditions: JSON.stringify(conditions) } }, asked, this.body);
    conversation.place.append(this.place);
    if (conditions.length) import("./narrowing.js").then(({ narrowedLine }) => asked.after(narrowedLine(conditions)));
  }

  show() { reveal(this.place, "start"); }

  take(name, value) {
    if (name === "step") this.step(value.text);
    else if (name === "text") this.write(value.text);
    else if (name === "citations") this.citations = new Citations(value);
    else if (name === "kept") [this.conversation.id, this.answerId] = [value.conversation, value.answer];
    else if (name === "done") this.done(value);
    else if (name === "error") this.fail(value.detail);
  }

  step(text) {
    this.steps.push(text);
    this.wait.textContent = text;
    say(text);
  }

  /** Pieces that come close together are written at once. */
  write(piece) {
    this.text += piece;
    this.wait.hidden = true;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      if (this.isDone) return;
      const generated = this.conversation.methods.writes;
      this.citations.write(this.prose, this.text, { generated, whole: false });
    });
  }

  done(answer) {
    this.finish(answer);
    this.conversation.keep(this, answer);
    const n = this.citations.byNumber.size;
    say(`Answered, with ${n} ${n === 1 ? "source" : "sources"}`);
  }

  finish(answer) {
    this.end();
    const shown = answer.names_no_source ? answer.retrieval.citations : null;
    this.citations = new Citations(shown ?? answer.citations, answer.release);
    this.citations.write(this.prose, answer.text, { generated: answer.generated });
    const { steps } = answer.retrieval;
    this.how.hidden = !steps.length;
    if (steps.length) this.how.append(stepsOf(steps));
    const failures = answer.failures.map((line) => element("p", { class: "notice", dir: "auto", text: line }));
    const copy = copyButton(() => this.citations.markdown(this.question, answer),
      { html: () => this.citations.html(this.question, this.prose) });
    if (this.answerId) import("./earlier.js").then(({ judging }) => copy.before(judging(this.answerId, this.said)));
    this.rest.replaceChildren(...[doubtsOf(answer), ...failures, this.citations.sources(shown && "Shown to the model"),
      evidence(answer.retrieval), this.next(answer.follow_ups),
      element("div", { class: "foot" },
        element("p", { class: "took", text: `${answer.retrieval.method} · ${took(answer)}` }),
        copy)].filter(Boolean));
  }

  next(questions) {
    return questions.length ? element("ul", { class: "next", "aria-label": "To ask next" },
      this.conversation.suggested(questions)) : null;
  }

  stop() {
    this.end();
    this.rest.replaceChildren(element("p", { class: "quiet", text: "Stopped." }));
    say("Stopped");
  }

  fail(detail) {
    this.end();
    this.rest.replaceChildren(element("p", { class: "bad", role: "alert", dir: "auto", text: detail }),
      element("button", { type: "button", text: "Ask again", onclick: () => this.again() }));
  }

  again() {
    if (this.conversation.asking) return;
    this.place.remove();
    narrow(this.conditions);
    this.conversation.ask(this.question);
  }

  end() {
    this.isDone = true;
    clearInterval(this.clock);
    this.wait.remove();
    this.body.removeAttribute("aria-busy");
    if (this.text) this.citations.write(this.prose, this.text, { generated: this.conversation.methods.writes });
  }
}

/** A box as high as its text, up to a part of the window; one of several lines has a row of its own. */
export function fit(box) {
  const isLong = box.value && (box.classList.contains("long") || box.scrollHeight > 1.5 * LINE + PADDING);
  box.classList.toggle("long", Boolean(isLong));
  box.style.height = "auto";
  if (isLong) box.style.height = `${Math.min(box.scrollHeight, MOST_LINES * LINE + PADDING)}px`;
}

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  } catch {
    return [];
  }
}
