const MOST_FOUND = 30;
const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** Titles, aliases and names of communities, as they are compared. */
class Search {
  constructor(index) {
    const { entities, aliases, communities } = index;
    const weight = (v) => index.degree(v);
    this.rows = [
      ...entities.title.map((title, v) => ({ kind: "entity", at: v, title, weight: weight(v) })),
      ...aliases.title.map((alias, i) => {
        const v = aliases.entity[i];
        return { kind: "entity", at: v, title: entities.title[v], alias, weight: weight(v) };
      }),
      ...communities.title.flatMap((title, c) =>
        communities.size[c] > 1
          ? [{ kind: "community", at: c, title, weight: communities.size[c] }]
          : []),
    ];
    for (const row of this.rows) row.folded = folded(row.alias ?? row.title);
  }

  /** Return what matches, best first: the same, the same beginning, a word's beginning, within. */
  find(text) {
    const wanted = folded(text.trim());
    if (!wanted) return [];
    const found = [];
    for (const row of this.rows) {
      const at = row.folded.indexOf(wanted);
      if (at < 0) continue;
      const begins = at === 0 || /[^\p{L}\p{N}]/u.test(row.folded[at - 1]);
      const rank = row.folded === wanted ? 0 : at === 0 ? 1 : begins ? 2 : 3;
      found.push({ ...row, rank: rank + (row.kind === "community" ? 0.5 : 0) });
    }
    found.sort((a, b) => a.rank - b.rank || b.weight - a.weight || a.at - b.at);
    const seen = new Set();
    const once = found.filter((r) => !seen.has(r.kind + r.at) && seen.add(r.kind + r.at));
    return once.slice(0, MOST_FOUND);
  }
}

/** The box and its list of results, also by keyboard. */
class SearchBox {
  constructor(input, list, index, colourOf, open) {
    Object.assign(this, { input, list, index, colourOf, open, chosen: 0, found: [] });
    this.search = new Search(index);
    input.addEventListener("input", () => this.update());
    input.addEventListener("focus", () => this.update());
    input.addEventListener("blur", () => setTimeout(() => this.leave(), 150));
    input.addEventListener("keydown", (event) => this.press(event));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || document.activeElement === input) return;
      event.preventDefault();
      input.select();
    });
  }

  update() {
    this.found = this.search.find(this.input.value);
    this.chosen = 0;
    const rows = this.found.map((row, i) => {
      const id = `found-${i}`;
      const item = element("li", { id, role: "option" }, dot(this.colourOf(row.kind, row.at)),
        element("span", { class: "name", text: row.title }),
        element("span", { class: "kind", text: this.kind(row) }));
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); this.take(i); });
      return item;
    });
    const none = element("li", { class: "none", text: "Nothing has this in its title." });
    const asked = this.input.value.trim() !== "";
    this.list.replaceChildren(...(rows.length || !asked ? rows : [none]));
    this.list.hidden = !asked;
    this.input.setAttribute("aria-expanded", String(asked));
    this.mark();
  }

  kind(row) {
    if (row.kind === "community") return `community of ${row.weight.toLocaleString("en")}`;
    if (row.alias) return `also ${row.alias}`;
    return this.index.types[this.index.entities.type[row.at]].toLowerCase();
  }

  press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      event.preventDefault();
      this.chosen = (this.chosen + step + this.found.length) % this.found.length;
      this.mark();
    } else if (event.key === "Enter" && this.found.length) this.take(this.chosen);
    else if (event.key === "Escape") { this.input.blur(); this.close(); }
  }

  mark() {
    [...this.list.children].forEach((item, i) =>
      item.setAttribute("aria-selected", String(i === this.chosen)));
    this.list.children[this.chosen]?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", this.found.length ? `found-${this.chosen}` : "");
  }

  take(i) {
    const { kind, at } = this.found[i];
    this.input.blur();
    this.close();
    this.open(kind, at);
  }

  leave() { if (document.activeElement !== this.input) this.close(); }

  close() { this.list.hidden = true; this.input.setAttribute("aria-expanded", "false"); }
}
