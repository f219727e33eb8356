// What control rooms may do to a hub by mistake or on purpose: many pages at once, figures for 1,000 sessions, a view
// that moves without pause, 10,000 shared trips. A rider beside them gets each position, and the hub drops
// nothing of it.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Hub } from '../../Sources/Pages/web/hub.js';
import { binary, run, startHub, until } from './support/hub-process.mjs';
import { WebSocketByNet } from './support/websocket.mjs';

const skip = binary ? false : 'there is no locationhub: set HUB_BINARY, or build it (make release)';
const home = { latitude: 48.1, longitude: 11.5 };
const around = (east = 0, size = 0.02) => ({ west: home.longitude - size + east, south: home.latitude - size,
  east: home.longitude + size + east, north: home.latitude + size });

/** A hub with drivers that send each second, a rider that follows one of them, and whoever else is asked for. */
async function world(t, ...options) {
  const hub = await startHub('--dev-auth', '--sampling', '1', ...options);
  const clients = [];
  const as = (role, id) => {
    clients.push(new Hub(hub.url, { dev: { role, id }, WebSocket: WebSocketByNet }).connect());
    return clients.at(-1);
  };
  const ops = as('ops', 'O0'), rider = as('rider', 'R1');
  const drivers = Array.from({ length: 20 }, (_, index) => as('driver', `D${index}`));
  await ops.move('T1', 'requested', { driverId: 'D0', riderId: 'R1', pickup: home });
  await drivers[0].move('T1', 'accepted');
  let number = 0;
  const sent = [], received = new Set();   // times of D0's fixes
  const timer = setInterval(() => {
    number++;
    const timestamp = Date.now();
    drivers.forEach((driver, index) => {
      const said = driver.send({ latitude: home.latitude + number / 10_000, longitude: home.longitude + index / 1000,
        accuracy: 5, heading: 0, speed: 11, timestamp }, { trip: index ? undefined : 'T1' });
      // Behind a tick that was late the next one comes too soon, and is left out.
      if (!index && said === 'queued') sent.push(timestamp);
    });
  }, 1000);
  t.after(async () => {
    clearInterval(timer);
    await Promise.all(clients.map(client => client.close()));
    await hub.remove();
  });
  const stats = [];
  ops.stats().on('stats', second => stats.push(second));
  rider.trip('T1').on('position', ({ timestamp }) => received.add(timestamp));
  await until('positions', () => received.size > 1);
  /** What came to the rider while something went on: positions, and the seconds of the hub. */
  const during = async work => {
    const [before, seconds] = [sent.length, stats.length];
    const result = await work(), due = sent.slice(before), end = Date.now();
    await until(`${due.length} positions`, () => due.filter(time => !received.has(time)).length <= 2);
    await until('a position from behind it', () => [...received].some(time => time > end));
    return { result, seconds: stats.slice(seconds) };
  };
  return { hub, ops, as, during };
}
const wait = seconds => new Promise(resolve => { setTimeout(resolve, seconds * 1000); });
const middle = (seconds, name) => seconds.map(second => second[name]).filter(Number.isFinite)
  .sort((a, b) => a - b)[Math.floor(seconds.length / 2)] * 1000;
/** Each position but two at most has come to the rider, or `during` fails; and the hub dropped nothing. */
function assertServed({ seconds }) {
  assert.deepEqual(seconds.flatMap(({ drops }) => Object.keys(drops ?? {})), []);
}

test('200 pages are open at once, and nobody gets less', { skip, timeout: 300_000 }, async t => {
  const { as, during } = await world(t);
  const before = await during(() => wait(4));
  const pages = Array.from({ length: 200 }, (_, index) => as('ops', `page-${index}`));
  let updates = 0;
  for (const page of pages) {
    page.view(around()).on('update', () => { updates++; });
    for (const feed of [page.counts(around()), page.trips(), page.stats()]) feed.on('any', () => {});
  }
  await until('all pages to be served', () => updates > 1000);
  const then = await during(() => wait(5));
  assertServed(before);
  assertServed(then);
  t.diagnostic(['p50', 'p99'].map(name => `${name} ${middle(before.seconds, name).toFixed(2)} ms, with 200 pages `
    + `${middle(then.seconds, name).toFixed(2)} ms`).join('; '));
});

test("1,000 sessions have the hub's figures each second", { skip, timeout: 300_000 }, async t => {
  const { as, during } = await world(t);
  const heard = new Array(1000).fill(0);
  heard.forEach((_, index) => as('ops', `S${index}`).stats().on('stats', () => { heard[index]++; }));
  await until('all to hear some', () => heard.every(count => count > 0));
  const before = [...heard];
  const then = await during(() => until('all to hear three more', () =>
    heard.every((count, index) => count - before[index] >= 3)));
  assertServed(then);
});

test('a view of 256 cells that moves without pause costs whoever moves it, and nobody else', { skip,
  timeout: 300_000 }, async t => {
    const { hub, during } = await world(t);
    const codes = [];
    const then = await during(async () => {
      const socket = new WebSocketByNet(`${hub.url}?role=ops&id=mover`, ['locationhub.v1.json']);
      let greeted = false, closed;
      socket.onmessage = ({ data }) => {
        const { type, payload } = JSON.parse(data);
        greeted ||= type === 'connected';
        if (type === 'error') codes.push(payload.code);
      };
      socket.onclose = ({ code }) => { closed = code; };
      await until('a greeting', () => greeted);
      for (let step = 0; step < 2000 && closed === undefined; step++) {
        const { west, south, east, north } = around(step % 2 ? 5 : 0, 0.04);
        socket.send(JSON.stringify({ type: 'subscribe', timestamp: Date.now(), messageId: `m${step}`,
          payload: { channel: `box:${west},${south},${east},${north}`, viewId: 'v', precision: 6 } }));
        if (step % 20 === 0) await wait(0.05);
      }
      await until('its end, or a refusal', () => closed !== undefined || codes.length);
      socket.close(1000);
      return closed;
    });
    t.diagnostic(`closed with ${then.result}; errors: ${[...new Set(codes)]}`);
    assert.ok(then.result === 4429 || codes.includes('rate_limited'), 'it is held to its rate');
    assertServed(then);
  });

test('10,000 shares: each is made once, opens its trip alone, and is kept over kill -9, as is what was taken back',
  { skip, timeout: 300_000 }, async t => {
    const key = join(mkdtempSync(join(tmpdir(), 'keys-')), 'secret');
    t.after(() => rmSync(dirname(key), { recursive: true, force: true }));
    writeFileSync(key, randomBytes(32).toString('hex'), { mode: 0o600 });
    const { hub, during } = await world(t, '--token-sign-key', key, '--token-keys', key, '--trusted-proxy',
      '127.0.0.1');
    const token = await run('token', '--key', key, '--role', 'ops', '--sub', 'O1');
    // One address may ask 500 times a second: these come from many.
    let asked = 0;
    const ask = (method, path, body) => fetch(`${hub.http}/v1/trips${path}`, { method,
      body: body && JSON.stringify(body),
      headers: { Authorization: `Bearer ${token}`, 'X-Forwarded-For': `10.0.0.${++asked % 250}` } });
    const share = async trip => {
      const answer = await ask('POST', `/${trip}/shares`, {}), text = await answer.text();
      return answer.ok ? JSON.parse(text) : `${answer.status} ${text}`;
    };
    const each = async (count, work) => {   // 16 at a time
      const results = [];
      let next = 0;
      await Promise.all(Array.from({ length: 16 }, async () => {
        for (let index = next++; index < count; index = next++) results[index] = await work(index);
      }));
      return results;
    };
    const { result: made, ...then } = await during(async () => {
      await each(625, index => ask('POST', '', { tripId: `S${index}`, riderId: `P${index}`, pickup: home }));
      return each(10_000, index => share(`S${index % 625}`));
    });
    assertServed(then);
    assert.equal(new Set(made.map(({ token }) => token)).size, 10_000, `${made[0]}`);
    assert.match(await share('S0'), /^429 .*rate_limited/, 'a trip has sixteen at once');
    const [back, kept] = [made[5], made[5 + 625]];
    assert.equal((await ask('DELETE', `/S5/shares/${back.shareId}`)).status, 204);

    const trip = async ({ token }, id) => (await fetch(`${hub.http}/v1/trips/${id}`,
      { headers: { Authorization: `Bearer ${token}` } })).status;
    const holds = async () => {
      assert.deepEqual([await trip(kept, 'S5'), await trip(kept, 'S6')], [200, 403], 'its own trip alone');
      assert.equal(await trip(back, 'S5'), 403, 'what was taken back');
    };
    await holds();
    await hub.kill();
    await hub.start();
    await holds();
    const lists = await each(625, async index => (await (await ask('GET', `/S${index}/shares`)).json()).shares.length);
    assert.equal(lists.reduce((sum, length) => sum + length), 9999);
  });
