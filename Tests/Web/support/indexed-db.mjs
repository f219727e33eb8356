// As much of IndexedDB as the client uses, with the transactions of the specification (Indexed Database API 3.0, §2.7):
// one after the other, each as a whole or not at all, open to further requests only while its own callbacks run, and
// committed once no request is left. Databases are deleted when nobody has them open (§5.3).

/** Each step is a task of its own, as in a browser: a test passes them by `settled`. */
const task = () => new Promise(resolve => { setImmediate(resolve); });
const fault = name => new DOMException(name, name);

class Transaction {
  error = null;
  #requests = [];
  #isActive = true;
  constructor(mode) {
    this.mode = mode;
    setImmediate(() => { this.#isActive = false; });
  }

  #request(isWrite, make) {
    if (!this.#isActive) throw fault('TransactionInactiveError');
    if (isWrite && this.mode !== 'readwrite') throw fault('ReadOnlyError');
    const request = { make };
    this.#requests.push(request);
    return request;
  }
  objectStore() {
    const valid = key => {
      if (typeof key !== 'number' || Number.isNaN(key)) throw fault('DataError');
      return key;
    };
    const sorted = content => [...content].sort(([a], [b]) => a - b);
    return {
      getAll: () => this.#request(false, content => sorted(content).map(([, value]) => structuredClone(value))),
      getAllKeys: () => this.#request(false, content => sorted(content).map(([key]) => key)),
      clear: () => this.#request(true, content => content.clear()),
      put: (value, key) => {
        const [known, copy] = [valid(key), structuredClone(value)];
        return this.#request(true, content => content.set(known, copy) && known);
      },
      delete: key => this.#request(true, content => { content.delete(valid(key)); }),
    };
  }

  /** What a page that ends has not committed is as if it had never been. */
  async run(database, room, isAlive) {
    const draft = new Map(database.content);
    do {
      await task();
      const request = this.#requests.shift();
      if (!isAlive()) return;
      if (!request) break;
      this.#isActive = true;
      request.result = request.make(draft);
      request.onsuccess?.();
      await task();
      this.#isActive = false;
    } while (isAlive());
    if (draft.size > room() && draft.size > database.content.size) {
      this.error = fault('QuotaExceededError');
      this.onabort?.();
      return;
    }
    database.content = draft;
    this.oncomplete?.();
  }
}

export class IndexedDatabases {
  /** So many entries a database has room for. */
  room = Infinity;
  #databases = new Map();
  #lines = new Map();
  #page = 0;

  /** What is committed, by keys. */
  content(name) { return this.#databases.get(name)?.content ?? new Map(); }

  /** The page ends: nothing of it goes on. */
  end() {
    this.#page++;
    this.#lines.clear();
    for (const { connections } of this.#databases.values()) connections.clear();
  }

  /** Requests to open or delete a database of one name wait for each other. */
  #inLine(name, work) {
    const page = this.#page, request = {}, isAlive = () => page === this.#page;
    this.#lines.set(name, (this.#lines.get(name) ?? Promise.resolve()).then(task)
      .then(() => isAlive() && work(request, isAlive)));
    return request;
  }

  open(name) {
    return this.#inLine(name, (request, isAlive) => {
      const isNew = !this.#databases.has(name);
      if (isNew) this.#databases.set(name, { content: new Map(), connections: new Set(), line: Promise.resolve() });
      request.result = this.#connection(this.#databases.get(name), isAlive);
      if (isNew) request.onupgradeneeded?.();
      request.onsuccess?.();
    });
  }

  #connection(database, isAlive) {
    let isClosed = false;
    const connection = {
      createObjectStore() {},
      transaction: (_store, mode = 'readonly') => {
        if (isClosed) throw fault('InvalidStateError');
        const transaction = new Transaction(mode);
        database.line = database.line.then(() => transaction.run(database, () => this.room, isAlive));
        return transaction;
      },
      close: () => {
        isClosed = true;
        database.connections.delete(connection);
        database.closed?.();
      },
    };
    database.connections.add(connection);
    return connection;
  }

  deleteDatabase(name) {
    return this.#inLine(name, async request => {
      const database = this.#databases.get(name);
      for (const connection of database?.connections ?? []) connection.onversionchange?.();
      while (database?.connections.size) await new Promise(resolve => { database.closed = resolve; });
      this.#databases.delete(name);
      request.onsuccess?.();
    });
  }
}
