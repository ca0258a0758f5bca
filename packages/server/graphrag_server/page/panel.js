import { by, element } from "./dom.js";

const TITLE = document.title;
const NARROW = matchMedia("(max-width: 980px)");

/**
 * What is shown beside the answer, or over it on a narrow screen. The address says what; closing it
 * and going back are for whoever sets the address. A view is a function that returns the elements
 * to show, or a promise of them.
 */
class Panel {
  constructor() {
    this.place = by("panel");
    this.body = by("panel-body");
    this.turn = 0;
    by("panel-back").addEventListener("click", () => history.back());
    by("panel-close").addEventListener("click", () => this.leave());
    NARROW.addEventListener("change", () => this.cover());
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.place.hidden && !by("key-dialog").open) this.leave();
    });
  }

  leave() { dispatchEvent(new Event("panel-left")); }

  close() {
    if (this.place.hidden) return;
    this.turn++;
    this.place.hidden = true;
    this.body.replaceChildren();
    this.cover();
    document.title = TITLE;
    if (this.opener?.isConnected) this.opener.focus();
  }

  /** Show a view; the element that had the focus gets it back when the panel is closed. */
  async show(view) {
    const turn = ++this.turn;
    if (this.place.hidden) {
      this.opener = document.activeElement;
      this.body.replaceChildren(element("p", { class: "waiting", text: "Looking" }));
    }
    this.place.hidden = false;
    by("panel-back").hidden = !(history.state?.depth > 1);
    this.cover();
    this.body.setAttribute("aria-busy", "true");
    let parts;
    try {
      parts = await view();
    } catch (error) {
      parts = [titled("This cannot be shown"), element("p", { class: "bad", text: error.message })];
    }
    if (turn !== this.turn) return;
    this.body.replaceChildren(...parts.flat().filter(Boolean));
    this.body.removeAttribute("aria-busy");
    this.place.scrollTop = 0;
    by("panel-title")?.focus({ preventScroll: true });
    document.title = `${by("panel-title")?.textContent} · ${TITLE}`;
    this.body.querySelector("mark")?.scrollIntoView({ block: "nearest" });
  }

  /** On a narrow screen the panel lies over the rest, which cannot be reached meanwhile. */
  cover() {
    const covers = NARROW.matches && !this.place.hidden;
    for (const part of [document.querySelector("main"), document.querySelector("header")]) {
      part.inert = covers;
    }
    document.body.classList.toggle("covered", covers);
  }
}

export const panel = new Panel();

/** The heading of a view, which is told and gets the focus when the view is shown. */
export function titled(text, kind = "") {
  return [
    kind ? element("p", { class: "kicker", text: kind }) : null,
    element("h2", { id: "panel-title", tabindex: "-1", dir: "auto", title: text, text }),
  ];
}
