// The queue in IndexedDB: it outlives the page, whenever that ends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import '../../Sources/Pages/web/hub-store.js';
import { byHand, settled } from './support/by-hand.mjs';
import { IndexedDatabases } from './support/indexed-db.mjs';

const driver = { role: 'driver', id: 'D1' };
const greeting = { ...driver, limits: { maxMessageBytes: 262144, maxBatch: 500, rate: 0 } };
const queue = { indexedDB: 'fixes' };
const begin = 1_763_680_000_000;
const fix = seconds => ({ latitude: 48 + seconds * 15 / 111_200, longitude: 11, timestamp: begin + seconds * 1000 });
const stored = () => indexedDB.content('fixes');

/** A page with this queue, later than those before. */
let minutes = 0;
function newPage(options) {
  const world = byHand({ dev: driver, queue, ...options });
  world.clock.time += 60_000 * minutes++;
  return world;
}
const passed = async steps => { for (let n = 0; n < steps; n++) await settled(); };
/** All its steps so far are done. */
const written = () => passed(100);
/** A page that says two fixes and a move, of which nothing arrives. */
async function leaveBehind() {
  globalThis.indexedDB = new IndexedDatabases();
  const world = newPage();
  await world.live(greeting);
  world.hub.send(fix(0), { trip: 'T1' });
  world.hub.send(fix(1), { trip: 'T1' });
  world.hub.move('T1', 'arrived_pickup');
  await written();
  indexedDB.end();
  return world;
}

test('what a page left unsent the next one sends, first of all and with the same ids', async () => {
  globalThis.indexedDB = new IndexedDatabases();
  const first = newPage();
  await first.live(greeting);
  first.hub.send(fix(0), { trip: 'T1' });
  first.hub.send(fix(1), { trip: 'T1' });
  first.hub.move('T1', 'arrived_pickup');
  first.hub.status('available');
  first.hub.nearby({ latitude: 1, longitude: 2 }).catch(() => {});
  await settled();
  await first.socket.ack(first.socket.last('driver_status'));
  await written();
  assert.equal(stored().size, 3, 'what was acked is gone, questions are not kept');
  const { messageId } = first.socket.last('trip_status');
  indexedDB.end();

  const second = newPage({ random: () => 0.25 });
  second.hub.send(fix(60), { trip: 'T1' });
  const socket = await second.live(greeting);
  const [batch, move, last] = socket.sent;
  assert.deepEqual(batch.payload.locations, [fix(0), fix(1)]);
  assert.deepEqual([move.type, move.messageId], ['trip_status', messageId]);
  assert.deepEqual(last.payload.locations, [fix(60)]);
  for (const message of [batch, last]) await socket.ack(message, { accepted: 1, duplicates: 1, rejected: [] });
  await socket.ack(move);
  await socket.ack({ messageId: 'of an earlier page' });
  await written();
  assert.equal(stored().size, 0);
  assert.equal(second.errors.length, 0);
});

test('a page that ends at any step of its loading leaves all that it found', async () => {
  await leaveBehind();
  const before = stored();
  assert.equal(before.size, 3);
  for (let steps = 0; steps < 30; steps++) {
    const world = newPage();
    world.hub.connect();
    await passed(steps);
    indexedDB.end();
    assert.deepEqual(stored(), before, `after ${steps} steps`);
  }
  const socket = await newPage().live(greeting);
  assert.deepEqual(socket.sent.map(({ type }) => type), ['location_batch', 'trip_status']);
});

test('where there is no room, what is there stays, and what is new is reported and kept in memory', async () => {
  await leaveBehind();
  indexedDB.room = 2;   // less than there is: another site has it now
  const world = newPage(), { hub } = world;
  const socket = await world.live(greeting);
  hub.send(fix(60));
  await written();
  assert.deepEqual([stored().size, hub.backlog.messages], [3, 3], 'a batch, a move, and the new fix');
  assert.deepEqual(world.errors.map(({ code, message }) => [code, /QuotaExceeded/.test(message)]), [['storage', true]]);
  await socket.ack(socket.last('location_batch'), { accepted: 2, duplicates: 0, rejected: [] });
  await written();
  assert.equal(stored().size, 1, 'what has arrived makes room');
  hub.send(fix(61));
  await written();
  assert.deepEqual([stored().size, world.errors.length], [2, 1]);
});

test('a clock that was set back has no entry take the place of an older one', async () => {
  await leaveBehind();
  const before = [...stored()];
  const world = newPage();
  world.clock.time = begin - 3_600_000;
  await world.live(greeting);
  for (let second = 60; second < 65; second++) world.hub.send(fix(second));
  await written();
  assert.deepEqual([...stored()].slice(0, 3), before);
  assert.equal(stored().size, 8);
});

test('where IndexedDB does not work, that is reported once, and memory is used', async () => {
  globalThis.indexedDB = { open() { throw new Error('private window'); } };
  const world = newPage();
  await world.live(greeting);
  assert.deepEqual(world.errors.map(({ code }) => code), ['storage']);
  assert.equal(world.hub.send(fix(0)), 'queued');
  await world.socket.end(1006);
  await world.again(driver);
  assert.equal(world.errors.length, 1);
});

// Whose it is. A page may be another driver's than the one before, and so may a connection.

/** Of the messages that a socket sent: types, and how many fixes a batch has. */
const sentBy = socket => socket.sent.map(({ type, payload }) => [type, payload.locations?.length ?? 1]);

test('what one driver left is not sent as another one\'s: it is dropped, counted and reported', async () => {
  await leaveBehind();
  const world = newPage({ dev: { role: 'driver', id: 'D2' } });
  world.hub.send(fix(60));
  const socket = await world.live({ ...greeting, id: 'D2' });
  await written();
  assert.deepEqual(sentBy(socket), [['location_batch', 1]]);
  assert.deepEqual(world.errors.map(({ code, message }) => [code, message]),
    [['forbidden', "3 messages are not driver D2's to send"]]);
  assert.deepEqual([world.hub.backlog, stored().size], [{ messages: 1, dropped: 2 }, 1]);
  indexedDB.end();
  assert.deepEqual(sentBy(await newPage().live(greeting)), [], 'nor are those of the second the first one\'s');
});

test('what was kept before any hub answered is of the driver that is greeted first, and stays so', async () => {
  globalThis.indexedDB = new IndexedDatabases();
  const offline = newPage();
  offline.hub.connect();
  await written();
  offline.hub.send(fix(0));
  await written();
  indexedDB.end();
  const first = newPage();
  first.hub.send(fix(60));
  assert.deepEqual(sentBy(await first.live(greeting)), [['location_batch', 2]]);
  first.hub.send(fix(61));
  await written();
  assert.deepEqual([...stored().values()].map(({ owner }) => owner), ['driver D1', 'driver D1', 'driver D1']);
  await first.socket.end(1006);
  assert.deepEqual(sentBy(await first.again(greeting)), [['location_batch', 2], ['location_batch', 1]], 'still its');
  assert.deepEqual(first.errors, []);
  indexedDB.end();
  const second = newPage();
  assert.deepEqual(sentBy(await second.live({ ...greeting, id: 'D2' })), []);
  assert.deepEqual(second.errors.map(({ code }) => code), ['forbidden']);
});

for (const role of ['rider', 'ops']) {
  test(`a page of ${role} sends nothing of what drivers left, and leaves it for them`, async () => {
    await leaveBehind();
    const before = stored(), world = newPage({ dev: { role, id: 'D1' } });
    world.hub.move('T2', 'requested').catch(() => {});
    const socket = await world.live({ ...greeting, role });
    await written();
    assert.deepEqual(socket.sent.map(({ payload }) => payload.tripId), ['T2']);
    assert.deepEqual(world.errors.map(({ code }) => code), ['forbidden']);
    assert.equal(world.hub.backlog.dropped, 0);
    assert.deepEqual([...stored()].slice(0, 3), [...before]);
    indexedDB.end();
    const next = newPage({ dev: { role, id: 'D1' } });
    assert.deepEqual((await next.live({ ...greeting, role })).sent.map(({ payload }) => payload.tripId), ['T2'],
      'its own it sends again');
    indexedDB.end();
    assert.deepEqual(sentBy(await newPage().live(greeting)), [['location_batch', 2], ['trip_status', 1]]);
  });
}

for (const queue of [undefined, { indexedDB: 'fixes' }]) {
  const where = queue ? 'IndexedDB' : 'memory';
  test(`a connection of another driver sends nothing of the one before, in ${where}`, async () => {
    globalThis.indexedDB = new IndexedDatabases();
    const world = newPage({ queue }), { hub } = world;
    await world.live(greeting);
    hub.send(fix(0));
    hub.send(fix(1));
    const moved = hub.move('T1', 'arrived_pickup'), asked = hub.getDriver('D1');
    await world.socket.end(1006);
    await world.again(greeting);
    await world.socket.end(1006);
    const rejected = assert.rejects(moved, { code: 'forbidden', retry: 'never' });
    const socket = await world.again({ ...greeting, id: 'D2' });
    await rejected;
    await written();
    assert.deepEqual(sentBy(socket), [['query', 1]], 'a question is nobody\'s');
    await socket.say('result', { replyTo: socket.last('query').messageId, driverId: 'D1' });
    assert.equal((await asked).driverId, 'D1');
    assert.deepEqual([hub.backlog, stored().size], [{ messages: 0, dropped: 2 }, 0]);
    assert.deepEqual(world.errors.map(({ message }) => message), ["2 messages are not driver D2's to send"]);
    hub.send(fix(2));
    await written();
    assert.deepEqual([...stored().values()].map(({ owner }) => owner), queue ? ['driver D2'] : []);
  });
}

// A database that others hold, or take away.

test('an app that deletes the database is not held up, and what comes later is kept in a new one', async () => {
  await leaveBehind();
  const world = newPage(), { hub } = world;
  await world.live(greeting);
  await written();
  let isGone = false;
  indexedDB.deleteDatabase('fixes').onsuccess = () => { isGone = true; };
  await written();
  assert.ok(isGone);
  assert.equal(hub.send(fix(60)), 'queued');
  await written();
  assert.deepEqual([...stored().values()].map(({ payload }) => payload), [fix(60)]);
  assert.deepEqual(world.errors, []);
});

test('an IndexedDB that does not answer costs attempts, and its answer counts once', async () => {
  await leaveBehind();
  const other = indexedDB.open('fixes');   // another tab, which does not let go of it
  await written();
  let isGone = false;
  indexedDB.deleteDatabase('fixes').onsuccess = () => { isGone = true; };
  const world = newPage(), { hub, clock } = world;
  hub.send(fix(60));
  hub.connect();
  await clock.pass(9_999);
  assert.equal(hub.state.is, 'connecting');
  await clock.pass(1);
  assert.deepEqual([hub.state.is, hub.state.reason], ['waiting', { cause: 'timeout', message: 'no answer' }]);
  assert.equal(hub.state.retryAt - clock.now(), 1150);
  await clock.pass(1150 + 10_000);
  assert.equal(hub.state.is, 'waiting');
  hub.send(fix(61));
  await clock.pass(2300);
  assert.deepEqual([hub.state.is, isGone, world.sockets.length], ['connecting', false, 0]);
  other.result.close();
  await written();
  assert.ok(isGone);
  const socket = await world.socket.greet(greeting);
  await written();
  assert.deepEqual(sentBy(socket), [['location_batch', 2]]);
  assert.equal(stored().size, 2);
  await clock.pass(10_000);
  assert.deepEqual([hub.state.is, world.errors], ['live', []]);
});

test('a token may take longer than IndexedDB may', async () => {
  globalThis.indexedDB = new IndexedDatabases();
  let give;
  const world = newPage({ dev: undefined, token: () => new Promise(resolve => { give = resolve; }) });
  world.hub.connect();
  await written();
  await world.clock.pass(29_000);
  assert.equal(world.hub.state.is, 'connecting');
  give('a.e30.x');
  await written();
  await world.socket.greet(greeting);
  assert.equal(world.hub.state.is, 'live');
});
