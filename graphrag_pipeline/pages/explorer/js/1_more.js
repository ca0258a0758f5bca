/** What a server says of why it gives nothing. */
class Refused extends Error {}

/** Ask the server, with the key that the page to ask on has kept for this tab. */
async function asked(address) {
  const key = sessionStorage.getItem("graphrag.key");
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const response = await fetch(address, { headers });
  if (response.ok) return response.json();
  const problem = await response.json().catch(() => ({}));
  throw new Refused(problem.detail ?? response.statusText);
}

/** What the page does not hold, from the server that it came from; a file on disk has none. */
class More {
  constructor({ collection }) {
    this.collection = collection;
    this.isServed = collection !== null;
    this.found = new Map();
  }

  /** How to see what a file does not hold. */
  how(address) {
    return `run graphrag-pipeline serve, and open http://127.0.0.1:8000/explorer${address}`;
  }

  held(kind, number) { return this.found.get(`${kind}/${number}`) ?? null; }

  /** Return what the server knows, or `{ problem }`; what it has answered is kept. */
  async ask(kind, number) {
    const address = `/v1/explorer/${kind}/${number}?collection=${encodeURIComponent(this.collection)}`;
    try {
      const found = await asked(address);
      this.found.set(`${kind}/${number}`, found);
      return found;
    } catch (error) {
      if (error instanceof Refused) return { problem: error.message };
      return { problem: "the server does not answer; is it running?" };
    }
  }
}
