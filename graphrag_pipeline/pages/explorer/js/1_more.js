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
      const answer = await fetch(address);
      const found = await answer.json();
      if (!answer.ok) return { problem: found.detail };
      this.found.set(`${kind}/${number}`, found);
      return found;
    } catch {
      return { problem: "the server does not answer; is it running?" };
    }
  }
}
