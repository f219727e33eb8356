// Messages against the protocol's own vectors: what is read, what is written, what is passed over.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { BinaryReader, writeBinary } from '../../Sources/Pages/web/hub-binary.js';
import { checked, readJSON } from '../../Sources/Pages/web/hub.js';
import { byHand } from './support/by-hand.mjs';

const lines = file => readFileSync(new URL(`../../protocol/${file}`, import.meta.url), 'utf8').trim().split('\n')
  .map(line => JSON.parse(line));
const examples = lines('examples.ndjson');
const vectors = lines('binary-vectors.ndjson');
const bytes = hex => Uint8Array.from(Buffer.from(hex, 'hex')).buffer;

test('each example of a hub is read as it stands; a time that the client never asks for is passed over', () => {
  const server = examples.filter(({ direction }) => direction === 'server');
  assert.ok(server.length > 30);
  for (const { time, message } of server) {
    const read = () => checked(readJSON(JSON.stringify(message)));
    if (time === 'rfc3339') assert.throws(read, SyntaxError); else assert.deepEqual(read(), message);
  }
});

test('each binary vector of a hub is read as the JSON that means the same', () => {
  const reader = new BinaryReader();
  for (const { hex, message, handle, names } of vectors.filter(({ direction }) => direction === 'server')) {
    const read = reader.read(bytes(hex));
    if (message) assert.deepEqual(checked(read), message, hex);
    else assert.equal(read, undefined);
    if (handle === undefined) continue;
    const { name, number, ...known } = JSON.parse(JSON.stringify(reader.channels.get(handle)));
    assert.deepEqual(known, names, `the names of ${name}`);
  }
});

test('each binary vector of a client is written to the byte', () => {
  let trip;
  for (const { hex, message } of vectors.filter(({ direction }) => direction === 'client')) {
    const { type, payload } = message;
    // JSON has its members as they were spelled; the client's own pings are empty.
    if (type === 'ping' && Object.keys(payload).length) continue;
    const isAsBefore = type === 'location_update' && (parseInt(hex.slice(0, 2), 16) >> 5 & 3) === 1;
    assert.equal(Buffer.from(writeBinary(message, isAsBefore ? payload.tripId : trip)).toString('hex'), hex, type);
    trip = undefined;
  }
});

test('in binary nothing that is cut short is read, and bytes behind the end are passed over', () => {
  const server = vectors.filter(({ direction, message }) => direction === 'server' && message);
  const replies = server.filter(({ hex }) => parseInt(hex.slice(0, 2), 16) < 16);
  for (const { hex, message } of replies) {
    const whole = new Uint8Array(bytes(hex));
    for (let length = 0; length < whole.length; length++) {
      assert.throws(() => new BinaryReader().read(whole.slice(0, length).buffer), `${message.type}, ${length} bytes`);
    }
    assert.deepEqual(new BinaryReader().read(bytes(hex + '0102')), message);
  }
});

test('a second without a delivery has no latency: null in binary is absent, too', () => {
  const vector = vectors.find(({ message }) => message?.type === 'stats');
  const members = Buffer.from('"fixes":0,"p50":null,"drops":{"a":null}').toString('hex');
  const head = vector.hex.slice(0, 2 * 11), length = (members.length / 2).toString(16).padStart(2, '0');
  const { payload } = new BinaryReader().read(bytes(head + length + members));
  assert.deepEqual(payload, { channel: 'stats', timestamp: vector.message.payload.timestamp, fixes: 0, drops: {} });
});

test('what a hub may not say is passed over, and so is what a newer one may', () => {
  for (const { name, text, hex, reads } of lines('refused/client.ndjson').filter(({ reads }) => reads)) {
    let found;
    try {
      const message = text === undefined ? new BinaryReader().read(bytes(hex)) : readJSON(text);
      const isUnknown = !message || checked(message).unknown;
      found = isUnknown ? 'unknown' : message.type === 'driver_location' ? 'position' : message.type;
    } catch {
      found = 'unreadable';
    }
    assert.equal(found, reads, name);
  }
});

test('null, -1 and names in strings do not make a message unreadable', () => {
  const say = payload => checked(readJSON(JSON.stringify({ type: 'notification', payload, timestamp: 1,
    messageId: 'p1' })));
  const payload = { channel: 'fence:f', kind: 'message', title: '"a":"b":', body: 'x:\\":',
    data: { a: [{ b: null }, 'c:'] }, sequence: 1 };
  assert.deepEqual(say(payload).payload, { ...payload, data: { a: [{}, 'c:'] } });
  for (const text of ['null', '3', '[]', '{}', '"x"', '{"type":"pong"', '']) {
    assert.throws(() => checked(readJSON(text)), text);
  }
});

// What the client writes in JSON: by its own methods, against the examples.
const example = (type, check = () => true) => examples.find(({ direction, time, message }) =>
  direction === 'client' && time === 'unix_ms' && message.type === type && check(message.payload)).message.payload;

async function written(act, greeting = { role: 'driver' }) {
  const world = byHand();
  const socket = await world.live(greeting);
  act(world.hub, socket);
  return socket.sent.at(-1).payload;
}

test('fixes, moves, questions and subscriptions are written as the examples have them', async () => {
  const { tripId, ...fix } = example('location_update');
  assert.deepEqual(await written(hub => hub.send(fix, { trip: tripId })), { tripId, ...fix });
  const bare = example('location_update', payload => payload.accuracy === -1);
  const { latitude, longitude, timestamp } = bare;
  assert.deepEqual(await written(hub => hub.send(bare)), { latitude, longitude, timestamp });
  const status = example('driver_status');
  assert.deepEqual(await written(hub => hub.status(status)), status);
  for (const isIt of [payload => payload.status === 'requested', payload => payload.expectedStatus]) {
    const { tripId, status, expectedStatus: expected, ...more } = example('trip_status', isIt);
    const { timestamp, ...payload } = await written(hub => { hub.move(tripId, status, { expected, ...more }); });
    assert.equal(typeof timestamp, 'number');
    assert.deepEqual({ ...payload, timestamp: more.timestamp }, example('trip_status', isIt));
  }
  for (const member of ['route', 'pickup']) {
    const { tripId, ...change } = example('trip_change', payload => payload[member]);
    assert.deepEqual(await written(hub => { hub.change(tripId, change); }), { tripId, ...change });
  }
  const decline = example('offer_decline');
  assert.deepEqual(await written(hub => { hub.offers('driver-12').decline(decline.tripId); }), decline);
  const { offer, ...asked } = example('trip_status', payload => payload.offer);
  const { timestamp: _, ...request } = await written(hub => {
    hub.move(asked.tripId, 'requested', { ...asked, offer });
  });
  assert.deepEqual({ ...request, timestamp: asked.timestamp }, { ...asked, offer });
  for (const kind of ['nearby', 'within', 'within', 'driver', 'trip']) {
    const question = example('query', payload => payload.kind === kind);
    const { kind: _, ...rest } = question;
    const ask = { nearby: 'nearby', within: 'within', driver: 'getDriver', trip: 'getTrip' }[kind];
    assert.deepEqual(await written(hub => { hub[ask](rest.driverId ?? rest.tripId ?? rest); }), question);
  }
  assert.deepEqual(await written(hub => hub.trip('trip-7')), example('subscribe'));
  assert.deepEqual(await written(hub => hub.fleet().close()), example('unsubscribe'));
});

/** A driver that speaks binary. */
async function inBinary() {
  const world = byHand({ codec: 'binary', dev: { role: 'driver', id: 'driver-12' } });
  world.hub.connect();
  for (let n = 0; n < 100 && !world.sockets.length; n++) await world.clock.pass(0);
  const [socket] = world.sockets;
  assert.deepEqual(socket.protocols, ['locationhub.v1.binary', 'locationhub.v1.json']);
  socket.readyState = 1;
  socket.protocol = socket.protocols[0];
  await socket.hear(bytes(vectors.find(({ message }) => message?.type === 'connected').hex));
  assert.equal(world.hub.state.is, 'live');
  return world;
}

test('in binary null is absent, as in JSON', () => {
  const write = (type, payload) => writeBinary({ type, payload, timestamp: 1_763_680_000_000, messageId: '7' });
  const place = { latitude: 48, longitude: 11 }, move = { tripId: 'T1', status: 'accepted', timestamp: 5 };
  for (const [type, payload, ...names] of [
    ['trip_status', move, 'location', 'expectedStatus', 'pickup', 'route', 'offer'],
    ['trip_status', { ...move, offer: { limit: 3 } }, 'driverId'],
    ['trip_change', { tripId: 'T1', dropoff: place }, 'pickup'],
    ['driver_status', { status: 'available' }, 'vehicleType', 'tags'], ['subscribe', { channel: 'trip:T1' }, 'viewId'],
    ['location_update', { ...place, timestamp: 5 }, 'accuracy', 'heading', 'altitude', 'source', 'batteryLevel'],
    ['query', { kind: 'nearby', ...place }, 'radius', 'limit', 'tags'],
  ]) {
    const absent = Object.fromEntries(names.map(name => [name, null]));
    assert.deepEqual(write(type, { ...payload, ...absent }), write(type, payload), type);
  }
});

test('in binary a number that has no form there is refused, and stops nothing', async () => {
  const { hub, socket } = await inBinary();
  for (const limit of [Infinity, -Infinity, NaN]) {
    await assert.rejects(hub.nearby({ latitude: 48, longitude: 11, limit }), { code: 'bad_message', retry: 'never' });
  }
  hub.status('available');
  assert.equal(socket.sent.length, 1);
  assert.equal(hub.backlog.messages, 1);
});

test('a session in binary writes what it says in binary, a fix by its number and the trip "as before"', async () => {
  const world = await inBinary(), { socket } = world;
  assert.deepEqual(world.hub.sampling, { interval: 4, minDistance: 10 });
  const fix = { latitude: 48.1372, longitude: 11.5749, timestamp: world.clock.now() - 4000 };
  world.hub.send(fix, { trip: 'trip-7' });
  world.hub.send({ ...fix, timestamp: fix.timestamp + 8000, latitude: 48.2 }, { trip: 'trip-7' });
  const [first, second] = socket.sent;
  assert.equal(first[0], 0b1100_0000);
  assert.equal(second[0], 0b1010_0000);
  assert.equal(first.length - second.length, 7, 'its id is not sent again');
});
