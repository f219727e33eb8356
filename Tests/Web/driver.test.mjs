// A driver's side: what is sent and how often, what is kept until it has arrived, within the rate; and questions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HubError, Marker } from '../../Sources/Pages/web/hub.js';
import { byHand, settled } from './support/by-hand.mjs';

const sampling = { interval: 4, minDistance: 10 };
const driver = { role: 'driver', id: 'D1' };
const limits = { maxMessageBytes: 262144, maxBatch: 500, rate: 10 };
const unlimited = { ...limits, rate: 0 };

/** A driver's world with fixes: one each second to the north, `speed` metres further. */
async function driving(greeting = { limits: unlimited }, options = {}) {
  const world = byHand({ dev: driver, ...options });
  const begin = world.clock.now();
  const fix = (seconds, speed = 15) => ({ latitude: 48 + seconds * speed / 111_200, longitude: 11,
    timestamp: begin + seconds * 1000 });
  if (greeting) await world.live({ role: 'driver', ...greeting });
  return Object.assign(world, { fix });
}
const times = messages => messages.map(({ payload }) => (payload.timestamp - 1_763_680_000_000) / 1000);

test('fixes go out as often as the hub advises, and one that stands is still heard', async () => {
  const world = await driving({ limits: unlimited, sampling }), { hub, socket, fix } = world;
  const sent = [];
  for (let second = 0; second < 20; second++) sent.push(hub.send(fix(second)));
  assert.deepEqual(times(socket.of('location_update')), [0, 4, 8, 12, 16]);
  assert.deepEqual(sent.slice(0, 3), ['queued', 'leftOut', 'leftOut']);
  for (let second = 20; second < 120; second++) hub.send({ ...fix(16), timestamp: fix(second).timestamp });
  assert.deepEqual(times(socket.of('location_update')).slice(5), [43, 70, 97], '30 s, on time from nine tenths on');
  await socket.say('sampling', { interval: 2, minDistance: 10, reason: 'watched' });
  assert.equal(hub.sampling.interval, 2);
  assert.equal(hub.send(fix(120)), 'queued');
  assert.equal(hub.send(fix(122)), 'queued');
  assert.equal(hub.send(fix(123), { trip: 'T1' }), 'queued', 'the first of a trip goes at once');
  assert.equal(hub.send({ ...fix(0) }, { trip: 'T1' }), 'queued', 'the clock was set back: the hub knows what to do');
});

test('what is no fix is refused at once, and what a phone does not know is left out', async () => {
  const { hub, socket, clock } = await driving();
  for (const bad of [{ latitude: 91, longitude: 0 }, { latitude: 0 }, { latitude: NaN, longitude: 0 },
    { latitude: 0, longitude: 0, timestamp: 'yesterday' }, { latitude: 0, longitude: 0, timestamp: Infinity }]) {
    assert.throws(() => hub.send(bad),
      error => error instanceof HubError && error.code === 'invalid_location' && error.retry === 'never');
  }
  hub.send({ latitude: 1, longitude: 2, accuracy: null, heading: NaN, speed: -1, altitude: -3, source: null,
    headingAccuracy: Infinity, speedAccuracy: -Infinity, batteryLevel: 0 });
  hub.send({ latitude: 1, longitude: 2, altitude: -Infinity, source: 'gps' });
  hub.send({ latitude: 1, longitude: 2, timestamp: new Date(clock.now() + 0.4) });
  assert.deepEqual(socket.of('location_update').map(({ payload }) => payload), [
    { latitude: 1, longitude: 2, timestamp: clock.now(), altitude: -3, batteryLevel: 0 },
    { latitude: 1, longitude: 2, timestamp: clock.now(), source: 'gps' },
    { latitude: 1, longitude: 2, timestamp: clock.now() },
  ]);
});

test('fixes are kept until a pong says that they are stored', async () => {
  const { hub, socket, fix, clock } = await driving();
  for (let second = 0; second < 3; second++) hub.send(fix(second));
  assert.deepEqual(hub.backlog, { messages: 3, dropped: 0 });
  await clock.pass(18_000);
  const ping = socket.last('ping');
  hub.send(fix(3));
  await socket.say('pong', { replyTo: ping.messageId, serverTime: 1, storedThrough: fix(1).timestamp });
  assert.equal(hub.backlog.messages, 2, 'one is newer, one was sent behind the ping');
});

test('64 fixes that are not confirmed ask for a ping before it is due', async () => {
  const { hub, socket, fix } = await driving();
  for (let second = 0; second < 63; second++) hub.send(fix(second));
  assert.equal(socket.of('ping').length, 0);
  hub.send(fix(63));
  hub.send(fix(64));
  assert.equal(socket.of('ping').length, 1);
  await socket.say('pong', { replyTo: socket.last('ping').messageId, serverTime: 1, storedThrough: fix(63).timestamp });
  assert.equal(hub.backlog.messages, 1);
});

test('while the hub stores nothing an early ping goes once a second at most', async () => {
  const { hub, socket, fix, clock } = await driving();
  for (let second = 0; second < 64; second++) hub.send(fix(second));
  const pong = () => socket.say('pong', { replyTo: socket.last('ping').messageId, serverTime: 1 });
  for (let round = 0; round < 20; round++) await pong();
  assert.equal(socket.of('ping').length, 1);
  await clock.pass(1000);
  hub.send(fix(64));
  assert.equal(socket.of('ping').length, 2);
});

test('after a break unstored fixes go out as batches, in order, one for each run of a trip', async () => {
  const world = await driving(), { hub, fix } = world;
  for (let second = 0; second < 4; second++) hub.send(fix(second), { trip: second < 2 ? 'T1' : undefined });
  const moved = hub.move('T1', 'arrived_pickup');
  await world.socket.end(1006);
  hub.send(fix(4));
  const socket = await world.again({ role: 'driver', limits: unlimited });
  const [first, second, move, third] = socket.sent;
  assert.deepEqual([first, second, move, third].map(({ type }) => type),
    ['location_batch', 'location_batch', 'trip_status', 'location_batch']);
  assert.deepEqual([first.payload.tripId, first.payload.locations.length, second.payload.tripId], ['T1', 2, undefined]);
  assert.deepEqual(third.payload.locations, [fix(4)]);
  await socket.end(1006);
  const next = await world.again({ role: 'driver', limits: unlimited });
  assert.deepEqual(next.sent.map(({ messageId }) => messageId), socket.sent.map(({ messageId }) => messageId),
    'with the same ids');
  for (const message of next.of('location_batch')) await next.ack(message,
    { accepted: message.payload.locations.length, duplicates: 0, rejected: [] });
  await next.ack(next.last('trip_status'), { trip: { tripId: 'T1', status: 'arrived_pickup', timestamp: 1 } });
  assert.equal((await moved).status, 'arrived_pickup');
  assert.equal(hub.backlog.messages, 0);
});

test('a batch holds what the hub takes, and names the fixes that it refuses', async () => {
  const world = await driving(null), { hub, fix } = world;
  for (let second = 0; second < 250; second++) hub.send(fix(second));
  const socket = await world.live({ role: 'driver', limits: { ...unlimited, maxBatch: 100 } });
  assert.deepEqual(socket.of('location_batch').map(({ payload }) => payload.locations.length), [100, 100, 50]);
  await socket.ack(socket.of('location_batch')[0], { accepted: 99, duplicates: 0,
    rejected: [{ index: 3, code: 'invalid_location' }] });
  assert.deepEqual(world.errors.map(({ code, message }) => [code, message]),
    [['invalid_location', 'fix 3 of a batch was refused']]);
  assert.equal(hub.backlog.messages, 2);
});

test('a batch of fixes with all that a phone measures is no longer than a message may be', async () => {
  for (const maxMessageBytes of [16_384, 65_536, 131_072]) {
    const world = await driving(null), { hub, fix } = world;
    for (let second = 0; second < 500; second++) {
      hub.send({ ...fix(second), latitude: 48.137154212345678, longitude: -122.41941550000001,
        accuracy: 12.345999717712402, heading: 271.29998779296875, speed: 13.529999732971191,
        altitude: 519.4500122070312, source: 'cellular', headingAccuracy: 10.100000381469727,
        speedAccuracy: 0.3499999940395355, batteryLevel: 0.8299999833106995 });
    }
    const socket = await world.live({ role: 'driver', limits: { ...unlimited, maxMessageBytes } });
    const lengths = socket.of('location_batch').map(batch => JSON.stringify(batch).length);
    assert.ok(lengths.every(length => length <= maxMessageBytes), `${lengths} bytes of ${maxMessageBytes}`);
  }
});

test('fixes that are not stored 15 s after the pong of a later ping go out again in a batch', async () => {
  const { hub, socket, fix, clock } = await driving();
  const pong = async () => { await socket.say('pong', { replyTo: socket.last('ping').messageId, serverTime: 1,
    storedThrough: 1 }); };
  hub.send(fix(0));
  hub.send(fix(1));
  await clock.pass(18_000);
  await pong();
  await clock.pass(24_000);
  hub.send(fix(42));
  await pong();
  const [batch] = socket.of('location_batch');
  assert.deepEqual(batch.payload.locations, [fix(0), fix(1)]);
  assert.deepEqual(hub.backlog.messages, 2, 'what came after is waited for');
});

test('at the limit of the queue the oldest fix gives way; without fixes there is no room', async () => {
  const world = await driving(null), { hub, fix } = world;
  const moves = [];
  for (let n = 0; n < 10; n++) moves.push(hub.move('T1', 'accepted'));
  for (let second = 0; second < 4090; second++) assert.equal(hub.send(fix(second)), 'queued');
  assert.deepEqual(hub.backlog, { messages: 4096, dropped: 4 });
  for (let n = 0; n < 4086; n++) moves.push(hub.move('T1', 'accepted'));
  assert.deepEqual(hub.backlog, { messages: 4096, dropped: 4090 });
  assert.equal(hub.send(fix(9999)), 'full');
  await assert.rejects(hub.move('T1', 'accepted'), { code: 'full' });
});

for (const [code, retry, after] of [['rate_limited', 'later', 'again'], ['storage_full', 'later', 'again'],
  ['shutting_down', 'later', 'again'], ['internal', 'later', 'once'], ['a_code_of_a_newer_hub', 'later', 'once'],
  ['token_expired', 'withNewToken', 'drop'], ...['bad_json', 'bad_message', 'unknown_type', 'too_large', 'unauthorized',
    'forbidden', 'unknown_channel', 'unknown_trip', 'invalid_location', 'implausible_location', 'invalid_transition',
    'not_found'].map(code => [code, 'never', 'drop'])]) {
  test(`a move that is refused with ${code}: ${after}`, async () => {
    const { hub, socket, clock } = await driving();
    let error;
    hub.move('T1', 'accepted').catch(e => { error = e; });
    const refuse = more => socket.say('error', { code, message: 'no', replyTo: socket.last('trip_status').messageId,
      ...more });
    await refuse({ retryAfter: 2.5, details: { status: 'completed' } });
    await clock.pass(2500);
    const [first, second] = socket.of('trip_status');
    if (after === 'drop') assert.equal(second, undefined);
    else {
      assert.equal(second.messageId, first.messageId, 'with the same id');
      await refuse();
      await clock.pass(1000);
      assert.equal(socket.of('trip_status').length, after === 'again' ? 3 : 2);
      if (after === 'again') await socket.ack(first, { trip: { tripId: 'T1', status: 'accepted', timestamp: 1 } });
    }
    if (after === 'again') return assert.equal(error, undefined);
    assert.deepEqual([error.code, error.retry, error instanceof HubError], [code, retry, true]);
    assert.equal(hub.backlog.messages, 0);
  });
}

test('a fix that is refused is reported by `error`, and is not sent again', async () => {
  const world = await driving(), { hub, socket, fix } = world;
  hub.send(fix(0));
  await socket.say('error', { code: 'implausible_location', message: 'no',
    replyTo: socket.last('location_update').messageId });
  assert.deepEqual([world.errors[0].code, hub.backlog.messages], ['implausible_location', 0]);
});

test('what cannot be written is refused, and stops nothing', async () => {
  const { hub, socket } = await driving(), latitude = 48n;
  const refused = assert.rejects(hub.move('T1', 'arrived_pickup', { location: { latitude, longitude: 11 } }),
    { name: 'HubError', code: 'bad_message', retry: 'never' });
  hub.status('available');
  await refused;
  assert.deepEqual(socket.sent.map(({ type }) => type), ['driver_status']);
  assert.equal(hub.backlog.messages, 1);
});

test('while the hub asks for patience with a move all wait, so that the order is kept', async () => {
  const { hub, socket, fix, clock } = await driving();
  hub.move('T1', 'accepted').catch(() => {});
  await socket.say('error', { code: 'storage_full', message: 'no', retryAfter: 5,
    replyTo: socket.last('trip_status').messageId });
  hub.send(fix(1));
  await clock.pass(4999);
  assert.equal(socket.sent.length, 1);
  await clock.pass(1);
  assert.deepEqual(socket.sent.map(({ type }) => type), ['trip_status', 'trip_status', 'location_update']);
});

test('a booking of a rider that the hub cannot take now holds nothing but its own trip', async () => {
  const world = byHand(), { hub } = world, socket = await world.live({ role: 'rider', id: 'R1' });
  const sent = () => socket.of('trip_status').map(({ payload }) => `${payload.tripId} ${payload.status}`);
  for (const status of ['requested', 'cancelled']) hub.move('T1', status).catch(() => {});
  await socket.say('error', { code: 'rate_limited', message: 'no', retryAfter: 60,
    replyTo: socket.last('trip_status').messageId });
  hub.change('T1', { notes: 'x' }).catch(() => {});
  hub.move('T2', 'cancelled').catch(() => {});
  assert.deepEqual(sent(), ['T1 requested', 'T2 cancelled']);
  await world.clock.pass(60_000);
  assert.deepEqual(sent().slice(2), ['T1 requested']);
  assert.equal(socket.of('trip_change').length, 0);
});

test('a status that the hub cannot take now stays before a newer one, over breaks, too; all else goes', async () => {
  const { hub, socket, fix, clock, again } = await driving(), types = () => socket.sent.map(({ type }) => type);
  const said = socket => socket.of('driver_status').map(({ payload }) => payload.status);
  hub.status('available').catch(() => {});
  hub.status('unavailable').catch(() => {});
  await socket.say('error', { code: 'storage_full', message: 'no', retryAfter: 9,
    replyTo: socket.last('driver_status').messageId });
  hub.send(fix(1));
  await clock.pass(8999);
  assert.deepEqual(types(), ['driver_status', 'location_update']);
  await clock.pass(1);
  assert.deepEqual(said(socket), ['available', 'available']);
  await socket.end(1006);
  const next = await again({ role: 'driver', limits: unlimited });
  assert.deepEqual(said(next), ['available']);
  await next.ack(next.last('driver_status'));
  assert.deepEqual(said(next), ['available', 'unavailable']);
});

test('changes of one trip go one by one, beside those of another', async () => {
  const { hub, socket } = await driving(), place = { latitude: 48, longitude: 11 };
  for (const [trip, change] of [['T1', { pickup: place }], ['T1', { dropoff: place }], ['T2', { pickup: place }]]) {
    hub.change(trip, change).catch(() => {});
  }
  const changes = () => socket.of('trip_change').map(({ payload }) => payload);
  assert.deepEqual(changes(), [{ tripId: 'T1', pickup: place }, { tripId: 'T2', pickup: place }]);
  await socket.ack(socket.of('trip_change')[0]);
  assert.deepEqual(changes().slice(2), [{ tripId: 'T1', dropoff: place }]);
});

test('fixes of a driver follow its moves, whatever change of the trip is unanswered', async () => {
  const { hub, socket, fix } = await driving();
  hub.change('T1', { pickup: { latitude: 48, longitude: 11 } }).catch(() => {});
  hub.move('T1', 'trip_started').catch(() => {});
  hub.send(fix(1));
  assert.deepEqual(socket.sent.map(({ type }) => type), ['trip_change', 'trip_status', 'location_update']);
});

test('a rider cancels while a change of the trip is put off', async () => {
  const world = byHand(), { hub } = world, socket = await world.live({ role: 'rider', id: 'R1' });
  hub.change('T1', { pickup: { latitude: 48, longitude: 11 } }).catch(() => {});
  await socket.say('error', { code: 'rate_limited', message: 'no', retryAfter: 60,
    replyTo: socket.last('trip_change').messageId });
  hub.move('T1', 'cancelled').catch(() => {});
  assert.equal(socket.last('trip_status').payload.status, 'cancelled');
});

test('a move says its trip: as the ack has it, or as the hub is asked for it behind the ack', async () => {
  const { hub, socket } = await driving();
  const moved = hub.move('T1', 'accepted', { expected: 'requested', location: { latitude: 1, longitude: 2 } });
  const { payload } = socket.last('trip_status');
  assert.deepEqual([payload.expectedStatus, payload.location], ['requested', { latitude: 1, longitude: 2 }]);
  await socket.ack(socket.last('trip_status'));
  await socket.say('result', { replyTo: socket.last('query').messageId, tripId: 'T1', status: 'accepted',
    timestamp: 5 });
  assert.deepEqual(await moved, { tripId: 'T1', status: 'accepted', timestamp: 5 });
});

test('what the hub has taken does not fail where it does not say the trip: then it is as far as known', async () => {
  for (const fail of [
    (_, socket) => socket.say('error', { code: 'forbidden', message: 'no', replyTo: socket.last('query').messageId }),
    async hub => { hub.close(); },
  ]) {
    const { hub, socket, clock } = await driving(), timestamp = clock.now(), place = { latitude: 1, longitude: 2 };
    const moved = hub.move('T1', 'completed', { location: place });
    await socket.ack(socket.last('trip_status'));
    await fail(hub, socket);
    assert.deepEqual(await moved, { tripId: 'T1', status: 'completed', timestamp });
  }
  for (const accepts of [true, false]) {
    const { hub, socket, clock } = await driving(), dropoff = { latitude: 1, longitude: 2 };
    const done = accepts ? hub.offers('D1').accept('T1') : hub.change('T1', { dropoff });
    await socket.ack(socket.last(accepts ? 'trip_status' : 'trip_change'));
    hub.close();
    assert.deepEqual(await done, accepts ? { tripId: 'T1', status: 'accepted', timestamp: clock.now() }
      : { tripId: 'T1', dropoff });
  }
});

test('questions are asked again after a break, and end with `close`', async () => {
  const world = await driving();
  const asked = world.hub.nearby({ latitude: 48, longitude: 11, limit: 2 });
  await world.socket.end(1006);
  const socket = await world.again({ role: 'driver' });
  await socket.say('result', { replyTo: socket.last('query').messageId,
    drivers: [{ driverId: 'D1', status: 'available' }] });
  assert.deepEqual(await asked, [{ driverId: 'D1', status: 'available' }]);
  const never = world.hub.getTrip('T1'), kept = world.hub.move('T1', 'accepted');
  const closed = world.hub.close();
  await assert.rejects(never, { code: 'closed', retry: 'never' });
  await world.clock.pass(2000);
  await closed;
  assert.equal(world.hub.backlog.messages, 1, 'a move is kept');
  await world.live({ role: 'driver' });
  await world.socket.ack(world.socket.last('trip_status'),
    { trip: { tripId: 'T1', status: 'accepted', timestamp: 1 } });
  assert.equal((await kept).tripId, 'T1');
});

// The rate (protocol/rates.md).

test("drivers of an answer are as of now by the hub's clock, whatever the clock here says", async () => {
  const { hub, socket } = await driving(), place = { latitude: 48, longitude: 11, age: 2, timestamp: 5 };
  const answers = [hub.nearby({ latitude: 48, longitude: 11, radius: 9 }), hub.getDriver('D2'), hub.getTrip('T1')];
  await settled();
  const [near, one, trip] = socket.of('query');
  await socket.say('result', { replyTo: near.messageId, drivers: [{ driverId: 'D1', ...place }] });
  await socket.say('result', { replyTo: one.messageId, driverId: 'D2', ...place });
  await socket.say('result', { replyTo: trip.messageId, tripId: 'T1', status: 'accepted', timestamp: 5 });
  const [[first], second, third] = await Promise.all(answers), now = hub.now();
  for (const { published, received } of [first, second]) assert.deepEqual([published, received], [now, now]);
  assert.equal(third.published, undefined);
  const marker = new Marker();
  marker.push(first);
  assert.deepEqual([marker.at(now).age, marker.at(now + 1000).age], [2, 3]);
});

test('it stays within the rate, so that the hub never stops reading', async () => {
  const { hub, socket, fix, clock } = await driving({ limits });
  for (let second = 0; second < 100; second++) hub.send(fix(second));
  assert.equal(socket.of('location_update').length, 40, 'four seconds of it at once');
  await clock.pass(1000);
  assert.equal(socket.of('location_update').length, 50, 'a ping was due as well, which may owe');
  await clock.pass(10_000);
  assert.equal(socket.of('location_update').length, 100);
});

test('what costs more than a full bucket goes when it is full', async () => {
  const world = await driving(null), { hub, fix } = world;
  for (let second = 0; second < 1000; second++) hub.send(fix(second));
  const socket = await world.live({ role: 'driver', limits: { ...limits, rate: 1 } });
  assert.equal(socket.of('location_batch').length, 1, 'it costs 11 or more, and owes the rest');
  await world.clock.pass(10_000);
  assert.equal(socket.of('location_batch').length, 1);
  await world.clock.pass(8000);
  assert.equal(socket.of('location_batch').length, 2);
});

test('a rider pays for long answers, and continues within the rate', async () => {
  const world = byHand(), { hub, clock } = world;
  const socket = await world.live();
  hub.getTrip('T1');
  await socket.say('result', { replyTo: socket.last('query').messageId, tripId: 'T1', status: 'accepted', timestamp: 1,
    route: '?'.repeat(160_000) });
  const before = socket.of('query').length;
  for (let n = 0; n < 10; n++) hub.getTrip('T1');
  assert.equal(socket.of('query').length, before, 'some 44 units');
  await clock.pass(2000);
  assert.ok(socket.of('query').length > before);
});
