// The queue in IndexedDB, so that it outlives the page: hub.js loads this where it is asked for (`queue: {indexedDB}`).
// An entry keeps its key until it has arrived, whichever page sends it: so a page that ends at any time loses none.

const openMs = 9_000;   // less than an attempt to connect may take

const done = request => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/**
 * Opens the store of a name, in which keys ascend: those of this page follow all that are there, and `time` (ms).
 * `failed` is called with why something could not be written.
 */
export async function openStore(name, time, failed) {
  let opened, changes = [];
  const open = async () => {
    const opening = indexedDB.open(name);
    opening.onupgradeneeded = () => opening.result.createObjectStore('queue');
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => {
        opening.onsuccess = () => opening.result.close();
        reject(new Error('it does not answer'));
      }, openMs);
    });
    const database = await Promise.race([done(opening), late]);
    clearTimeout(timer);
    // Who deletes the database waits until nobody has it open. The next change opens it again.
    database.onversionchange = database.onclose = () => {
      database.close();
      opened = undefined;
    };
    return database;
  };
  /** Changes that are made at once are one transaction. */
  const write = async change => {
    if (changes.push(change) > 1) return;
    let made = [];
    try {
      const transaction = (await (opened ??= open())).transaction('queue', 'readwrite');
      transaction.onabort = () => failed(transaction.error);
      [made, changes] = [changes, made];
      for (const make of made) make(transaction.objectStore('queue'));
    } catch (error) {
      opened = undefined;
      changes = [];
      failed(error);
    }
  };

  const store = (await (opened = open())).transaction('queue').objectStore('queue');
  const [keys, entries] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
  const begin = Math.max(time * 1000, keys.at(-1) ?? 0);
  /** An entry of this page has a number from 1 on, those of earlier pages −1 and less. */
  const keyOf = number => number < 0 ? keys.at(number) : begin + number;
  return {
    /** Puts what earlier pages left in front of what a queue has, and keeps that as well. */
    load(queue) {
      const own = [...queue];
      queue.clear();
      entries.forEach((entry, index) => queue.set(index - entries.length, entry));
      for (const [number, entry] of own) {
        queue.set(number, entry);
        this.put(number, entry);
      }
    },
    /**
     * The first hub that answered has said who this is: `owner`, as `driver D1`. Gives the entries that are not this
     * one's to send. One that was kept before any hub answered is, but fixes of earlier pages are a driver's.
     */
    claim(queue, owner) {
      return [...queue].filter(([number, entry]) => {
        if (entry.owner) return entry.owner !== owner;
        if (number < 0 && entry.type.startsWith('location') && !owner.startsWith('driver ')) return true;
        this.put(number, entry, owner);
        return false;
      });
    },
    put(number, { id, type, payload }, owner) {
      if (type !== 'query') write(store => store.put({ id, type, payload, owner }, keyOf(number)));
    },
    delete(number) { write(store => store.delete(keyOf(number))); },
  };
}
