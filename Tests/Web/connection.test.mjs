// A connection over its breaks: states, codes, back-off, heartbeat, a page that sleeps, the end. Time is moved by hand.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Hub } from '../../Sources/Pages/web/hub.js';
import { byHand, chance, Clock, settled } from './support/by-hand.mjs';

const refused = readFileSync(new URL('../../protocol/refused/client.ndjson', import.meta.url),
  'utf8').trim().split('\n')
  .map(line => JSON.parse(line));
const noFetch = () => Promise.reject(new TypeError('no network'));
globalThis.fetch = noFetch;

test('what is no WebSocket URL, and an environment without WebSockets, is reported at once', () => {
  assert.throws(() => new Hub('https://hub.example/v1/ws', { WebSocket: Object }), /no WebSocket URL/);
  assert.throws(() => new Hub('hub.example', { WebSocket: Object }), TypeError);
  assert.throws(() => new Hub('wss://hub.example/v1/ws', { WebSocket: undefined }), /give one/);
});

test('idle, connecting, live, waiting, connecting, live, closed', async () => {
  const world = byHand();
  assert.equal(world.hub.state.is, 'idle');
  const socket = await world.live();
  await socket.end(1006);
  const { since, retryAt, reason } = world.hub.state;
  assert.deepEqual([retryAt - since, reason.cause], [2500, 'lost'], 'half of 5 s: what cut one has cut others');
  await (await world.again()).end(1000, 'normal');
  assert.deepEqual(world.states.map(({ is }) => is), ['connecting', 'live', 'waiting', 'connecting', 'live', 'closed']);
  assert.deepEqual(world.hub.state.reason, { cause: 'closed', code: 1000, message: 'normal' });
  assert.equal(world.hub.connect(), world.hub);
  assert.equal(world.hub.state.is, 'connecting', '`connect` opens again');
});

/** What a client does after something, in the words of protocol/refused/README.md. */
function outcome({ is, since, retryAt }) {
  if (is === 'closed') return 'never';
  const delay = retryAt - since;
  return delay === 2500 ? 'spread' : delay === 1150 ? 'again' : delay === 69_000 ? 'after 60 s' : delay;
}

for (const { name, close, status, then } of refused.filter(({ close, status }) => close ?? status)) {
  test(`${name}: ${then}`, async () => {
    const world = byHand();
    if (close) await (await world.live()).end(close);
    else {
      world.hub.connect();
      await settled();
      await world.socket.refuse(status);
    }
    assert.equal(outcome(world.hub.state), then);
  });
}

test('a Retry-After of a refused upgrade is the least that it waits, up to an hour', async () => {
  for (const [retryAfter, delay] of [[20, 23_000], [1e9, 4_140_000], [0.1, 1150]]) {
    const world = byHand();
    world.hub.connect();
    await settled();
    await world.socket.refuse(503, retryAfter);
    assert.equal(world.hub.state.retryAt - world.hub.state.since, delay);
  }
});

test('delays double up to 30 s, and begin anew after a connection that stood for 10 s', async () => {
  const world = byHand({ random: () => 0 });
  world.hub.connect();
  const delays = [];
  for (let n = 0; n < 8; n++) {
    await settled();
    await world.socket.end(1006);
    delays.push(world.hub.state.retryAt - world.hub.state.since);
    await world.clock.pass(delays.at(-1));
  }
  assert.deepEqual(delays, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  const delayAfter = async seconds => {
    const socket = await world.live();
    await world.clock.pass(seconds * 1000);
    await socket.end(4408);
    const delay = world.hub.state.retryAt - world.hub.state.since;
    await world.clock.pass(delay);
    return delay;
  };
  assert.equal(await delayAfter(9), 30_000);
  assert.equal(await delayAfter(10), 1000);
});

test('a socket that neither opens nor fails, or a hub that does not greet, has 10 s', async () => {
  const world = byHand();
  world.hub.connect();
  await world.clock.pass(9_999);
  assert.equal(world.hub.state.is, 'connecting');
  await world.clock.pass(1);
  assert.deepEqual([world.hub.state.is, world.hub.state.reason.cause], ['waiting', 'timeout']);
  assert.ok(world.socket.closedWith);
  world.socket.onerror?.({});
  await world.clock.pass(1150);
  assert.equal(world.hub.state.is, 'connecting', 'what that socket says afterwards delays nothing');
});

test('a socket that only says `error`, as in Node 22, has failed', async () => {
  const world = byHand();
  world.hub.connect();
  await settled();
  world.socket.onerror({});
  await world.clock.pass(100);
  assert.deepEqual([world.hub.state.is, world.hub.state.reason.cause], ['waiting', 'lost']);
});

/** When 10,000 clients come again, in ms after their connections ended; `back`: from when on the hub is there. */
async function arrivals(code, back, { live = true } = {}) {
  const worlds = Array.from({ length: 10_000 }, (_, seed) => byHand({ random: chance(seed) })), times = [];
  const begin = worlds[0].clock.now();
  for (const { hub } of worlds) hub.connect();
  await settled();
  if (live) await Promise.all(worlds.map(({ sockets }) => sockets[0].greet()));
  for (const { sockets } of worlds) sockets[0].onclose({ code });
  for (let trying = worlds; trying.length;) {
    for (const { clock } of trying) {
      clock.time = clock.nextTime;
      clock.run();
    }
    await settled();
    const isBack = ({ clock }) => clock.now() - begin >= back;
    times.push(...trying.filter(isBack).map(({ clock }) => clock.now() - begin));
    trying = trying.filter(world => !isBack(world));
    for (const { sockets } of trying) sockets.at(-1).onclose({ code: 1006 });
  }
  assert.equal(times.length, worlds.length);
  return times;
}

/** The most that come within so many ms, wherever they begin, over the mean of the window in which they come. */
function peak(times, ms) {
  const sorted = times.sort((a, b) => a - b), window = sorted.at(-1) - sorted[0];
  let most = 0;
  for (let first = 0, last = 0; last < sorted.length; last++) {
    while (sorted[last] - sorted[first] >= ms) first++;
    most = Math.max(most, last - first + 1);
  }
  return most / sorted.length * window / ms;
}

for (const [what, code] of [['of a hub that goes away', 1001], ['that are cut off without a close code', 1006]]) {
  test(`10,000 clients ${what} come again evenly over 5 s`, async () => {
    const times = await arrivals(code, 0);
    assert.ok(Math.min(...times) < 100 && Math.max(...times) > 4900 && Math.max(...times) <= 5000);
    assert.ok(peak(times, 1000) < 1.5, `the busiest second has ${peak(times, 1000)} times the mean`);
  });
}

test('10,000 clients that do not reach the hub come again evenly over what the protocol lets them draw from',
  async () => {
  const times = await arrivals(1006, 0, { live: false });
  assert.ok(Math.min(...times) >= 1000 && Math.max(...times) <= 1300);
  assert.ok(peak(times, 50) < 1.5, `the busiest 50 ms have ${peak(times, 50)} times the mean`);
});

for (const code of [1001, 1006]) {
  test(`10,000 clients of a hub that is back 6 s after ${code} do not storm it`, async () => {
    const times = await arrivals(code, 6000);
    assert.ok(peak(times, 1000) < 1.5, `the busiest second has ${peak(times, 1000)} times the mean`);
  });
}

test('a hub that falls silent is asked again at a time within 5 s', async () => {
  const world = byHand();
  await world.live({ heartbeatInterval: 10 });
  await world.clock.pass(25_000);
  const { since, retryAt, reason } = world.hub.state;
  assert.deepEqual([retryAt - since, reason.cause], [2500, 'silent']);
});

test('a hub that is silent gets a ping after four fifths of an interval, and is given up after two and a half',
  async () => {
  const world = byHand();
  const socket = await world.live({ heartbeatInterval: 10 });
  await world.clock.pass(5999);
  assert.equal(socket.of('ping').length, 0);
  await world.clock.pass(1);
  assert.equal(socket.of('ping').length, 1, 'the first one at a random time, here three quarters of 8 s');
  await world.clock.pass(18_999);
  assert.equal(world.hub.state.is, 'live');
  await world.clock.pass(1);
  assert.deepEqual([world.hub.state.is, world.hub.state.reason.cause], ['waiting', 'silent']);
});

test('whatever is heard shows that the connection lives', async () => {
  const world = byHand();
  const socket = await world.live({ heartbeatInterval: 10 });
  for (let n = 0; n < 10; n++) {
    await world.clock.pass(20_000);
    await socket.hear('not even a message');
  }
  assert.equal(world.hub.state.is, 'live');
  assert.equal(world.errors.length, 0);
});

test('a page that slept pings first, and believes its socket only for 3 s', async () => {
  const world = byHand();
  const socket = await world.live();
  await world.clock.sleep(3_600_000);
  assert.equal(world.hub.state.is, 'live', 'the silence was its own');
  assert.ok(socket.last('ping').timestamp === world.clock.now());
  await world.clock.pass(2000);
  await socket.say('pong', { replyTo: socket.last('ping').messageId, serverTime: world.clock.now() });
  await world.clock.pass(20_000);
  assert.equal(world.hub.state.is, 'live');
  await world.clock.sleep(3_600_000);
  await world.clock.pass(2999);
  assert.equal(world.hub.state.is, 'live');
  await world.clock.pass(1);
  assert.deepEqual([world.hub.state.is, world.hub.state.reason.cause], ['waiting', 'silent']);
});

/** A browser's page, with its visibility. */
function page() {
  const document = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  const before = globalThis.document;
  globalThis.document = document;
  return {
    show(state) {
      document.visibilityState = state;
      document.dispatchEvent(new Event('visibilitychange'));
    },
    leave() { globalThis.document = before; },
  };
}

test('a tab that is hidden keeps its socket; one that is shown again asks before it believes it', async () => {
  const tab = page(), world = byHand();
  try {
    const socket = await world.live();
    tab.show('hidden');
    assert.equal(socket.sent.length, 0);
    await world.clock.pass(10_000);
    tab.show('visible');
    assert.equal(socket.of('ping').length, 1);
    await world.clock.pass(3000);
    assert.equal(world.hub.state.is, 'waiting');
    const next = await world.again();
    next.readyState = 3;
    await world.hub.close();
    tab.show('visible');
    await world.clock.pass(60_000);
    assert.equal(world.sockets.length, 2, 'a closed hub is not opened by a tab that wakes');
    assert.equal(world.hub.state.is, 'closed');
  } finally {
    tab.leave();
  }
});

test('`close` is for good, in whatever state it comes', async () => {
  for (const prepare of [
    async () => {},
    async world => { world.hub.connect(); },
    async world => { await world.live(); },
    async world => { await (await world.live()).end(1006); },
  ]) {
    const world = byHand();
    await prepare(world);
    const closed = world.hub.close();
    if (world.sockets.length) {
      await settled();
      world.socket.onclose?.({ code: 1000 });
    }
    await world.clock.pass(2000);
    await closed;
    await world.clock.pass(3_600_000);
    assert.equal(world.hub.state.is, 'closed');
    assert.ok(world.sockets.length <= 1);
    assert.equal(world.clock.count, 0, 'no timer is left');
  }
});

for (const when of ['connecting', 'waiting', 'live', 'sampling']) {
  test(`\`close\` by a listener, at ${when}, is for good`, async () => {
    const world = byHand(), { hub } = world, sampling = { interval: 4, minDistance: 10 };
    let asked = 0;
    globalThis.fetch = async () => {
      asked++;
      return { status: 503, headers: new Headers() };
    };
    hub.on('state', ({ is }) => is === when && hub.close());
    hub.on('sampling', () => when === 'sampling' && hub.close());
    hub.connect();
    await settled();
    if (when === 'waiting') await world.socket.end(1006);
    else if (when !== 'connecting') await world.socket.greet({ sampling });
    await world.clock.pass(3_600_000);
    globalThis.fetch = noFetch;
    assert.deepEqual([hub.state.is, hub.state.reason.cause, asked], ['closed', 'us', 0]);
    assert.deepEqual([world.sockets.length, world.clock.count], [when === 'connecting' ? 0 : 1, 0]);
  });
}

test('a hub that does not answer the closing handshake is not waited for longer than 2 s', async () => {
  const world = byHand();
  const socket = await world.live();
  let isOver = false;
  world.hub.close().then(() => { isOver = true; });
  assert.equal(socket.closedWith, 1000);
  await world.clock.pass(1999);
  assert.equal(isOver, false);
  await world.clock.pass(1);
  assert.equal(isOver, true);
});

test('what an earlier socket still says belongs to no newer connection', async () => {
  const world = byHand();
  const first = await world.live();
  await first.end(1006);
  await world.again();
  const data = '{"type":"error","payload":{"code":"internal","message":"x"},"timestamp":1,"messageId":"r1"}';
  first.onmessage?.({ data });
  first.onclose?.({ code: 4409 });
  await settled();
  assert.equal(world.hub.state.is, 'live');
  assert.equal(world.errors.length, 0);
});

test('nothing counts before the hub has greeted', async () => {
  const world = byHand();
  const feed = world.hub.trip('T1');
  world.hub.connect();
  await settled();
  await world.socket.say('unsubscribed', { channel: 'trip:T1', reason: 'revoked' });
  assert.equal(feed.state.is, 'waiting');
  assert.equal(world.hub.state.is, 'connecting');
});

test("the hub's clock is estimated from what came quickest, and forgets what is long ago", async () => {
  const world = byHand();
  const socket = await world.live();
  const say = offset => socket.say('sampling', { interval: 4, minDistance: 10, reason: 'moving' },
    world.clock.now() + offset);
  await say(-400);
  assert.equal(world.hub.now() - world.clock.now(), 0);
  await say(250);
  assert.equal(world.hub.now() - world.clock.now(), 250);
  for (let n = 0; n < 4; n++) {
    await world.clock.pass(20_000);
    await say(-5000);
  }
  assert.equal(world.hub.now() - world.clock.now(), -5000, 'this machine was set forward');
});

test('a clock that is set back delays nothing', async () => {
  const world = byHand();
  const socket = await world.live({ heartbeatInterval: 10 });
  world.clock.set(-3_600_000);
  await socket.say('sampling', { interval: 4, minDistance: 10, reason: 'moving' });
  await world.clock.pass(8000);
  assert.equal(socket.of('ping').length, 1);
});

test('a listener that throws disturbs nobody; `off` and a signal end the listening', async () => {
  const world = byHand(), seen = [], thrown = [], stop = new AbortController(), { queueMicrotask } = globalThis;
  globalThis.queueMicrotask = f => { try { f(); } catch (error) { thrown.push(error.message); } };
  world.hub.on('state', () => { throw new Error('mine'); }, stop);
  const off = world.hub.on('state', ({ is }) => seen.push(is));
  world.hub.connect();
  globalThis.queueMicrotask = queueMicrotask;
  assert.deepEqual(thrown, ['mine'], 'it is thrown by itself');
  stop.abort();
  await world.live();
  off();
  world.hub.on('state', ({ is }) => seen.push(is), stop);
  await world.socket.end(1006);
  assert.deepEqual(seen, ['connecting', 'live'], 'a signal that was aborted before, too');
  let listeners = 0;
  const signal = { addEventListener() { listeners++; }, removeEventListener() { listeners--; } };
  world.hub.on('state', () => {}, { signal })();
  assert.equal(listeners, 0, 'nothing is left at a signal that lives on');
});
