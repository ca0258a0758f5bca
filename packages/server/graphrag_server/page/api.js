const KEY = "graphrag.key";
const CAN_BE_MENDED = 401;
const NO_KEY = "This server asks for a key. Whoever runs it can make one for you.";
const UNKNOWN_KEY = "This key is not known, was revoked, or has expired.";

/** Something the server refused, in its own words. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** The key is kept for this tab alone, and goes nowhere but to this server. */
export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/**
 * Which collection is asked, whether there are others, its published release, what the caller may
 * do, whether a question asks a model, whether answers are kept, and the promise that all this is known.
 */
export const where = { collection: null, isOneOfSeveral: false, release: null, scopes: [],
  asksModel: false, keeps: false, ready: null };

/** Return an address of the collection that is asked. */
export function address(path, parameters = {}) {
  const all = { ...parameters, ...(where.collection ? { collection: where.collection } : {}) };
  const query = new URLSearchParams(Object.entries(all).flatMap(([name, values]) =>
    [values].flat().filter((value) => value !== undefined).map((value) => [name, value])));
  return query.size ? `${path}?${query}` : path;
}

export async function get(path, parameters = {}, signal = undefined) {
  return (await send(address(path, parameters), { signal })).json();
}

/** Send values to an address that names its collection itself. */
export async function put(path, body) {
  const json = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await send(address(path), json)).json();
}

/** Delete what is at an address, for good. */
export async function remove(path) {
  return (await send(address(path), { method: "DELETE" })).json();
}

export async function post(path, body, signal = undefined) {
  return (await send(path, { ...asJson(body), signal })).json();
}

/** Yield the events of an answer, [name, value], as they come. */
export async function* events(path, body, signal) {
  const response = await send(path, { ...asJson(body), signal });
  const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await pieces.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const [name, data] = block.split("\n");
        if (name.startsWith("event: ")) yield [name.slice(7), JSON.parse(data.slice(6))];
      }
    }
  } finally {
    pieces.cancel().catch(() => {});
  }
}

export async function send(path, options = {}) {
  const headers = { ...options.headers };
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The server does not answer. Is it still running?");
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === CAN_BE_MENDED) {
    // What the server says is for programs.
    problem.detail = key.get() ? UNKNOWN_KEY : NO_KEY;
    dispatchEvent(new CustomEvent("key-wanted", { detail: problem.detail }));
  }
  throw new Problem(response.status, problem.detail ?? response.statusText);
}

function asJson(body) {
  const asked = where.collection ? { ...body, collection: where.collection } : body;
  return {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked),
  };
}
