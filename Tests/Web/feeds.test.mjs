// Feeds: snapshots, events once and in order, resuming, ends, sharing, iterating; and live maps.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Marker } from '../../Sources/Pages/web/hub.js';
import { byHand, position, settled } from './support/by-hand.mjs';

const types = ['snapshot', 'position', 'eta', 'update', 'notice', 'lost', 'ended'];
const update = (sequence, more = {}) => ({
  channel: 'trip:T1', tripId: 'T1', status: 'accepted', driverId: 'D1', timestamp: 1, sequence, ...more,
});
const eta = (after, more = {}) => ({
  channel: 'trip:T1', tripId: 'T1', target: 'pickup', eta: 184, distance: 1420, arrivalTime: 1_763_680_184_500,
  basis: 'direct', after, ...more,
});

/** A hub that is live, with a feed whose events are written down as short words. */
async function following(open = hub => hub.trip('T1'), answer = { sequence: 3 }) {
  const world = byHand(), feed = open(world.hub), seen = [];
  for (const type of types) feed.on(type,
    data => seen.push(`${type} ${data?.sequence ?? data?.timestamp ?? (typeof data === 'string' ? data : '')}`.trim()));
  const socket = await world.live();
  await socket.subscribed(socket.last('subscribe'), answer);
  return Object.assign(world, { feed, seen, take: () => seen.splice(0) });
}

test('a feed is subscribed to, says how things stand, and what happens from then on', async () => {
  const world = byHand(), feed = world.hub.trip('T1');
  assert.equal(feed.state.is, 'waiting');
  let shown;
  feed.on('snapshot', snapshot => { shown = snapshot; });
  const socket = await world.live();
  const { channel, ...bare } = position(0);
  const trip = { tripId: 'T1', status: 'driver_en_route', driverId: 'D1', timestamp: 1 };
  const { channel: _, ...bareEta } = eta(3);
  await socket.subscribed(socket.last('subscribe'), { sequence: 3, snapshot: { trip, position: bare, eta: bareEta } });
  assert.equal(feed.state.is, 'live');
  const now = world.clock.now();
  assert.deepEqual(shown, { trip, position: { ...bare, published: now, received: now }, eta: bareEta });
  assert.equal(feed.position, shown.position);
  await socket.say('trip_update', update(4, { status: 'arrived_pickup' }));
  const later = world.hub.trip('T1');
  later.on('snapshot', snapshot => { shown = snapshot; });
  await settled();
  assert.deepEqual([shown.trip.status, shown.trip.driverId], ['arrived_pickup', 'D1'],
    'a later feed is shown how things stand');
  await socket.say('driver_location', position(5, { after: 4 }), now - 200);
  assert.deepEqual([feed.position.published, feed.position.received], [now - 200, now]);
});

test('events come once and in order: what is doubled is dropped, what comes too early comes again', async () => {
  const world = await following(), { socket } = world;
  for (const sequence of [4, 4, 3, 5]) await socket.say('trip_update', update(sequence));
  assert.deepEqual(world.take(), ['snapshot', 'update 4', 'update 5']);
  await socket.say('trip_update', update(7));
  await socket.say('notification', { channel: 'trip:T1', kind: 'message', title: 'a', body: 'b', sequence: 8 });
  assert.deepEqual(world.take(), []);
  await world.clock.pass(1000);
  assert.deepEqual(socket.last('subscribe').payload, { channel: 'trip:T1', since: 5, epoch: 'e1' });
  await socket.subscribed(socket.last('subscribe'), { recovered: true, sequence: 8 });
  for (const sequence of [6, 7]) await socket.say('trip_update', update(sequence));
  await socket.say('notification', { channel: 'trip:T1', kind: 'message', title: 'a', body: 'b', sequence: 8 });
  assert.deepEqual(world.take(), ['update 6', 'update 7', 'notice 8']);
  assert.equal(socket.of('subscribe').length, 2);
});

test('a driver hears what it is offered and what of it holds no more, once and in order, and answers', async () => {
  const world = await following(hub => hub.offers('D1')), { socket, feed } = world, received = [];
  for (const type of ['offer', 'withdrawn']) feed.on(type, event => received.push([type, event.tripId, event.reason]));
  const place = { latitude: 48, longitude: 11 };
  const offer = (tripId, sequence) => socket.say('offer',
    { channel: 'driver:D1', tripId, pickup: place, distance: 850, eta: 138, expiresAt: 9, sequence });
  for (const sequence of [4, 4]) await offer('T1', sequence);
  await socket.say('offer_withdrawn', { channel: 'driver:D1', tripId: 'T1', reason: 'taken', sequence: 5 });
  await socket.say('offer_withdrawn', { channel: 'driver:D1', tripId: 'T1', reason: 'new_word', sequence: 6 });
  await offer('T2', 7);
  assert.deepEqual(received, [['offer', 'T1', undefined], ['withdrawn', 'T1', 'taken'],
    ['withdrawn', 'T1', 'new_word'], ['offer', 'T2', undefined]]);
  feed.decline('T2');
  feed.accept('T3');
  await settled();
  assert.deepEqual(socket.last('offer_decline').payload, { tripId: 'T2' });
  assert.equal(socket.last('trip_status').payload.status, 'accepted');
});

test('who waits for offers is sent events alone, until positions are wanted as well', async () => {
  const { socket, hub } = await following(hub => hub.offers('D1')), asked = () => socket.last('subscribe').payload;
  assert.equal(asked().eventsOnly, true);
  hub.offers('D1');
  assert.equal(socket.of('subscribe').length, 1);
  hub.driver('D1');
  await settled();
  assert.equal(socket.of('subscribe').length, 2);
  assert.equal(asked().eventsOnly, undefined);
  hub.offers('D1');
  await settled();
  assert.equal(socket.of('subscribe').length, 2, 'positions go on');
});

test('a gap that a state shows by `after` is asked for, at most once a second', async () => {
  const world = await following(), { socket } = world;
  for (let n = 0; n < 5; n++) {
    await socket.say('driver_location', position(n, { after: 5 }));
    await socket.say('eta_update', eta(5));
  }
  assert.equal(socket.of('subscribe').length, 1);
  await world.clock.pass(1000);
  await socket.say('driver_location', position(9, { after: 5 }));
  await world.clock.pass(5000);
  assert.equal(socket.of('subscribe').length, 2, 'one is under way');
  assert.equal(world.take().filter(event => event.startsWith('position')).length, 6, 'the state itself is shown');
});

test('an event of a newer hub is passed over, and leaves no gap', async () => {
  const world = await following(), { socket } = world;
  await socket.say('notification', { channel: 'trip:T1', kind: 'eclipse', title: 'a', body: 'b', sequence: 4 });
  await socket.say('trip_update', update(5));
  await socket.say('trip_reroute', { channel: 'trip:T1', sequence: 6 });
  await socket.say('trip_update', update(7));
  await world.clock.pass(5000);
  assert.deepEqual(world.take(), ['snapshot', 'update 5', 'update 7']);
  assert.equal(socket.of('subscribe').length, 1);
});

test('what does not come again where all is recovered was passed over, as in binary, and stalls nothing', async () => {
  const world = await following(), { socket } = world;
  await socket.say('trip_update', update(5));
  await world.clock.pass(1000);
  await socket.subscribed(socket.last('subscribe'), { recovered: true, sequence: 5 });
  await socket.say('driver_location', position(1, { after: 5 }));
  for (const sequence of [5, 6]) await socket.say('trip_update', update(sequence));
  await world.clock.pass(5000);
  assert.equal(socket.of('subscribe').length, 2);
  assert.deepEqual(world.take(), ['snapshot', 'position 1763680001000', 'update 5', 'update 6']);
  await socket.say('trip_update', update(8));
  await world.clock.pass(1000);
  assert.deepEqual(socket.last('subscribe').payload, { channel: 'trip:T1', since: 6, epoch: 'e1' }, 'a gap is one');
});

test('after a break it resumes where it was: nothing is missed, nothing comes twice', async () => {
  const world = await following();
  await world.socket.say('trip_update', update(4));
  await world.socket.end(1006);
  const socket = await world.again();
  assert.deepEqual(socket.last('subscribe').payload, { channel: 'trip:T1', since: 4, epoch: 'e1' });
  await socket.subscribed(socket.last('subscribe'), { recovered: true, sequence: 6 });
  for (const sequence of [5, 6]) await socket.say('trip_update', update(sequence));
  assert.deepEqual(world.take(), ['snapshot', 'update 4', 'update 5', 'update 6']);
});

test('where a channel continues in another epoch and all is recovered, nothing is lost, then and later', async () => {
  const world = await following();
  await world.socket.say('trip_update', update(4));
  await world.socket.end(1006);
  const socket = await world.again();
  await socket.subscribed(socket.last('subscribe'), { recovered: true, epoch: 'e2', sequence: 6 });
  for (const sequence of [5, 6]) await socket.say('trip_update', update(sequence));
  assert.deepEqual(world.take(), ['snapshot', 'update 4', 'update 5', 'update 6']);
  await socket.end(1006);
  assert.deepEqual((await world.again()).last('subscribe').payload, { channel: 'trip:T1', since: 6, epoch: 'e2' });
});

test('what could not be recovered is reported: `lost`, then the present state', async () => {
  const world = await following();
  await world.socket.end(1006);
  const socket = await world.again();
  await socket.subscribed(socket.last('subscribe'), { epoch: 'e2', sequence: 90 });
  await socket.say('trip_update', update(91));
  assert.deepEqual(world.take(), ['snapshot', 'lost', 'snapshot', 'update 91']);
});

for (const reason of ['trip_ended', 'grant_ended', 'revoked']) {
  test(`a feed that the hub ends says why: ${reason}`, async () => {
    const world = await following();
    await world.socket.say('unsubscribed', { channel: 'trip:T1', reason });
    assert.deepEqual(world.take(), ['snapshot', `ended ${reason}`]);
    assert.deepEqual(world.feed.state, { is: 'ended', reason });
    await world.socket.end(1006);
    assert.equal((await world.again()).of('subscribe').length, 0);
  });
}

test('in spite of words of a newer hub a feed ends, a subscription is answered, and advice counts', async () => {
  const world = byHand(), { hub } = world, ends = [], shown = [], advised = [];
  hub.trip('T1').on('ended', reason => ends.push(reason));
  hub.trip('T2').on('snapshot', ({ trip }) => shown.push(trip.status));
  hub.on('sampling', ({ interval }) => advised.push(interval));
  const socket = await world.live(), [, second] = socket.of('subscribe');
  await socket.say('unsubscribed', { channel: 'trip:T1', reason: 'driver_left' });
  await socket.subscribed(second, { snapshot: { trip: { tripId: 'T2', status: 'teleported', timestamp: 1 } } });
  await socket.say('sampling', { interval: 7, minDistance: 3, reason: 'parked' });
  assert.deepEqual([ends, shown, advised, hub.sampling.interval], [['driver_left'], ['teleported'], [7], 7]);
});

test('a subscription that is refused ends its feed; one that may come later is asked for again', async () => {
  const world = byHand(), feed = world.hub.trip('T1');
  const socket = await world.live();
  const refuse = (code, more) => socket.say('error', { code, message: 'no', replyTo: socket.last('subscribe').messageId,
    ...more });
  await refuse('storage_full', { retryAfter: 2.5 });
  await world.clock.pass(2499);
  assert.equal(socket.of('subscribe').length, 1);
  await world.clock.pass(1);
  assert.equal(socket.of('subscribe').length, 2);
  await refuse('internal');
  await world.clock.pass(1000);
  await refuse('internal');
  assert.deepEqual(feed.state, { is: 'ended', reason: 'internal' }, 'once');
  const other = world.hub.trip('T2');
  await refuse('forbidden');
  assert.deepEqual(other.state, { is: 'ended', reason: 'forbidden' });
  assert.deepEqual(world.errors.map(({ code }) => code), ['internal', 'forbidden']);
});

test('feeds of one channel share its subscription, which ends with the last of them', async () => {
  const world = await following(), seen = [];
  await world.socket.say('driver_location', position(1));
  const second = world.hub.trip('T1');
  second.on('snapshot', ({ position }) => seen.push(position.timestamp));
  second.on('position', ({ timestamp }) => seen.push(timestamp));
  await settled();
  await world.socket.say('driver_location', position(2));
  assert.deepEqual(seen, [position(1).timestamp, position(2).timestamp]);
  world.feed.close();
  await world.socket.say('driver_location', position(3));
  assert.equal(seen.length, 3);
  assert.equal(world.socket.of('unsubscribe').length, 0);
  second.close();
  second.close();
  assert.deepEqual(world.socket.of('unsubscribe').map(({ payload }) => payload), [{ channel: 'trip:T1' }]);
  assert.deepEqual(world.take().slice(-1), ['ended asked']);
  world.hub.trip('T1');
  assert.deepEqual(world.socket.last('subscribe').payload, { channel: 'trip:T1' }, 'a new one begins anew');
});

test('a feed that is closed and opened again at once begins with the answer to its own question', async () => {
  const world = byHand(), seen = [];
  const socket = await world.live();
  world.hub.trip('T1').close();
  const again = world.hub.trip('T1');
  for (const type of types) again.on(type, () => seen.push(type));
  const [first, second] = socket.of('subscribe');
  await socket.subscribed(first, { sequence: 3 });
  assert.deepEqual([seen, again.state.is], [[], 'waiting']);
  await socket.subscribed(second, { sequence: 3 });
  assert.deepEqual([seen, again.state.is], [['snapshot'], 'live'], 'nothing is lost');
});

test("after a break the hub's figures of ten minutes come again, though nothing is lost", async () => {
  const world = byHand(), stats = world.hub.stats(), seen = [];
  stats.on('snapshot', ({ history }) => seen.push(history.length));
  stats.on('lost', () => seen.push('lost'));
  const second = { channel: 'stats', timestamp: 1, fixes: 7, deliveries: 2 };
  let socket = await world.live();
  await socket.subscribed(socket.last('subscribe'), { history: [second] });
  await socket.end(1006);
  socket = await world.again();
  await socket.subscribed(socket.last('subscribe'), { recovered: true, history: [second, second, second] });
  assert.deepEqual(seen, [1, 3]);
});

test('a loop over a feed gets events in order, of positions the newest, and ends with the feed', async () => {
  const world = await following(), events = [];
  const reading = (async () => {
    for await (const { type, data } of world.feed) {
      events.push(`${type} ${data?.sequence ?? data?.timestamp ?? data}`);
      await settled();
      await settled();
    }
  })();
  await settled();
  const { socket } = world;
  for (let n = 1; n <= 3; n++) socket.onmessage({ data: JSON.stringify({ type: 'driver_location', payload: position(n),
    timestamp: 1, messageId: 'p1' }) });
  for (let n = 4; n <= 6; n++) socket.onmessage({ data: JSON.stringify({ type: 'trip_update', payload: update(n),
    timestamp: 1, messageId: 'p1' }) });
  await socket.say('unsubscribed', { channel: 'trip:T1', reason: 'trip_ended' });
  await reading;
  assert.deepEqual(events, [`position ${position(3).timestamp}`, 'update 4', 'update 5', 'update 6',
    'ended trip_ended']);
});

test('a loop that is not read keeps at most 1,000 events, and says that some are lost', async () => {
  const world = await following();
  const reader = world.feed[Symbol.asyncIterator]();
  const first = reader.next();
  for (let n = 4; n < 3004; n++) world.socket.onmessage({ data: JSON.stringify({ type: 'trip_update',
    payload: update(n), timestamp: 1, messageId: 'p1' }) });
  const kinds = [(await first).value];
  for (let n = 0; n < 999; n++) kinds.push((await reader.next()).value);
  assert.equal(kinds[0].type, 'lost');
  assert.equal(kinds.at(-1).data.sequence, 3003);
  await reader.return();
});

test('a loop that is not read keeps the newest position of each driver, however many there are', async () => {
  const world = await following(hub => hub.fleet(), { sequence: 0 });
  const reader = world.feed[Symbol.asyncIterator](), first = reader.next();
  for (let n = 0; n < 4000; n++) world.socket.onmessage({ data: JSON.stringify({ type: 'driver_location',
    payload: position(n, { channel: 'fleet', driverId: `D${n % 2000}`, after: 0 }), timestamp: 1, messageId: 'p1' }) });
  const got = [(await first).value];
  for (let n = 1; n < 2000; n++) got.push((await reader.next()).value);
  assert.deepEqual(got.map(({ type, data }) => [type, data.timestamp]),
    Array.from({ length: 2000 }, (_, n) => ['position', position(2000 + n).timestamp]));
});

test("the fleet's positions are kept apart by driver", async () => {
  const world = await following(hub => hub.fleet(), { sequence: 0 });
  const reader = world.feed[Symbol.asyncIterator]();
  const first = reader.next();
  for (const driverId of ['A', 'B', 'C', 'B']) await world.socket.say('driver_location',
    position(1, { channel: 'fleet', driverId, after: 0 }));
  assert.equal((await first).value.data.driverId, 'A');
  assert.deepEqual([(await reader.next()).value.data.driverId, (await reader.next()).value.data.driverId], ['C', 'B']);
});

test('a driver and a fence are followed by their channels', async () => {
  const world = byHand();
  world.hub.driver('D1');
  world.hub.fence('airport');
  const socket = await world.live();
  assert.deepEqual(socket.of('subscribe').map(({ payload }) => payload.channel), ['driver:D1', 'fence:airport']);
});

// Live maps.

const cell = (name, drivers, { left = [], full = false, more } = {}) => ({
  channel: `area:${name}`, cell: name, tick: 1, full, left, ...(more && { more }),
  drivers: drivers.map(driverId => ({ driverId, latitude: 48, longitude: 11, status: 'available', timestamp: 1 })),
});
/** The part of the client for maps is there: from then on it takes no time. */
const loaded = () => import('../../Sources/Pages/web/hub-areas.js').then(settled);
async function watching() {
  const world = byHand();
  const view = world.hub.view({ latitude: 48.1371, longitude: 11.5754, radius: 500 });
  await loaded();
  const socket = await world.live();
  const { viewId, channel } = socket.last('subscribe').payload;
  assert.equal(channel, 'nearby:48.1371000,11.5754000,500');
  await socket.subscribed(socket.last('subscribe'), { cells: ['a1', 'a2'] });
  return { ...world, view, socket, viewId, has: () => [...view.drivers.keys()].sort().join('') };
}

test('a map takes in what cells say by the rules of areas.md', async () => {
  const { socket, view, has } = await watching();
  await socket.say('area_update', cell('a1', ['A', 'B', 'C'], { full: true, more: 7 }));
  await socket.say('area_update', cell('a2', ['D'], { full: true, more: 5 }));
  assert.equal(has() + view.more, 'ABCD12');
  await socket.say('area_update', cell('a2', ['A']));
  await socket.say('area_update', cell('a1', [], { left: ['A', 'B'] }));
  assert.equal(has() + view.more, 'ACD0', 'A is in the other cell now; each update says how many more');
  await socket.say('area_update', cell('a2', ['E'], { full: true }));
  assert.equal(has(), 'CE', 'who is missing from a whole cell is gone');
  await socket.say('area_update', cell('b1', ['X'], { full: true }));
  assert.equal(has(), 'CE', 'another cell is not shown');
  assert.deepEqual([view.drivers.get('C').cell, view.drivers.get('C').published > 0], ['a1', true]);
});

test("a driver's age on a map is no phone's to say: while fixes come, the least that they take is its clock's error",
  async () => {
  const { socket, view, clock } = await watching();
  let tick = 0;
  const say = (driverId, timestamp, more) => socket.say('area_update', { channel: 'area:a1', cell: 'a1', tick: ++tick,
    full: false, left: [], drivers: [{ driverId, latitude: 48, longitude: 11, status: 'available', timestamp }],
    ...more });
  const age = (id, driver = view.drivers.get(id)) => driver.age + (clock.now() - driver.published) / 1000;
  const parked = clock.now() - 70_000;
  await say('parked', parked, { full: true });
  assert.equal(age('parked'), 70, 'at first there is nothing but its clock');
  await say('beside', parked, { tick });
  assert.equal(age('beside'), 70, 'nor with the other drivers of a cell that is said in several messages');
  for (const [id, off] of [['right', 0], ['slow', -300_000], ['fast', 300_000]]) {
    for (const delay of [900, 400, 700]) {
      await clock.pass(1000);
      await say(id, clock.now() + off - delay);
    }
    const least = off ? 0.4 : 0;   // a little late is no clock that is off
    assert.ok(Math.abs(age(id) - (0.7 - least)) < 1e-6, `${id}: ${age(id)}`);
    const { timestamp } = view.drivers.get(id);
    await clock.pass(60_000);
    assert.ok(Math.abs(age(id) - (60.7 - least)) < 1e-6, `${id}: ${age(id)}, silent for a minute`);
    await say(id, timestamp);
    assert.ok(Math.abs(age(id) - (60.7 - least)) < 1e-6, `${id}: ${age(id)}, when its status changes`);
    const marker = new Marker();
    marker.push(view.drivers.get(id));
    assert.ok(Math.abs(marker.at(clock.now()).age - age(id)) < 1e-6);
  }
  await clock.pass(1000);
  await say('slow', clock.now() - 500);
  assert.equal(age('slow'), 0.5, 'a clock that was set right');
  for (const delay of [900, 400]) {
    await clock.pass(1000);
    await say('ahead', clock.now() + 30_000 - delay);
  }
  await clock.pass(40_000);
  await say('ahead', clock.now() - 5000);
  assert.equal(age('ahead'), 34.6, 'after 5 s it may be a late one by the clock of before');
  await say('ahead', clock.now() - 500);
  assert.equal(age('ahead'), 0.5, 'a clock that was ahead and was set right');
  await clock.pass(60_000);
  await say('ahead', clock.now() - 40_000);
  assert.equal(age('ahead'), 40, 'is right from then on');
  await say('parked', clock.now() - 20_000);
  assert.equal(age('parked'), 0, 'its clock is 20 s slow, as its next fix shows');
});

test('a view moves under its name; cells that it keeps go on as they are, others are dropped', async () => {
  const { socket, view, viewId, has, clock } = await watching();
  await socket.say('area_update', cell('a1', ['A'], { full: true, more: 3 }));
  await socket.say('area_update', cell('a2', ['B'], { full: true }));
  view.move({ latitude: 48.2, longitude: 11.5, radius: 500 });
  view.move('u281z7');
  await clock.pass(0);
  assert.deepEqual(socket.of('subscribe').slice(1).map(({ payload }) => payload),
    [{ channel: 'nearby:48.2000000,11.5000000,500', viewId }, { channel: 'area:u281z7', viewId }]);
  const [, first, second] = socket.of('subscribe');
  await socket.subscribed(first, { cells: ['a2', 'a3'] });
  await socket.say('area_update', cell('a3', ['C'], { full: true }));
  await socket.subscribed(second, { cells: ['a3', 'a4'] });
  assert.equal(has() + view.more, 'C0');
  view.close();
  assert.deepEqual(socket.last('unsubscribe').payload, { viewId });
});

test('a view that is closed before it was asked for, on this connection, is not taken back there', async () => {
  const { socket, hub, view, again, errors } = await watching();
  hub.view('u281z7').close();
  await settled();
  assert.deepEqual([socket.of('subscribe').length, socket.of('unsubscribe').length], [1, 0]);
  hub.on('state', ({ is }) => is === 'live' && view.close());
  await socket.end(1006);
  const next = await again();
  assert.deepEqual([next.sent.length, errors.length], [0, 0]);
});

test('the hub refuses a circle without a radius, which ends its view', async () => {
  const { socket, view } = await watching(), ends = [];
  view.on('ended', reason => ends.push(reason));
  view.move({ latitude: 48, longitude: 11, radius: 0 });
  await settled();
  const { payload, messageId } = socket.last('subscribe');
  assert.equal(payload.channel, 'nearby:48.0000000,11.0000000,0');
  await socket.say('error', { code: 'unknown_channel', message: 'no', replyTo: messageId });
  assert.deepEqual(ends, ['unknown_channel']);
  await settled();
  assert.deepEqual(socket.of('unsubscribe').map(({ payload: { viewId } }) => viewId), [payload.viewId],
    'what the hub still has of it');
});

test('after a break a view is asked for anew, and shows what is there then', async () => {
  const { socket, has, ...world } = await watching();
  await socket.say('area_update', cell('a1', ['A', 'B'], { full: true }));
  await socket.say('area_update', cell('a2', ['C'], { full: true }));
  await socket.end(1006);
  const next = await world.again();
  assert.equal(next.last('subscribe').payload.since, undefined);
  await next.subscribed(next.last('subscribe'), { cells: ['a1', 'a3'] });
  assert.equal(has(), 'AB', 'until the cell says who is there');
  await next.say('area_update', cell('a1', ['B'], { full: true }));
  assert.equal(has(), 'B');
});

test('a second view of the same cells shows what the first one knows: the hub sends them once', async () => {
  const { socket, hub, has } = await watching();
  await socket.say('area_update', cell('a1', ['A'], { full: true }));
  const second = hub.view('a1');
  await loaded();
  await socket.subscribed(socket.last('subscribe'), { cells: ['a1'] });
  assert.deepEqual([...second.drivers.keys()], ['A']);
  await socket.say('area_update', cell('a1', ['B'], { left: ['A'] }));
  assert.deepEqual([[...second.drivers.keys()], has()], [['B'], 'B']);
});

test('boxes and counts: what is asked for, and what a page keeps of what comes', async () => {
  const world = byHand({ dev: { role: 'ops', id: 'o' } });
  const box = { west: 11.5, south: 48.1, east: 11.6, north: 48.2 };
  const view = world.hub.view(box, { precision: 6 }), counts = world.hub.counts(box);
  await loaded();
  const socket = await world.live({ role: 'ops' });
  const [first, second] = socket.of('subscribe');
  const name = '11.5000000,48.1000000,11.6000000,48.2000000';
  assert.deepEqual([first, second].map(({ payload }) => [payload.channel, payload.precision]),
    [[`box:${name}`, 6], [`counts:${name}`, undefined]]);
  await socket.subscribed(first, { cells: ['u281z7'] });
  await socket.say('area_update', cell('u281z7', ['A'], { full: true }));
  assert.equal(view.drivers.size, 1);
  view.move(box, { precision: 4 });
  await settled();
  assert.equal(socket.last('subscribe').payload.precision, 4);
  view.move(box);
  await settled();
  assert.equal(socket.last('subscribe').payload.precision, 6, 'that of the beginning');

  await socket.subscribed(second, { blocks: ['u281', 'u283'] });
  const say = (block, full, ...cells) => socket.say('counts_update', {
    channel: `counts:${block}/6`, tick: 1, full, cells: cells.map(([cell, available]) => ({ cell, available })),
  });
  await say('u281', true, ['u281z7', 3], ['u281zd', 1]);
  await say('u283', true, ['u283aa', 9]);
  await say('u2aa', true, ['u2aaaa', 5]);
  await say('u281', false, ['u281z7', 0], ['u281zz', 2]);
  const sum = () => [...counts.cells.values()].reduce((all, { available }) => all + available, 0);
  assert.deepEqual([sum(), counts.cells.size], [12, 4]);
  await say('u281', true, ['u281zd', 2]);
  assert.deepEqual([sum(), counts.cells.size], [11, 2], 'what a whole block does not name is empty');
  counts.move({ ...box, west: 11.55 });
  await world.clock.pass(0);
  await socket.subscribed(socket.last('subscribe'), { blocks: ['u283'] });
  assert.deepEqual([...counts.cells.keys()], ['u283aa']);

  // Of a block that the session has already the hub sends only what changes; cells of another size are not in it.
  const wide = world.hub.counts(box), narrow = world.hub.counts(box);
  await world.clock.pass(0);
  const [third, fourth] = socket.of('subscribe').slice(-2);
  await socket.subscribed(third, { blocks: ['u283'] });
  await socket.subscribed(fourth, { blocks: ['u283a'] });
  assert.deepEqual([[...wide.cells.keys()], narrow.cells.size], [['u283aa'], 0]);
});

test('a driver with its raw fixes, all trips, and the figures of the hub', async () => {
  const world = byHand({ dev: { role: 'ops', id: 'o' } });
  const driver = world.hub.driver('D1', { raw: true }), trips = world.hub.trips(), stats = world.hub.stats(), seen = [];
  driver.on('position', ({ driverId }) => seen.push(['position', driverId]));
  driver.on('raw', ({ verdict }) => seen.push(['raw', verdict]));
  trips.on('update', ({ status }) => seen.push(['trip', status]));
  stats.on('snapshot', ({ history }) => seen.push(['history', history.length]));
  stats.on('stats', ({ fixes }) => seen.push(['stats', fixes]));
  const socket = await world.live({ role: 'ops' });
  assert.deepEqual(socket.of('subscribe').map(({ payload }) => payload.channel),
    ['driver:D1', 'raw:D1', 'trips', 'stats']);
  const second = { channel: 'stats', timestamp: 1, fixes: 7, deliveries: 2 };
  for (const message of socket.of('subscribe')) {
    await socket.subscribed(message, message.payload.channel === 'stats' ? { history: [second, second] } : {});
  }
  await socket.say('driver_location', position(0, { channel: 'driver:D1' }));
  await socket.say('raw_fix', { channel: 'raw:D1', driverId: 'D1', latitude: 48, longitude: 11, timestamp: 1,
    verdict: 'refused', reason: 'implausible_location' });
  await socket.say('trip_update', { ...update(1), channel: 'trips' });
  await socket.say('stats', second);
  assert.deepEqual(seen, [['history', 2], ['position', 'D1'], ['raw', 'refused'], ['trip', 'accepted'], ['stats', 7]]);
  driver.close();
  assert.deepEqual(socket.of('unsubscribe').map(({ payload }) => payload.channel), ['driver:D1', 'raw:D1']);
});
