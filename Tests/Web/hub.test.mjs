// The client and a real hub: both codecs, kill -9 and restart, tokens, and the code of protocol/javascript.md as it
// stands.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Hub } from '../../Sources/Pages/web/hub.js';
import { binary, run, startHub, until } from './support/hub-process.mjs';
import { WebSocketByNet } from './support/websocket.mjs';

const skip = binary ? false : 'there is no locationhub: set HUB_BINARY, or build it (make release)';

/** A hub for a test, and clients of it that are closed with the test. */
async function hubFor(t, ...options) {
  const hub = await startHub(...options);
  const clients = [];
  t.after(async () => {
    await Promise.all(clients.map(client => client.close()));
    await hub.remove();
  });
  return Object.assign(hub, {
    client(options) {
      clients.push(new Hub(hub.url, { WebSocket: WebSocketByNet, ...options }).connect());
      return clients.at(-1);
    },
  });
}
const isLive = client => client.state.is === 'live';

for (const codec of ['json', 'binary']) {
  test(`a trip from beginning to end, in ${codec}`, { skip, timeout: 300_000 }, async t => {
    const hub = await hubFor(t, '--dev-auth', '--sampling', '1', '--grant-grace', '0');
    const errors = [];
    const as = (role, id) => hub.client({ dev: { role, id }, codec });
    const [driver, rider, ops] = [as('driver', 'D1'), as('rider', 'R1'), as('ops', 'O1')];
    for (const client of [driver, rider, ops]) client.on('error', ({ code }) => errors.push(code));
    const trip = rider.trip('T1'), fleet = ops.fleet(), seen = [];
    for (const type of ['snapshot', 'position', 'eta', 'update', 'notice', 'lost', 'ended']) trip.on(type,
      data => seen.push([type, data]));
    const of = type => seen.filter(([name]) => name === type).map(([, data]) => data);
    await until('three sessions', () => [driver, rider, ops].every(isLive));

    await driver.status({ status: 'available', vehicleType: 'van', tags: ['xl'] });
    const pickup = { latitude: 48.11, longitude: 11.5 }, dropoff = { latitude: 48.15, longitude: 11.52 };
    const requested = await rider.move('T1', 'requested', { pickup, dropoff, driverId: 'D1' });
    assert.deepEqual([requested.status, requested.riderId, requested.pickup], ['requested', 'R1', pickup]);
    assert.equal((await driver.move('T1', 'accepted', { expected: 'requested' })).driverId, 'D1');
    await assert.rejects(driver.move('T1', 'completed'),
      error => error.code === 'invalid_transition' && error.details.status === 'accepted');
    const begin = Date.now() - 5000;
    for (let n = 0; n < 6; n++) {
      const fix = { latitude: 48.1 + n * 1e-4, longitude: 11.5, accuracy: 5, speed: 11.1, heading: 0,
        timestamp: begin + n * 1000 };
      assert.equal(driver.send(fix, { trip: 'T1' }), 'queued');
    }
    await until('positions', () => of('position').length === 6 && of('eta').length);
    const last = of('position').at(-1);
    assert.deepEqual([last.driverId, last.tripId, last.timestamp, typeof last.speed],
      ['D1', 'T1', begin + 5000, 'number']);
    // By one clock, and in its unit: how long it took is not looked at.
    for (const time of [last.published, last.received, rider.now()]) assert.ok(Math.abs(time - Date.now()) < 60_000);
    assert.equal(of('eta')[0].target, 'pickup');
    await until('the fleet', () => fleet.position?.driverId === 'D1');   // on another connection

    const view = ops.view({ latitude: 48.1, longitude: 11.5, radius: 2000 });
    await until('the map', () => view.drivers.get('D1')?.status === 'on_trip');
    assert.deepEqual((await ops.nearby({ latitude: 48.1, longitude: 11.5, limit: 3 })).map(({ driverId }) => driverId),
      ['D1']);
    const polygon = { type: 'Polygon', coordinates: [[[11, 48], [12, 48], [12, 49], [11, 48]]] };
    assert.equal((await ops.within({ polygon })).drivers[0].vehicleType, 'van');
    assert.equal((await ops.within({ bbox: [0, 0, 1, 1] })).drivers.length, 0);
    assert.equal((await ops.getDriver('D1')).online, true);
    assert.deepEqual((await ops.getTrips({ status: 'accepted' })).trips.map(({ tripId }) => tripId), ['T1']);
    assert.deepEqual(await ops.fences(), { fences: [] });
    await assert.rejects(rider.fences(), { code: 'forbidden', retry: 'never' });
    await assert.rejects(ops.getFence('none'), { code: 'not_found' });
    const track = await until('the track', async () => {
      const found = await rider.track('T1');
      return found.geometry?.coordinates.length === 6 && found;
    });
    assert.equal(track.properties.times.length, 6);
    assert.deepEqual((await rider.change('T1', { dropoff: pickup })).dropoff, pickup);
    for (const status of ['driver_en_route', 'arrived_pickup', 'trip_started', 'arrived_destination', 'completed']) {
      assert.equal((await driver.move('T1', status)).status, status);
    }
    await until('its end', () => trip.state.is === 'ended');
    assert.equal(trip.state.reason, 'trip_ended');
    assert.equal(of('update').at(-1).summary.fixes, 6);
    assert.deepEqual(of('lost'), []);
    const numbers = seen.filter(([type]) => type === 'update' || type === 'notice').map(([, { sequence }]) => sequence);
    assert.deepEqual(numbers, numbers.map((_, index) => index + 1), 'each event once and in order');
    assert.deepEqual(errors, ['invalid_transition'].slice(1));
  });
}

for (const codec of ['json', 'binary']) {
  test(`kill -9 and a restart: no event is missed or comes twice, each fix is stored once, in ${codec}`,
    { skip, timeout: 300_000 }, async t => {
    const hub = await hubFor(t, '--dev-auth', '--sampling', '1');
    const driver = hub.client({ dev: { role: 'driver', id: 'D1' }, codec });
    const ops = hub.client({ dev: { role: 'ops', id: 'O1' }, codec });
    const seen = [], lost = [], begin = Date.now() - 60_000;
    const feed = ops.trip('T1');
    feed.on('update', ({ sequence }) => seen.push(sequence));
    feed.on('notice', ({ sequence }) => seen.push(sequence));
    feed.on('lost', () => lost.push('lost'));
    let sent = 0, notified = 0;
    const drive = () => {
      const fix = { latitude: 48 + sent * 1e-4, longitude: 11, accuracy: 5, speed: 11.1, heading: 0,
        timestamp: begin + sent * 1000 };
      assert.equal(driver.send(fix, { trip: 'T1' }), 'queued');
      sent++;
    };
    const notify = async () => {
      const notice = { channel: 'trip:T1', kind: 'message', title: 'n', body: 'n', messageId: `m${++notified}` };
      const post = () => fetch(`${hub.http}/v1/notifications?role=ops&id=O1`,
        { method: 'POST', body: JSON.stringify(notice) }).then(({ ok }) => ok, () => false);
      await until('the notification', post);
    };
    await ops.move('T1', 'requested', { driverId: 'D1' });
    let moved = driver.move('T1', 'accepted');
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 5; n++) {
        drive();
        await notify();
      }
      await moved;
      moved = driver.move('T1', ['driver_en_route', 'arrived_pickup'][round]);
      drive();
      await hub.kill();
      for (let n = 0; n < 5; n++) drive();
      await until('the break to be seen', () => !isLive(driver) && !isLive(ops));
      await hub.start();
      await notify();
      await until('both again', () => isLive(driver) && isLive(ops));
    }
    assert.equal((await moved).status, 'arrived_pickup');
    await until('all events', () => seen.length === 4 + notified);
    assert.deepEqual(seen, seen.map((_, index) => index + 1));
    assert.deepEqual(lost, []);
    const times = await until('all fixes', async () => {
      const { properties } = await ops.track('T1', { source: 'raw' });
      return properties.times.length >= sent && properties.times;
    });
    assert.deepEqual(times, Array.from({ length: sent }, (_, index) => begin + index * 1000));
  });
}

test('tokens: renewed while the session stands, refused where they are over', { skip, timeout: 300_000 }, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-')), key = join(folder, 'secret');
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(key, randomBytes(32).toString('hex'), { mode: 0o600 });
  const hub = await hubFor(t, '--token-keys', key);
  const asked = [], states = [];
  const token = async ({ reason }) => {
    asked.push(reason);
    return run('token', '--key', key, '--role', 'rider', '--sub', 'R1', '--trip', 'T1', '--expires', '15s');
  };
  const rider = hub.client({ token });
  rider.on('state', ({ is }) => states.push(is));
  const trip = rider.trip('T1');
  await until('two renewals', () => asked.length >= 3);
  await until('an answer over HTTP', () => rider.getTrip('T1').then(() => false,
    ({ code }) => code === 'unknown_trip'));
  assert.deepEqual([asked.slice(0, 3), states, trip.state.is],
    [['connect', 'expiring', 'expiring'], ['live'], 'live']);

  // A browser's WebSocket does not say why it did not open.
  class Mute extends WebSocketByNet {
    set onerror(f) { super.onerror = () => f({}); }
  }
  const bad = await run('token', '--key', key, '--role', 'rider', '--sub', 'R1', '--expires', '1s');
  for (const WebSocket of [WebSocketByNet, Mute]) {
    const late = hub.client({ token: bad.slice(0, -3), WebSocket });
    await until('its end', () => late.state.is === 'closed');
    assert.deepEqual([late.state.reason.cause, late.state.reason.code], ['refused', 401]);
  }
  const answers = [];
  const second = hub.client({ WebSocket: Mute, token: async ({ reason }) => {
    answers.push(reason);
    return reason === 'refused' ? token({ reason }) : 'no.to.ken';
  } });
  await until('a good one', () => isLive(second));
  assert.deepEqual(answers, ['connect', 'refused']);
});

/** A block of code of the page, as a module: with this hub for the one in it, and what a browser has. */
async function runPage(t, heading, hub, globals) {
  const page = readFileSync(new URL('../../protocol/javascript.md', import.meta.url), 'utf8');
  const [, lines, code] = new RegExp(`## ${heading} in (\\d+) lines\n\n\`\`\`js\n([^]*?)\n\`\`\``).exec(page);
  assert.equal(code.split('\n').length, Number(lines), 'as many lines as it says');
  const folder = mkdtempSync(join(tmpdir(), 'page-')), before = {};
  for (const [name, value] of Object.entries(globals)) {
    before[name] = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  let client;
  t.after(async () => {
    await client?.close();
    rmSync(folder, { recursive: true, force: true });
    for (const [name, old] of Object.entries(before)) {
      if (old) Object.defineProperty(globalThis, name, old); else delete globalThis[name];
    }
  });
  const library = new URL('../../Sources/Pages/web/hub.js', import.meta.url).href;
  const file = join(folder, 'page.mjs');
  const here = code.replace("'/hub.js'", `'${library}'`).replace('wss://hub.example/v1/ws', hub.url);
  writeFileSync(file, `${here}\nexport { hub };\n`);
  ({ hub: client } = await import(pathToFileURL(file)));
  return client;
}

test('the rider in 12 lines and the driver in 6 do what they say', { skip, timeout: 300_000 }, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-')), key = join(folder, 'secret');
  writeFileSync(key, randomBytes(32).toString('hex'), { mode: 0o600 });
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const hub = await hubFor(t, '--token-keys', key, '--sampling', '1', '--grant-grace', '0');
  const tokens = {};
  for (const [role, sub] of [['rider', 'R1'], ['driver', 'D1'], ['ops', 'O1']]) {
    tokens[role] = await run('token', '--key', key, '--role', role, '--sub', sub, '--trip', 'T1');
  }
  const ops = hub.client({ token: tokens.ops });
  await ops.move('T1', 'requested', { driverId: 'D1', riderId: 'R1', pickup: { latitude: 48.11, longitude: 11.5 } });

  const car = { moved: [], moveTo(...place) { this.moved.push(place); }, remove() { this.isGone = true; } };
  const frames = [], eta = {}, banner = {}, { fetch } = globalThis;
  const as = role => async (url, ...more) => url === '/my/token' ? new Response(tokens[role]) : fetch(url, ...more);
  await runPage(t, 'A rider', hub, { WebSocket: WebSocketByNet, fetch: as('rider'),
    requestAnimationFrame: f => frames.push(f), car, eta, banner });
  const draw = () => frames.splice(0).forEach(f => f());
  draw();
  assert.ok(Number.isNaN(car.moved[0][0]), 'nothing to draw yet');
  await until('the rider', () => banner.textContent === '');

  let watcher;
  const navigator = { geolocation: { watchPosition(success) { watcher = success; } } };
  const driver = await runPage(t, 'A driver', hub, { WebSocket: WebSocketByNet, fetch: as('driver'), navigator,
    indexedDB: undefined });
  await until('the driver', () => isLive(driver));
  const coords = { latitude: 48.1, longitude: 11.5, accuracy: 5, heading: 0, speed: 11, altitude: null };
  watcher({ coords, timestamp: Date.now() - 2000 });
  watcher({ coords: { ...coords, latitude: 48.1002 }, timestamp: Date.now() });
  await until('a car that moves', () => {
    draw();
    const [latitude, longitude, heading] = car.moved.at(-1);
    return Math.abs(latitude - 48.1002) < 0.002 && Math.abs(longitude - 11.5) < 0.001 && heading !== undefined;
  });
  assert.equal(car.faded, false);
  await until('an ETA', () => eta.dateTime > Date.now());
  await ops.move('T1', 'cancelled');
  await until('its end', () => car.isGone);
});
