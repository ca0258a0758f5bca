"use strict";

const ROOT = -1;
const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const shortened = (text, most) => {
  if (text.length <= most) return text;
  const cut = text.slice(0, most);
  return cut.slice(0, Math.max(cut.lastIndexOf(" "), most * 0.6)).replace(/[\s,:;-]+$/, "") + "…";
};

async function unpack(element) {
  if (element.dataset.source) return asked(element.dataset.source + location.search);
  const packed = atob(element.textContent.trim());
  element.textContent = "";
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Rows by what they belong to: `rows[start[k]] .. rows[start[k + 1] - 1]` are those of k. */
class Grouped {
  constructor(n, ...columns) {
    this.start = new Uint32Array(n + 1);
    for (const keys of columns) for (const k of keys) this.start[k + 1]++;
    for (let k = 0; k < n; k++) this.start[k + 1] += this.start[k];
    const next = this.start.slice();
    this.rows = new Uint32Array(this.start[n]);
    const length = columns[0].length;
    for (let i = 0; i < length; i++) for (const keys of columns) this.rows[next[keys[i]]++] = i;
  }
  of(k) { return this.rows.subarray(this.start[k], this.start[k + 1]); }
  count(k) { return this.start[k + 1] - this.start[k]; }
}

/** The graph as the page asks it: neighbours, members, parents and children by number. */
class Index {
  constructor(data) {
    Object.assign(this, data);
    const { entities, relationships, communities } = data;
    this.size = entities.title.length;
    this.edges = new Grouped(this.size, relationships.source, relationships.target);
    this.passagesOf = new Grouped(this.size, data.passages.node);
    const n = communities.title.length;
    this.findingsOf = new Grouped(n, data.findings.community);
    this.originsOf = new Grouped(this.size, data.origins.node);
    this.aliasesOf = new Grouped(this.size, data.aliases.entity);
    this.levels = Math.max(0, ...new Set(communities.last_level)) + (n ? 1 : 0);
    this.children = Array.from({ length: n }, () => []);
    communities.parent.forEach((p, c) => p !== ROOT && this.children[p].push(c));
    this.members = Array.from({ length: n }, () => []);
    for (let v = 0; v < this.size; v++) for (const c of this.path(v)) this.members[c].push(v);
    const missing = (column, value) => column.reduce((n, one) => n + (one === value), 0);
    this.left = {
      entities: missing(entities.description, null),
      reports: communities.summary.reduce((n, _, c) => n + !this.isReported(c), 0),
      sentences: missing(relationships.sentence, -1),
    };
    this.entityByNumber = new Map(entities.number.map((k, v) => [k, v]));
    this.communityByNumber = new Map(communities.number.map((k, c) => [k, c]));
  }
  /** Whether the page itself holds all that there is to show of an entity, or of a report. */
  isWhole(v) {
    const { description, degree } = this.entities;
    const { sentence } = this.relationships;
    return description[v] !== null && this.edges.count(v) >= degree[v] &&
      this.edges.of(v).every((e) => sentence[e] >= 0);
  }
  isReported(c) { return !this.communities.writer[c] || this.communities.summary[c] !== null; }
  get isComplete() {
    return this.size === this.release.n_entities &&
      this.relationships.source.length === this.release.n_relationships && this.left.entities === 0 &&
      this.left.reports === 0 && this.left.sentences === 0;
  }
  degree(v) { return this.edges.count(v); }
  neighbour(v, edge) {
    const { source, target } = this.relationships;
    return source[edge] === v ? target[edge] : source[edge];
  }
  /** Communities of an entity, the deepest first. */
  path(v) {
    const found = [];
    const leaf = this.entities.leaf[v] ?? ROOT;
    for (let c = leaf; c !== ROOT; c = this.communities.parent[c]) found.push(c);
    return found;
  }
  at(v, level) {
    let c = this.entities.leaf[v] ?? ROOT;
    while (c !== ROOT && this.communities.level[c] > level) c = this.communities.parent[c];
    return c;
  }
  /** Communities that stand at a level, largest first. */
  standing(level) {
    const { level: first, last_level: last, size } = this.communities;
    const found = first.flatMap((l, c) => (l <= level && last[c] >= level ? [c] : []));
    return found.sort((a, b) => size[b] - size[a] || a - b);
  }
  centre(c) {
    const { x, y } = this.entities;
    const members = this.members[c];
    const sum = (column) => members.reduce((total, v) => total + column[v], 0);
    return { x: sum(x) / members.length, y: sum(y) / members.length };
  }
}
