// The queue in IndexedDB, so that it outlives the page: hub.js loads this where it is asked for (`queue: {indexedDB}`).

const done = request => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/**
 * Opens the store of a name: `entries` are what an earlier page left, in order, and are taken out. Entries are kept by
 * numbers; `time` (ms) makes those of this page greater than any before.
 */
export async function openStore(name, time) {
  const opening = indexedDB.open(name);
  opening.onupgradeneeded = () => opening.result.createObjectStore('queue');
  const database = await done(opening);
  const store = () => database.transaction('queue', 'readwrite').objectStore('queue');
  const first = store(), entries = await done(first.getAll());
  first.clear();
  return {
    entries,
    put(number, { id, type, payload }) { store().put({ id, type, payload }, time * 1000 + number); },
    delete(number) { store().delete(time * 1000 + number); },
  };
}
