// The pages in a real browser, with a real hub and drivers: what is seen, by what is done. Each page must leave no
// message on the console, ask nobody but its hub, and keep its content security policy.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Hub, Marker } from '../../Sources/Pages/web/hub.js';
import { openBrowser, skip as noBrowser } from './support/browser.mjs';
import { binary, run, startHub, until } from './support/hub-process.mjs';
import { WebSocketByNet } from './support/websocket.mjs';

const skip = noBrowser || (binary ? false : 'there is no locationhub: set HUB_BINARY, or build it (make release)');
const options = { skip, timeout: 60_000 };
const home = { latitude: 48.137, longitude: 11.575 }, speed = 12;
const north = meters => meters / 111_195, east = meters => meters / 111_195 / Math.cos(home.latitude * Math.PI / 180);

test('what a page loads, compressed', () => {
  const bytes = name => readFileSync(new URL(`../../Sources/Pages/web/${name}`, import.meta.url));
  const size = name => gzipSync(bytes(name), { level: 9 }).length;
  const sum = names => names.split(' ').reduce((total, name) => total + size(name), 0);
  const both = 'hub.js hub-areas.js hub-http.js map.js style.css';
  const map = sum(`${both} index.html app.js`), ride = sum(`${both} track.html track.js`);
  assert.ok(map <= 45 * 1024, `the live map: ${map} bytes`);
  assert.ok(ride <= 34 * 1024, `the rider's page: ${ride} bytes`);
});

// MARK: A world of drivers

/** Metres of a phone's error, the same in each run (a linear congruential generator, Box and Muller). */
function gauss(deviation) {
  let state = 1;
  const uniform = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  return () => deviation * Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Where a way through blocks of houses leads in so many metres: 60 m straight on, a quarter turn of 36 m (at 12 m/s
 *  4 m/s²), right, left, left, right, and again; [metres east, metres north, heading in degrees]. */
function throughBlocks(meters) {
  const radius = 36, straight = 60, arc = radius * Math.PI / 2, turns = [1, -1, -1, 1];
  let [x, y, heading] = [0, 0, 0];
  const along = length => { x += length * Math.sin(heading); y += length * Math.cos(heading); };
  for (let left = meters, leg = 0; left > 0; left -= straight + arc, leg++) {
    along(Math.min(left, straight));
    const angle = turns[leg % 4] * Math.min(Math.max(left - straight, 0), arc) / radius;
    heading += angle / 2;
    along(2 * radius * Math.abs(Math.sin(angle / 2)));   // the chord
    heading += angle / 2;
  }
  return [x, y, (heading * 180 / Math.PI + 360) % 360];
}

/** Drives north, or where `course` leads, a fix each second, until the test changes it; `off` is its clock's error. */
class Driver {
  #timer; #meters = 0; #drove = Date.now();
  constructor(hub, id, { at = [0, 0], status = 'available', trip, credential, isMoving = true, noise = 0,
    course = meters => [0, meters, 0], off = 0 } = {}) {
    Object.assign(this, { id, at, trip, isMoving, course, off, aside: 0, chance: gauss(noise) });
    const who = credential ?? { dev: { role: 'driver', id } };
    this.hub = new Hub(hub.url, { ...who, WebSocket: WebSocketByNet, now: () => Date.now() + off }).connect();
    if (status !== 'on_trip') this.hub.status(status).catch(() => {});
    this.#timer = setInterval(() => this.drive(), 1000);
    this.drive();
  }
  /** Where it is, which its phone does not know as well. */
  placeAt(time) {
    const meters = this.isMoving ? this.#meters + (time - this.#drove) / 1000 * speed : this.#meters;
    const [x, y, heading] = this.course(meters);
    return { latitude: home.latitude + north(this.at[1] + y), longitude: home.longitude + east(this.at[0] + x),
      heading };
  }
  drive() {
    const time = Date.now();
    if (this.isMoving) this.#meters += (time - this.#drove) / 1000 * speed;
    this.#drove = time;
    const { latitude, longitude, heading } = this.placeAt(time);
    this.hub.send({ latitude: latitude + north(this.chance()), timestamp: time + this.off,
      longitude: longitude + east(this.aside + this.chance()), accuracy: 5, heading,
      speed: this.isMoving ? speed : 0 }, { trip: this.trip });
    this.aside = 0;
  }
  async stop() {
    clearInterval(this.#timer);
    await this.hub.close();
  }
}

let browser, hub, ops, drivers = {};
/** Metres between where a marker of taxi-1 would be drawn and where it is, ten times a second. */
const errors = [];
let measuring;
function measureMarker(driver) {
  const marker = new Marker(), feed = ops.driver(driver.id);
  feed.on('position', position => marker.push(position));
  measuring = setInterval(() => {
    const seen = marker.at(ops.now()), place = driver.placeAt(Date.now());
    const [up, right] = [seen.latitude - place.latitude, seen.longitude - place.longitude].map(part => part * 111_195);
    if (seen.age < 10) errors.push(Math.hypot(up, right * Math.cos(home.latitude * Math.PI / 180)));
  }, 100);
}
const pages = [];
async function open(path, look) {
  const page = await browser.open(hub.http + path, look);
  pages.push(page);
  return page;
}
/** What Chromium itself says of a socket that broke, or that breaks while something is sent. */
const brokenSocket = /WebSocket connection|WebSocket is already in CLOSING|net::ERR_CONNECTION|Failed to load resource/;
/** Closes a page, on which nothing may have gone wrong but what is named. */
async function close(page, allowed = /^$/) {
  const faults = page.faults.filter(fault => !allowed.test(fault));
  await page.close();
  assert.deepEqual(faults, []);
}
const hostile = '<img src=x onerror=alert(1)>';

before(async () => {
  if (skip) return;
  [browser, hub] = await Promise.all([openBrowser(), startHub('--dev-auth', '--sampling', '1', '--grant-grace', '0')]);
  ops = new Hub(hub.url, { dev: { role: 'ops', id: 'tests' }, WebSocket: WebSocketByNet }).connect();
  await ops.move('T1', 'requested', { driverId: 'taxi-2', riderId: 'R1', pickup: home,
    dropoff: { latitude: home.latitude + north(9000), longitude: home.longitude } });
  const add = (id, more) => { drivers[id] = new Driver(hub, id, more); };
  add('taxi-1', { at: [-300, 0], noise: 3, course: throughBlocks });
  add('taxi-2', { status: 'on_trip', trip: 'T1' });
  add('taxi-3', { at: [300, 0], status: 'unavailable' });
  add('van-4', { at: [600, 0], status: 'background' });
  add('van-5', { at: [900, 0], isMoving: false });
  for (const status of ['accepted', 'driver_en_route', 'arrived_pickup', 'trip_started']) {
    await drivers['taxi-2'].hub.move('T1', status);
  }
  measureMarker(drivers['taxi-1']);
  const put = await fetch(`${hub.http}/v1/fences/f?role=ops&id=tests`, { method: 'PUT',
    body: JSON.stringify({ title: hostile, circle: { ...home, radius: 400 } }) });
  assert.ok(put.ok);
});
after(async () => {
  if (skip) return;
  clearInterval(measuring);
  await Promise.all([ops.close(), ...Object.values(drivers).map(driver => driver.stop())]);
  await browser.close();
  await hub.remove();
});

/** Texts of the rows that can be seen. */
const rows = page => page.value(`[...document.querySelectorAll('.row')].filter(row => row.checkVisibility())
  .map(row => row.innerText.replaceAll('\\n', ' '))`);
const row = async (page, id) => (await rows(page)).find(text => text.startsWith(`${id} `)) ?? '';
const chips = page => page.value(`[...document.querySelectorAll('#chips button')].map(chip => chip.innerText)`)
  .then(texts => texts.map(text => Number(text.match(/[\d,]+$/)?.[0].replace(',', ''))));
const follows = (page, id) => until(`the card of ${id}`, async () =>
  await page.shown('follow') && await page.text('name') === id);
const live = page => until('a live page', async () => await page.text('state') === 'live');
/** Pixels of a metre, by the scale. */
const scale = page => page.value(`(() => {
  const [, figure, unit] = document.getElementById('scale').innerText.match(/(\\d+) (k?m)/);
  return document.getElementById('scale').offsetWidth / (figure * (unit === 'km' ? 1000 : 1));
})()`);
/** Where a text was written last on the map, and when (ms). */
const written = (page, text) => page.value(`written.get(${JSON.stringify(text)})?.at(-1)`);
const since = (page, text, time) => page.value(`(written.get(${JSON.stringify(text)}) ?? []).filter(([at]) =>
  at > ${time})`);

test('the fleet: list, counts, figures, states; drivers of each status', options, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  await live(page);
  await until('counts', async () => `${await chips(page)}` === '2,1,1,1,0');
  assert.match(await row(page, 'taxi-1'), /^taxi-1 Available \d+ km\/h now$/);
  await until('trips', async () => /^taxi-2 To dropoff/.test(await row(page, 'taxi-2')));
  assert.match(await row(page, 'van-5'), /stopped/);
  assert.equal(await page.text('shown'), '5 in view');
  const figures = await until('figures', async () => {
    const texts = await page.value(`[...document.querySelectorAll('.tile')].map(tile => tile.innerText)`);
    return texts.length === 7 && /Fixes in\n[4-6]\/s/.test(texts[0]) && texts;
  });
  assert.match(figures[6], /Drops, errors\s+hub well/);
  await page.until(`[...written.keys()].some(text => /^<img src=x onerror=alert.1.>: \\d+ inside$/.test(text))`);
  const [, x, y] = await page.value(`[...written].find(([text]) => text.startsWith('<img'))[1].at(-1)`);
  await page.press(x + 60, y + 60);
  await until('who is inside', async () => (await page.text('toast')).startsWith(`${hostile}: taxi-1, taxi-2`));
  assert.equal(await page.value('document.querySelectorAll("img").length'), 0);
  await page.click('.tile:nth-child(4)');
  assert.match(await page.text('chart'), /Latency p99/);
  assert.match(await page.text('chart-range'), /^lowest [\d.,–]+, highest [\d.,–]+ ms$/);
  await page.key('Escape');
  assert.equal(await page.shown('chart'), false);
  assert.equal(await page.shown('dev'), true, 'anybody may come in, and the page says so');
  await page.screenshot('fleet');
  await close(page);
});

test('following: the camera goes along until a pan, and comes back', options, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  await page.click('.row:nth-child(2)');
  await follows(page, 'taxi-2');
  await until('an ETA', () => page.shown('eta'));
  assert.match(await page.text('eta'), /^\d+ min\s+to dropoff at .*\s+.* · direct/);
  assert.match(await page.text('trip'), /To dropoff/);
  assert.equal(await page.value(`document.querySelectorAll('#steps .done').length`), 5);
  assert.match(await page.text('facts'), /Speed\n\d+ km\/h\nHeading\n0° N\nPosition\nnow\nAccuracy\n±[\d.]+ m/);
  await until('the camera', async () => {
    const now = await page.value('performance.now()');
    await page.until(`written.get('taxi-2').at(-1)[0] > ${now + 700}`);
    const seen = await since(page, 'taxi-2', now + 200);
    return seen.length > 5 && Math.max(...seen.map(([, , y]) => y)) - Math.min(...seen.map(([, , y]) => y)) < 2;
  });
  assert.equal(await page.shown('recentre'), false);

  // The menu of the right button may keep its release.
  await page.mouse('mousePressed', 700, 300, { button: 'right', buttons: 2, clickCount: 1 });
  await page.mouse('mouseMoved', 640, 440, { buttons: 0 });
  assert.equal(await page.shown('recentre'), false);
  await page.drag([700, 300], [640, 440]);
  assert.equal(await page.shown('recentre'), true);
  assert.equal(await page.shown('follow'), true, 'it is still selected');
  const began = await page.value('performance.now()');
  await page.until(`performance.now() > ${began + 2500}`);
  const seen = await since(page, 'taxi-2', began), pixels = await scale(page);
  assert.ok(seen.length > 25, `${seen.length} frames`);
  const moved = (seen[0][2] - seen.at(-1)[2]) / pixels / (seen.at(-1)[0] - seen[0][0]) * 1000;
  assert.ok(Math.abs(moved - speed) < speed / 3, `${moved} m/s on the page`);
  for (let at = 1; at < seen.length; at++) {
    const meters = Math.hypot(seen[at][1] - seen[at - 1][1], seen[at][2] - seen[at - 1][2]) / pixels;
    const most = 2.5 * speed * (seen[at][0] - seen[at - 1][0]) / 1000 + 2 / pixels;
    assert.ok(meters <= most, `${meters} m within ${seen[at][0] - seen[at - 1][0]} ms`);
  }
  await page.click('#recentre');
  assert.equal(await page.shown('recentre'), false);
  await page.key('ArrowLeft');
  assert.equal(await page.shown('recentre'), true, 'keys pan, too');
  await page.screenshot('follow');
  // Where a fence's label is, in a frame that began after what was done.
  const fixed = async () => {
    const done = await page.value('performance.now()');
    return (await until('a frame', async () => (await since(page, `${hostile}: 3 inside`, done + 20)).at(-1))).slice(1);
  };
  const beside = await fixed();
  await page.key('Escape');
  assert.equal(await page.shown('follow'), false);
  const ended = await page.value('performance.now()');
  await page.until(`performance.now() > ${ended + 300}`);
  (await fixed()).forEach((at, axis) => assert.ok(Math.abs(at - beside[axis]) < 1, 'the map stays where it is'));
  await close(page);
});

test('who sends nothing any more is faded, and grey as last seen', options, async t => {
  const own = await startHub('--dev-auth'), silent = [];
  const fresh = new Driver(own, 'a-fresh', { isMoving: false });
  for (const [index, [id, age]] of [['b-faded', 20], ['c-grey', 70]].entries()) {
    const phone = new Hub(own.url, { dev: { role: 'driver', id }, WebSocket: WebSocketByNet }).connect();
    phone.send({ ...home, longitude: home.longitude + east(300 * (index + 1)), timestamp: Date.now() - age * 1000,
      accuracy: 5, heading: 0, speed: 0 });
    silent.push(phone);
  }
  t.after(async () => {
    await Promise.all([fresh.stop(), ...silent.map(phone => phone.close())]);
    await own.remove();
  });
  const page = await browser.open(`${own.http}/`);
  await until('drivers', async () => (await rows(page)).length === 3);
  assert.match(await row(page, 'b-faded'), /stopped 2\d s ago$/);
  assert.match(await row(page, 'c-grey'), /stopped last seen [78]\d s ago$/);
  // Colour and strength where the arrow is, above its label.
  const inks = await until('arrows', () => page.value(`(() => {
    const places = ['a-fresh', 'b-faded', 'c-grey'].map(id => written.get(id)?.at(-1));
    if (!places.every(Boolean)) return;
    const canvas = document.getElementById('moving'), copy = document.createElement('canvas');
    Object.assign(copy, { width: canvas.width, height: canvas.height });
    const ink = copy.getContext('2d', { willReadFrequently: true });
    ink.drawImage(canvas, 0, 0);
    return places.map(([, x, y]) => [...ink.getImageData(x, y - 27, 1, 1).data]);
  })()`));
  const edge = [0x0a, 0x0e, 0x13], green = [0x31, 0xd0, 0xa3], offline = [0x6d, 0x7a, 0x87];
  [[green, 1], [green, 0.5], [offline, 0.75]].forEach(([color, strength], index) => {
    const below = strength * (1 - strength), all = strength + below;   // it lies on an edge of the same strength
    const expected = [...color.map((part, at) => (part * strength + edge[at] * below) / all), 255 * all];
    assert.ok(expected.every((part, at) => Math.abs(part - inks[index][at]) < 4), `${expected}: ${inks[index]}`);
  });
  await page.screenshot('stale');
  await page.click('.row:nth-child(3)');
  await follows(page, 'c-grey');
  const inkOf = () => page.value(`(() => {
    const [, x, y] = written.get('c-grey').at(-1), copy = document.createElement('canvas');
    Object.assign(copy, { width: 1, height: 1 });
    const ink = copy.getContext('2d', { willReadFrequently: true });
    ink.drawImage(document.getElementById('moving'), x, y - 36, 1, 1, 0, 0, 1, 1);
    return [...ink.getImageData(0, 0, 1, 1).data];
  })()`);
  await until('the followed one in grey', async () => {
    const parts = await inkOf();
    return offline.every((part, at) => Math.abs(part - parts[at]) < 4);
  }, 8);
  await close(page);
});

test('how old a position is does not depend on the clock of the phone', options, async t => {
  const own = await startHub('--dev-auth', '--sampling', '1');
  const cars = [['slow', -100_000], ['fast', 100_000]].map(([id, off], index) =>
    new Driver(own, id, { at: [300 * index, 0], off }));
  t.after(async () => {
    await Promise.all(cars.map(car => car.stop()));
    await own.remove();
  });
  const page = await browser.open(`${own.http}/`);
  for (const id of ['slow', 'fast']) await until(`${id} now`, async () => / km\/h now$/.test(await row(page, id)));
  await page.click('.row');   // fast
  await follows(page, 'fast');
  await until('its speed', async () => /Position\nnow/.test(await page.text('facts'))
    && /max \d+ km/.test(await page.text('pace-max')));
  await Promise.all(cars.map(car => car.stop()));
  const isSilent = async id => / ([3-9]|[1-4]\d) s ago$/.test(await row(page, id));
  for (const id of ['slow', 'fast']) await until(`${id}, silent`, () => isSilent(id));
  assert.match(await page.text('facts'), /Position\n([3-9]|[1-4]\d) s ago/);
  await close(page);
});

test('search by driver and by trip, and the chips as a filter', options, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  const isLive = () => page.value(`document.getElementById('shown').ariaLive`);
  assert.equal(await isLive(), 'off', 'who comes and goes is not read out');
  await page.key('/');
  await page.type('van');
  assert.equal(await isLive(), 'polite', 'what a search finds is');
  await until('vans', async () => (await rows(page)).map(text => text.slice(0, 5)).join() === 'van-4,van-5');
  await page.key('Escape');
  await page.key('/');
  await page.type('T1');
  await until('its driver', async () => (await rows(page))[0]?.startsWith('taxi-2 '));
  await page.key('Enter');
  await follows(page, 'taxi-2');
  await page.key('Escape');
  await page.key('Escape');
  await page.key('0');
  await until('all', async () => (await rows(page)).length === 5);
  await page.click('#chips .unavailable');
  await until('one', async () => (await rows(page)).map(text => text.slice(0, 6)).join() === 'taxi-3');
  await until('one of five', async () => await page.text('shown') === '1 of 5');   // the map may still move
  await page.click('#chips .unavailable');
  await until('all', async () => (await rows(page)).length === 5);
  await close(page);
});

test('who is found elsewhere is asked for again, and is followed from where it is now', options, async () => {
  const page = await open('/hub.js');
  let age = 50;
  await page.rewrite('/app.js', text => text.replace('searchMs = 5000', 'searchMs = 500'));
  await page.rewrite('/v1/drivers', text => text.replace(/"age":[\d.]+/g, `"age":${age}`));
  await hears(page, message => {
    if (/^(area_update|driver_location)$/.test(message.type)) message.type = 'nothing';
  });
  await page.go(`${hub.http}/`);
  await live(page);
  await page.key('/');
  await page.type('taxi-2');
  const says = pattern => until(pattern, async () => pattern.test(await row(page, 'taxi-2')));
  await says(/5\d s ago$/);
  age = 0;
  await says(/now$/);
  age = 50;
  await says(/5\d s ago$/);
  page.lost.add('/v1/drivers');
  await until('two questions that fail', () => page.faults.filter(fault => /v1.drivers/.test(fault)).length > 1);
  assert.match(await row(page, 'taxi-2'), /5\d s ago$/, 'what was found stays');
  await page.key('Enter');
  await follows(page, 'taxi-2');
  await until('its place of now', async () => /Position\n(now|\d s ago)/.test(await page.text('facts')));
  await close(page, /favicon|Failed to load resource/);
});

test('a list of trips that does not come is asked for again', options, async () => {
  const page = await open('/hub.js');
  await page.rewrite('/app.js', text => text.replace('searchMs = 5000', 'searchMs = 500'));
  await page.lose('/v1/trips');
  await page.go(`${hub.http}/`);
  await until('a question that fails', () => page.faults.some(fault => /v1.trips/.test(fault)));
  page.lost.clear();
  await until('trips', async () => /^taxi-2 To dropoff/.test(await row(page, 'taxi-2')));
  await close(page, /favicon|Failed to load resource/);
});

test('what a map needs and did not get comes with the next connection; until then no number is shown', options,
  async () => {
    const page = await open('/hub.js');
    await page.lose('/hub-areas.js');
    await holdSocket(page);
    await page.go(`${hub.http}/`);
    await live(page);
    await until('figures', async () => /hub well/.test(await page.text('tiles')));
    assert.deepEqual(await page.value(`[...document.querySelectorAll('#chips b')].map(({ innerText }) => innerText)`),
      ['–', '–', '–', '–', '–']);
    page.lost.clear();
    await page.value(`socket.onclose({ code: 1001, reason: 'bye' })`);
    await until('drivers', async () => (await rows(page)).length === 5);
    await until('counts', async () => `${await chips(page)}` === '2,1,1,1,0');
    await close(page, /favicon|net::ERR_CONNECTION_RESET|Failed to load resource/);
  });

test('half a world is shown as counts, and nearer there are arrows again', options, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  for (let step = 0; step < 15; step++) await page.click('#out');
  await until('counts', async () => /^5 in view, counted by cell/.test(await page.text('shown')));
  await page.click('#all');
  await until('drivers', async () => (await rows(page)).length === 5);
  assert.equal(await page.text('shown'), '5 in view');
  for (let step = 0; step < 3; step++) {
    await page.click('#in');
    await until('the next view', () => page.value('new Promise(done => setTimeout(() => done(true), 600))'));
  }
  const boxes = page.sent.map(text => JSON.parse(text).payload).filter(({ channel }) => channel?.startsWith('box:'));
  assert.ok(boxes.length > 1 && boxes.every(({ precision }) => precision >= 3 && precision <= 8));
  assert.ok(new Set(boxes.map(({ precision }) => precision)).size > 1, 'smaller cells nearby');
  assert.equal(await page.text('toast'), '', 'the hub refused no view');
  await close(page);
});

test('the whole fleet is who the map shows, without those who went offline over an hour ago', options, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  const before = await scale(page);
  await page.rewrite('/v1/drivers', text => {
    const answer = JSON.parse(text), [driver] = answer.drivers;
    answer.drivers.push({ ...driver, driverId: 'gone', latitude: -33, longitude: 151, online: false, age: 3700 });
    return JSON.stringify(answer);
  });
  for (let step = 0; step < 4; step++) await page.click('#out');
  await page.click('#all');
  await until('the scale of before', async () => await scale(page) > before / 2);
  await close(page);
});

test('a fleet on both sides of the antimeridian is shown without the world between', options, async t => {
  const own = await startHub('--dev-auth');
  const phones = [179.99, -179.99].map((longitude, index) => {
    const phone = new Hub(own.url, { dev: { role: 'driver', id: `d${index}` }, WebSocket: WebSocketByNet }).connect();
    phone.send({ latitude: -16.8, longitude, timestamp: Date.now(), accuracy: 5, heading: 0, speed: 0 });
    return phone;
  });
  t.after(async () => {
    await Promise.all(phones.map(phone => phone.close()));
    await own.remove();
  });
  const page = await browser.open(`${own.http}/`);
  await live(page);
  await until('both', async () => (await chips(page))[4] + (await chips(page))[0] === 2);
  await page.click('#all');
  await until('both in view', async () => await page.text('shown') === '2 in view');
  assert.match(await page.text('scale'), /^\d+ m$/);
  await close(page);
});

test('a tab that shows counts is hidden so long that it rests, and shows them again', options, async () => {
  const page = await open('/');
  await page.rewrite('/app.js', text => text.replace('unseenSeconds = 60', 'unseenSeconds = 2'));
  await page.go(`${hub.http}/`);
  await until('drivers', async () => (await rows(page)).length === 5);
  for (let step = 0; step < 15; step++) await page.click('#out');
  const counts = () => until('counts', async () => /^5 in view, counted by cell/.test(await page.text('shown')));
  await counts();
  let before = page.sent.length;
  const says = pattern => until(pattern, () => page.sent.slice(before).some(text => pattern.test(text)));
  await page.hide(true);
  await says(/"unsubscribe".*"viewId"/);   // it rests
  before = page.sent.length;
  await page.hide(false);
  await says(/"counts:/);
  await counts();
  await close(page);
});

/** From the next `go` on a page's socket is `socket` there. */
const holdSocket = page => page.before(`{
  const { WebSocket } = window;
  window.WebSocket = class extends WebSocket { constructor(...given) { super(...given); window.socket = this; } };
}`);

/** From the next `go` on a page hears what `change` makes of each of the hub's messages. */
const hears = (page, change) => page.before(`{
  const { get } = Object.getOwnPropertyDescriptor(MessageEvent.prototype, 'data'), change = ${change};
  Object.defineProperty(MessageEvent.prototype, 'data', { get() {
    const message = JSON.parse(get.call(this));
    change(message);
    return JSON.stringify(message);
  } });
}`);

test('over 3,000 in view are counted by cell, none beyond the window; a crowded cell says how many more it has',
  options, async t => {
    const own = await startHub('--dev-auth');
    const cars = [[0, 0], [500, 300], [1000, 600]].map((at, index) =>
      new Driver(own, `car-${index}`, { at, isMoving: false }));
    t.after(async () => {
      await Promise.all(cars.map(car => car.stop()));
      await own.remove();
    });
    const page = await browser.open(`${own.http}/`);
    await hears(page, ({ type, payload }) => {
      if (type === 'area_update') {
        window.crowded ??= payload.cell;
        if (payload.cell === window.crowded) payload.more = 675;
      }
      if (type !== 'counts_update') return;
      const [, block] = /:(.*)\//.exec(payload.channel), far = {};
      // The corner of the block that is the farthest from the cars.
      for (const corner of ['00', 'zz', 'bp', 'pb']) {
        const sides = [[-180, 180], [-90, 90]], bits = [...block + corner].flatMap(letter =>
          [16, 8, 4, 2, 1].map(bit => '0123456789bcdefghjkmnpqrstuvwxyz'.indexOf(letter) & bit));
        bits.forEach((bit, index) => {
          const side = sides[index % 2];
          side[bit ? 0 : 1] = (side[0] + side[1]) / 2;
        });
        far[corner] = Math.hypot(sides[0][0] - 11.575, sides[1][0] - 48.137);
      }
      const [corner] = Object.keys(far).sort((a, b) => far[b] - far[a]);
      const none = { on_trip: 0, unavailable: 0, background: 0, offline: 0 };
      if (!window.isHere) payload.cells.push({ cell: block + corner, available: 4000, ...none });
      else for (const cell of payload.cells) if (cell.available) cell.available = 4000;
      if (block.length > 1) window.counted = true;
    });
    await page.go(`${own.http}/`);
    await until('counts of cells nearby', () => page.value('window.counted'));
    assert.ok((await chips(page))[0] > 4000);
    const began = await page.value('performance.now()');
    await page.until(`performance.now() > ${began + 2500}`);
    assert.equal(await page.text('shown'), '3 of 678: zoom in for all');
    assert.equal((await rows(page)).length, 3);
    await page.before('window.isHere = true');
    await page.go(`${own.http}/`);
    const words = /^(4|8|12),000 in view, counted by cell: zoom in$/;
    await until('counts', async () => words.test(await page.text('shown')));
    assert.ok(await page.value(`[...document.querySelectorAll('#chips button')].every(chip =>
      chip.scrollWidth <= chip.clientWidth && chip.lastChild.getBoundingClientRect().right
        <= chip.getBoundingClientRect().right - 8)`), 'numbers of thousands stay within their chips');
    await page.screenshot('crowded');
    await close(page);
  });

test('more drivers than a list has at once, and elsewhere than the streets: all are counted and shown', options,
  async t => {
    const folder = mkdtempSync(join(tmpdir(), 'streets-'));
    writeFileSync(join(folder, 'a_nodes.csv'), 'id,lat,lon\n1,47.02,9.02\n2,46.98,8.98\n');
    writeFileSync(join(folder, 'a_edges.csv'), 'from,to,class\n1,2,primary\n');
    const own = await startHub('--dev-auth', '--streets', join(folder, 'a_edges.csv'));
    const fleet = spawn(binary, ['simulate', '--url', own.url, '--drivers', '1001', '--center', '47,9', '--radius',
      '2000', '--rate', '0.2'], { stdio: 'ignore' });
    const control = new Hub(own.url, { dev: { role: 'ops', id: 'tests' }, WebSocket: WebSocketByNet }).connect();
    const away = [];
    t.after(async () => {
      fleet.kill();
      await Promise.all([control.close(), ...away.map(driver => driver.stop())]);
      await own.remove();
      rmSync(folder, { recursive: true, force: true });
    });
    await until('a page of drivers, and one more', async () => (await control.find({ limit: 1000 })).next, 30);
    for (const [index, id] of ['far-1', 'far-2', 'far-3'].entries()) {
      away.push(new Driver(own, id, { at: [300 * index, 0], status: 'background' }));
    }
    const page = await browser.open(`${own.http}/`);
    await until('those that no street is near to', async () => `${await chips(page)}` === '1001,0,0,3,0');
    await page.click('#all');
    await until('both cities', async () => await page.text('shown') === '1,004 in view');
    await page.screenshot('cities');
    await close(page);
  });

test('streets in tiles: six at a time, once each; while they fail, rarely, or when the hub says', options, async () => {
  const page = await browser.open(`${hub.http}/hub.js`);
  const { latitude, longitude } = home, half = 0.1;   // zoom 11.7
  const box = [longitude - half, latitude - half, longitude + half, latitude + half];
  await page.rewrite('/v1/about', text => JSON.stringify({ ...JSON.parse(text),
    map: { streets: '/streets/14/{x}/{y}', box } }));
  await page.before(`{
    const { fetch } = window, streets = window.streets = { asked: [], open: 0, most: 0, times: [] };
    window.fetch = async (url, ...more) => {
      if (!String(url).startsWith('/streets/')) return fetch(url, ...more);
      streets.asked.push(url);
      streets.times.push(performance.now());
      streets.most = Math.max(streets.most, ++streets.open);
      await new Promise(resolve => setTimeout(resolve, 5));
      streets.open--;
      return streets.works ? Response.json({ ways: [] })
        : new Response('', { status: 429, headers: { 'Retry-After': streets.after ?? '' } });
    };
  }`);
  await page.go(`${hub.http}/`);
  await page.until('streets.asked.length === 12');
  await page.value('streets.after = 5; 0');
  await page.until('streets.asked.length === 18');
  const times = await page.value('streets.times');
  assert.ok(times[6] - times[5] >= 1000 && times[12] - times[11] >= 2000, `${times}`);
  await page.value('streets.works = true; 0');
  await page.drag([900, 400], [1000, 700], 20);   // to other tiles
  await page.until('streets.asked.length > 18');
  assert.ok(await page.value('streets.times[18] - streets.times[17]') >= 5000);
  let before;
  await until('all', async () => {
    const now = await page.value('streets.open ? 0 : streets.asked.length');
    if (now && now === before) return true;
    before = now;
    return new Promise(resolve => { setTimeout(resolve, 300, false); });
  });
  assert.ok(before > 300, `${before} tiles`);
  assert.equal(await page.value('new Set(streets.asked.slice(18)).size'), before - 18, 'once each');
  assert.equal(await page.value('streets.most'), 6);
  await close(page, /favicon/);
});

test('of more tiles of streets than are kept the oldest go, and come again where they are shown', options, async () => {
  const page = await browser.open(`${hub.http}/hub.js`);
  const { latitude, longitude } = home, half = 0.01;
  const box = [longitude - half, latitude - half, longitude + half, latitude + half];
  await page.rewrite('/v1/about', text => JSON.stringify({ ...JSON.parse(text),
    map: { streets: '/streets/14/{x}/{y}', box } }));
  await page.rewrite('/map.js', text => text.replace('keptStreets = 2048', 'keptStreets = 2'));
  await page.before(`{
    const { fetch } = window, asked = window.asked = [];
    window.fetch = async (url, ...more) => {
      if (!String(url).startsWith('/streets/')) return fetch(url, ...more);
      asked.push(url);
      return Response.json({ ways: [] });
    };
  }`);
  await page.go(`${hub.http}/`);
  let before;
  const all = () => until('all', async () => {
    const now = await page.value('asked.length');
    if (now && now === before) return true;
    before = now;
    return new Promise(resolve => { setTimeout(resolve, 300, false); });
  });
  await all();
  const early = await page.value('asked[8]'), drag = (from, to) => page.drag([from, 400], [to, 400], 20);
  for (let step = 0; step < 6; step++) await drag(1000, 400);
  await all();
  assert.equal(await page.value('new Set(asked).size'), before, 'each once on the way');
  for (let step = 0; step < 6; step++) await drag(400, 1000);
  await until('an early one again', () => page.value(`asked.lastIndexOf('${early}') > 8`));
  await close(page, /favicon/);
});

/** A folder of images round home, all of one red pixel: `across` and `down` of it on each side, for each zoom. */
function redTiles(zooms, across, down) {
  const folder = mkdtempSync(join(tmpdir(), 'tiles-'));
  const red = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe'
    + 'AAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC', 'base64');
  const east = (home.longitude + 180) / 360;
  const south = 0.5 - Math.asinh(Math.tan(home.latitude * Math.PI / 180)) / (2 * Math.PI);
  for (const zoom of zooms) {
    const [x, y] = [east, south].map(part => Math.floor(part * 2 ** zoom));
    for (let column = x - across; column <= x + across; column++) {
      mkdirSync(join(folder, `${zoom}/${column}`), { recursive: true });
      for (let row = y - down; row <= y + down; row++) writeFileSync(join(folder, `${zoom}/${column}/${row}.png`), red);
    }
  }
  return folder;
}
/** Whether the ground is red in the middle. */
const isRed = page => page.value(`(() => {
  const canvas = document.getElementById('still'), copy = document.createElement('canvas');
  Object.assign(copy, { width: 1, height: 1 });
  const ink = copy.getContext('2d', { willReadFrequently: true });
  ink.drawImage(canvas, Math.floor(canvas.width / 2), Math.floor(canvas.height / 2), 1, 1, 0, 0, 1, 1);
  const [r, g, b] = ink.getImageData(0, 0, 1, 1).data;
  return r > 100 && g < 60 && b < 60;
})()`);

test('images of a folder, stretched beyond their zooms, and none far above them', options, async t => {
  const folder = redTiles([11, 12], 1, 1);
  const own = await startHub('--dev-auth', '--tiles', folder, '--attribution', '© painters');
  const driver = new Driver(own, 'd1', {});
  t.after(async () => {
    await driver.stop();
    await own.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const page = await browser.open(`${own.http}/`);
  await until('the driver', async () => (await rows(page)).length === 1);
  await until('images, stretched', () => isRed(page));
  assert.match(await page.value('document.body.innerText'), /© painters/);
  await page.screenshot('tiles');
  for (let step = 0; step < 9; step++) await page.click('#out');
  await until('the grid', async () => !await isRed(page));
  const asked = await page.value(`performance.getEntriesByType('resource').map(({ name }) => name)
    .filter(name => name.includes('/tiles/')).map(name => +name.split('/').at(-3))`);
  assert.ok(asked.length && asked.every(zoom => zoom === 11 || zoom === 12), `${asked}`);
  await close(page);
});

test('a window with more images than are kept shows them all, and makes none again', options, async t => {
  const folder = redTiles([11], 20, 8);
  const own = await startHub('--dev-auth', '--tiles', folder);
  const away = [new Driver(own, 'd1', {}), new Driver(own, 'd2', { at: [-200_000, 0] })];
  t.after(async () => {
    await Promise.all(away.map(driver => driver.stop()));
    await own.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const page = await browser.open(`${own.http}/`, { width: 2560, height: 1440 });
  await page.value('performance.setResourceTimingBufferSize(5000)');
  await until('both', async () => (await rows(page)).length === 2);
  await page.click('#all');
  const asked = () => page.value(`performance.getEntriesByType('resource')
    .filter(({ name }) => name.includes('/tiles/')).length`);
  await until('all images', async () => await asked() > 256 && await isRed(page));
  await page.value(`window.made = 0; const Before = Image;
    window.Image = function () { made++; return new Before(); }; 0`);
  const now = await page.value('performance.now()');
  await page.key('d');   // draws all anew
  await page.until(`performance.now() > ${now + 1500}`);
  assert.ok(await page.value('made') < 20, `${await page.value('made')} images were made again`);
  await close(page);
});

test('who zooms while the camera still goes to a driver has zoomed', options, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  const scaleWith = async zooming => {
    // As soon as the card is there the camera is on its way.
    await page.value(`new Promise(done => {
      const look = () => document.getElementById('follow').hidden ? requestAnimationFrame(look) : done(${zooming});
      document.querySelector('.row:nth-child(2)').click();
      look();
    })`);
    const now = await page.value('performance.now()');
    await page.until(`performance.now() > ${now + 1000}`);
    const pixels = await scale(page);
    await page.key('Escape');
    for (let step = 0; step < 3; step++) await page.click('#out');
    return pixels;
  };
  await scaleWith('0');   // the page has shown all by then
  const ratio = await scaleWith('0') / await scaleWith(`document.getElementById('out').click()`);
  assert.ok(Math.abs(ratio - 2) < 0.1, `${ratio} instead of 2`);
  await close(page);
});

test('raw fixes: where they were measured, and why one was refused', options, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  await page.click('.row:nth-child(2)');
  await follows(page, 'taxi-2');
  await until('the mean distance', async () => /Raw − shown\n[\d.]+ m/.test(await page.text('facts')));
  await page.click('#raw');
  // What is far off the map is refused: six steps out it is on the map.
  for (let step = 0; step < 6; step++) await page.click('#out');
  drivers['taxi-2'].aside = 40_000;
  await until('a reason', () => written(page, 'implausible location'));
  await page.screenshot('raw');
  await close(page);
});

test('a click on an arrow follows it; the card\'s switches', options, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  await page.click('.row:nth-child(2)');
  await follows(page, 'taxi-2');
  let x, y;
  await until('the one beside it, which goes along', async () => {
    const now = await page.value('performance.now()');   // the camera may still be on its way
    await page.until(`performance.now() > ${now + 500}`);
    const places = await since(page, 'taxi-3', now);
    [, x, y] = places.at(-1) ?? [];
    return places.length > 1 && places.every(place => Math.hypot(x - place[1], y - place[2]) < 2);
  });
  await page.press(x, y - 25);
  await follows(page, 'taxi-3');
  const fence = '<img.* inside', cell = '[0-9b-hjkmnp-z]{4,8}';
  /** How often texts of a kind were written in the last 300 ms. */
  const writes = async pattern => {
    const now = await page.value('performance.now()');
    await page.until(`performance.now() > ${now + 300}`);
    return page.value(`[...written].filter(([text, times]) => /^(${pattern})$/.test(text)
      && times.at(-1)[0] > ${now + 100}).length`);
  };
  await until('the other one', () => writes('taxi-2'));
  for (const [id, pattern, isShown] of [['labels', 'taxi-2', true], ['fences', fence, true], ['cells', cell, false]]) {
    assert.equal(await writes(pattern) > 0, isShown, id);
    await page.click(`#${id}`);
    assert.equal(await writes(pattern) > 0, !isShown, `${id}, switched`);
    await page.click(`#${id}`);
    assert.equal(await writes(pattern) > 0, isShown, `${id}, switched back`);
  }
  await close(page);
});

test('by keys alone; dark and light is remembered; less motion sets markers down', options, async () => {
  const page = await open('/', { still: true });
  await until('drivers', async () => (await rows(page)).length === 5);
  for (let n = 0; n < 12 && await page.value('document.activeElement.id') !== 'list'; n++) await page.key('Tab');
  await page.key('ArrowDown');
  await page.key('ArrowDown');
  const active = () => page.value(`(() => {
    const { innerText } = document.getElementById(
      document.getElementById('list').getAttribute('aria-activedescendant')) ?? { innerText: 'none' };
    return innerText.split('\\n')[0] + ' ' + getComputedStyle(document.querySelector('.row.active')).outlineStyle;
  })()`);
  assert.equal(await active(), 'taxi-2 solid');
  const chip = `document.querySelector('#chips .on_trip').click()`;
  await page.value(chip);
  assert.equal(await active(), 'taxi-2 solid', 'though it is the first now');
  await page.value(chip);
  assert.equal(await active(), 'taxi-2 solid');
  await page.key('Enter');
  await follows(page, 'taxi-2');
  await page.key('ArrowRight');   // within the list it does nothing
  await page.value('document.activeElement.blur()');
  await page.key('ArrowRight');
  assert.equal(await page.shown('recentre'), true);
  const before = await scale(page);
  await page.key('+');
  assert.ok(await scale(page) > 1.2 * before);
  const began = await page.value('performance.now()');
  await page.until(`performance.now() > ${began + 3000}`);
  const places = new Set((await since(page, 'taxi-2', began)).map(([, , y]) => Math.round(y)));
  assert.ok(places.size >= 2 && places.size <= 5, `${places.size} places in 3 s`);
  const isDark = () => page.value(`document.documentElement.classList.contains('dark')`);
  assert.equal(await isDark(), true);
  await page.key('d');
  assert.equal(await isDark(), false);
  await page.screenshot('light');
  await page.go(`${hub.http}/`);
  assert.equal(await isDark(), false);
  await close(page);
});

test('a phone: four figures, a sheet, fingers', options, async () => {
  await drivers['van-5'].stop();   // the last test but one finds it offline
  const page = await open('/', { width: 390, height: 844, scale: 2, touch: true, dark: false });
  await until('drivers', async () => (await rows(page)).length >= 3);
  const tiles = `[...document.querySelectorAll('.tile')].filter(tile => tile.checkVisibility()).length`;
  assert.equal(await page.value(tiles), 4);
  const wide = await page.value('document.documentElement.scrollWidth');
  assert.equal(wide, 390, 'nothing sticks out');
  const before = await scale(page);
  const two = apart => [[195 - apart, 250], [195 + apart, 250]];
  await page.fingers('touchStart', ...two(30));
  for (const apart of [40, 50, 60, 70, 80]) await page.fingers('touchMove', ...two(apart));
  await page.fingers('touchEnd');
  await until('a larger scale', async () => await scale(page) > 1.8 * before);
  const height = () => page.value(`document.getElementById('fleet').offsetHeight`);
  const low = await height();
  await page.drag([195, 844 - low + 10], [195, 150]);
  await until('a higher sheet', async () => await height() > low + 100);
  await page.drag([195, 844 - await height() + 10], [195, 800]);
  await until('a low one, at rest', async () => await height() < 125);
  await page.click('#grip');
  await until('a higher one, at rest', async () => await height() === Math.round(0.46 * 844));
  await page.click('#all');
  await until('all again', async () => (await rows(page))[1]?.startsWith('taxi-2 '));
  await page.click('.row:nth-child(2)');
  await until('a card', () => page.shown('follow'));
  await page.screenshot('phone');
  await page.drag([195, 160], [120, 220]);
  assert.equal(await page.shown('recentre'), true);
  await close(page);
});

// MARK: Tokens and the rider's page

test('a token: asked for, refused, taken; never in the address', options, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-')), key = join(folder, 'secret');
  writeFileSync(key, randomBytes(32).toString('hex'), { mode: 0o600 });
  const closed = await startHub('--token-keys', key);
  t.after(async () => {
    await closed.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const make = (...more) => run('token', '--key', key, '--role', 'ops', '--sub', 'O1', ...more);
  const page = await browser.open(`${closed.http}/`);
  await until('the field', () => page.shown('token'));
  assert.doesNotMatch(await page.text('tiles'), /hub/, 'nothing is known of it');
  assert.equal(await page.shown('dev'), false);
  await page.value(`document.getElementById('token-text').value = 'no.to.ken'`);
  await page.key('Enter');
  await until('a refusal', async () => /did not take/.test(await page.text('token')), 20);
  await page.screenshot('token');
  const short = await make('--expires', '6s');
  await page.value(`document.getElementById('token-text').value = '${short}'`);
  await page.click('#token button');
  await until('live', async () => await page.text('state') === 'live', 20);
  await until('the end of the token', async () => /ends soon/.test(await page.text('token')), 20);
  await page.value(`document.getElementById('token-text').value = '${await make()}'`);
  await page.click('#token button');
  const began = Date.now();
  await until('the old one has ended', () => Date.now() - began > 7000);
  assert.equal(await page.text('state'), 'live', 'it was renewed in place');
  await holdSocket(page);
  await page.go(`${closed.http}/`);
  await live(page);
  await page.value(`socket.onclose({ code: 1009, reason: 'too much' })`);
  await until('what went wrong', async () => /went wrong .too much./.test(await page.text('toast')));
  assert.equal(await page.shown('token'), false, 'with the token all is well');
  await close(page, refusals);

  const rider = await run('token', '--key', key, '--role', 'rider', '--sub', 'P1');
  const other = await browser.open(`${closed.http}/#token=${rider}`);
  await until('a field', async () => /not one of a control room/.test(await other.text('token')));
  await until('its words', async () => await other.text('state') === 'no good token');
  await other.value(`document.getElementById('token-text').value = '${await make()}'`);
  await other.click('#token button');
  await until('live', () => other.value(`document.getElementById('state')?.innerText === 'live'
    && document.getElementById('token').checkVisibility() === false`));
  await until('figures', async () => /hub well/.test(await other.text('tiles')));
  await close(other, refusals);

  const second = await browser.open(`${closed.http}/#token=${await make()}`);
  await until('live', async () => await second.text('state') === 'live');
  assert.equal(await second.value('location.href'), `${closed.http}/`);
  assert.equal(await second.value('history.length'), 2, 'about:blank and the page');
  let address;
  await second.rewrite('/v1/about', async text => {
    address = await second.value('location.href');
    return text;
  });
  await second.go(`${closed.http}/#token=${await make()}`);
  await until('live again', async () => await second.text('state') === 'live');
  assert.equal(address, `${closed.http}/`, 'at once');
  await close(second);
});

test('a token that cannot be sent is refused; one that is given between two attempts is taken', options, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-')), key = join(folder, 'secret');
  writeFileSync(key, randomBytes(32).toString('hex'), { mode: 0o600 });
  const closed = await startHub('--token-keys', key);
  t.after(async () => {
    await closed.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const page = await browser.open(`${closed.http}/`);
  await page.rewrite('/hub.js', text => text.replace('tokenMs = 30_000', 'tokenMs = 1_000'));
  await page.go(`${closed.http}/`);
  await until('the field', () => page.shown('token'));
  const give = async token => {
    await page.value(`document.getElementById('token-text').value = '${token}'`);
    await page.click('#token button');
  };
  await give('a b');
  await until('a refusal', async () => await page.shown('token') && /did not take/.test(await page.text('token')));
  await until('no question', () => page.value(`document.getElementById('pill').className === 'pill waiting'`));
  await give(await run('token', '--key', key, '--role', 'ops', '--sub', 'O1'));
  await until('live', () => page.value(`document.getElementById('state')?.innerText === 'live'
    && !document.getElementById('token').checkVisibility()`));
  await close(page, refusals);
});

test('a map that waits for a token asks for nothing meanwhile', options, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-')), key = join(folder, 'secret');
  writeFileSync(key, randomBytes(32).toString('hex'), { mode: 0o600 });
  const closed = await startHub('--token-keys', key);
  t.after(async () => {
    await closed.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  const page = await browser.open(`${closed.http}/hub.js`);
  await page.rewrite('/app.js', text => text.replace('fencesMs = 5000', 'fencesMs = 10')
    .replace('searchMs = 5000', 'searchMs = 10'));
  await page.go(`${closed.http}/`);
  await until('the field', () => page.shown('token'));
  await page.value(`{
    const query = document.getElementById('query');
    query.value = 'taxi';
    query.oninput();
  }; 0`);
  await page.until('performance.now() > 4000');
  const token = await run('token', '--key', key, '--role', 'ops', '--sub', 'O1');
  await page.value(`document.getElementById('token-text').value = '${token}'`);
  await page.click('#token button');
  await live(page);
  for (const what of ['/v1/fences', 'search=taxi']) {
    const asked = () => page.value(`performance.getEntriesByType('resource')
      .filter(({ name }) => name.includes('${what}')).map(({ startTime }) => startTime)`);
    const [first] = await until(what, async () => (await asked()).length && asked());
    await page.until(`performance.now() > ${first + 500}`);
    assert.ok((await asked()).filter(time => time < first + 500).length <= 2, 'at once, and with the next second');
  }
  await close(page, /favicon|Failed to load resource/);
});

/** A hub that takes tokens, with a trip that is driven, and what opens the rider's page of it. */
async function ride(t, ...more) {
  const folder = mkdtempSync(join(tmpdir(), 'keys-')), key = join(folder, 'secret');
  const secret = randomBytes(32).toString('hex');
  writeFileSync(key, secret, { mode: 0o600 });
  const own = await startHub('--token-keys', key, '--sampling', '1', '--grant-grace', '0',
    '--log-level', 'debug', ...more.flatMap(name => [name, key]));
  const make = (role, sub, ...more) => run('token', '--key', key, '--role', role, '--sub', sub, ...more);
  const control = new Hub(own.url, { token: await make('ops', 'O1'), WebSocket: WebSocketByNet }).connect();
  await control.move('R1', 'requested', { driverId: 'D1', riderId: 'P1', pickup: home,
    dropoff: { latitude: home.latitude + north(5000), longitude: home.longitude } });
  const credential = { token: await make('driver', 'D1', '--trip', 'R1') };
  const driver = new Driver(own, 'D1', { status: 'on_trip', trip: 'R1', credential });
  t.after(async () => {
    await Promise.all([control.close(), driver.stop()]);
    await own.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  for (const status of ['accepted', 'driver_en_route', 'arrived_pickup', 'trip_started']) {
    await driver.hub.move('R1', status);
  }
  const open = path => browser.open(own.http + path, { width: 390, height: 844, scale: 2, touch: true, dark: false });
  return { own, make, control, driver, open, secret };
}
const refusals = /WebSocket connection|Failed to load resource/;

test('the rider\'s page: to the end of the trip; another trip; expired', options, async t => {
  const { make, driver, open, own, secret } = await ride(t);
  const token = await make('rider', 'P1', '--trip', 'R1'), page = await open(`/track/R1#token=${token}`);
  await until('an ETA', async () => /to dropoff/.test(await page.text('eta')));
  assert.match(await page.text('trip'), /On the way/);
  assert.match(await page.text('ride'), /Position (now|\d+ s ago)/);
  assert.equal(await page.value('location.href'), `${own.http}/track/R1`);
  assert.ok(!(await page.value('document.body.innerText')).includes('D1'), 'no driver\'s id');
  assert.match(await page.text('scale'), /^\d+ k?m$/);
  await page.screenshot('rider');
  await page.go(`${own.http}/track/R1`);
  await until('the same from a bookmark', async () => /to dropoff/.test(await page.text('eta')));
  await page.network({ latency: 300, bytesPerSecond: 50_000 });   // 3G
  await page.go(`${own.http}/track/R1`);
  await until('the same over 3G', async () => /to dropoff/.test(await page.text('eta')));
  await page.freeze(true);
  const asleep = Date.now();
  await until('a while', () => Date.now() - asleep > 4000);
  await page.freeze(false);
  await until('it to be live', async () => await page.text('state') === 'live', 20);
  await until('a position of now', async () => /Position (now|[34] s ago)/.test(await page.text('ride')));

  const renewed = await make('rider', 'P1', '--trip', 'R1', '--expires', '2h');
  await page.go(`${own.http}/track/R1#token=${renewed}`);
  await until('the same by another link in the same tab', async () => /to dropoff/.test(await page.text('eta')));
  assert.deepEqual(await page.value(`[location.href, localStorage.getItem('trip R1')]`),
    [`${own.http}/track/R1`, renewed]);

  const foreign = await open(`/track/R2#token=${token}`);
  await until('a word', async () => /another trip/.test(await foreign.text('over')));
  await close(foreign);
  // One that ended a minute ago: the hub's tool makes none.
  const parts = token.split('.'), claims = JSON.parse(Buffer.from(parts[1], 'base64url'));
  const ended = { ...claims, iat: claims.iat - 3600, exp: Math.floor(Date.now() / 1000) - 60 };
  const text = `${parts[0]}.${Buffer.from(JSON.stringify(ended)).toString('base64url')}`;
  const late = `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
  const expired = await open(`/track/R1#token=${late}`);
  await until('a word', async () => /has expired/.test(await expired.text('over')));
  await close(expired, refusals);
  // One that was copied with what stood behind it, which no socket takes.
  const longer = await open(`/track/R1#token=${token})`);
  await until('a word', async () => /This link has ended/.test(await longer.text('over')));
  await close(longer);

  // What says nothing of the link does not end it.
  await holdSocket(page);
  await page.go(`${own.http}/track/R1`);
  await until('a way', async () => /to dropoff/.test(await page.text('eta')));
  await page.value(`socket.onclose({ code: 1009, reason: '' })`);
  await until('a word', async () => /Something went wrong/.test(await page.text('over')));
  await page.go(`${own.http}/track/R1`);
  await until('it to work again', async () => /to dropoff/.test(await page.text('eta')));

  for (const status of ['arrived_destination', 'completed']) await driver.hub.move('R1', status);
  await until('the end', async () => /This trip has ended/.test(await page.text('over')));
  await page.screenshot('ended');

  // A web view without storage, or a browser that forbids it.
  for (const store of ['() => null', `() => { throw new Error('forbidden'); }`]) {
    const other = await open('/track/R1');
    await other.before(`Object.defineProperty(window, 'localStorage', { configurable: true, get: ${store} })`);
    await other.go(`${own.http}/track/R1#token=${token}`);
    await until('the end there, too', async () => /This trip has ended/.test(await other.text('over')));
    await close(other, refusals);
  }
  assert.equal(await page.value('localStorage.length'), 0, 'the token is forgotten');
  await close(page, refusals);
});

test('the rider\'s map keeps a zoom by hand, and else never loses the car', options, async t => {
  const { make, driver, open, own } = await ride(t), page = await open('/hub.js');
  await hears(page, ({ type, payload }) => {
    if (window.isFar && type === 'driver_location') payload.latitude += 0.3;
  });
  await page.go(`${own.http}/track/R1#token=${await make('rider', 'P1', '--trip', 'R1')}`);
  await until('a way', async () => /to dropoff/.test(await page.text('eta')));
  const wide = await scale(page);
  await page.click('#in');
  const near = await scale(page);
  assert.ok(near > 1.5 * wide);
  await driver.hub.move('R1', 'arrived_destination');
  await until('the next step', async () => /You have arrived/.test(await page.text('trip')));
  assert.equal(await scale(page), near);
  await page.click('#all');
  await until('all of it', async () => await scale(page) !== near);
  await page.value('window.isFar = true; 0');
  await until('the car, far away', async () => await scale(page) < wide / 2);
  await close(page, /favicon|Failed to load resource/);
});

test('the rider\'s map stands while the car drives on it', options, async t => {
  const { make, open, own } = await ride(t), token = await make('rider', 'P1', '--trip', 'R1');
  for (const [up, right] of [[5000, 0], [0, 5000]]) {
    const page = await open('/hub.js');
    await page.rewrite('/map.js', text => text.replace('fit(places, box) {', '$& window.fits++;'));
    await page.before('window.fits = window.positions = 0');
    await hears(page, `({ type, payload }) => {
      const trip = payload.trip ?? payload;
      if (trip.dropoff) Object.assign(trip.dropoff, { latitude: ${home.latitude + north(up)},
        longitude: ${home.longitude + east(right)} });
      if (type === 'driver_location') window.positions++;
    }`);
    await page.go(`${own.http}/track/R1#token=${token}`);
    await until('a way', async () => /to dropoff/.test(await page.text('eta')));
    const [positions, fits] = await page.value('[positions, fits]');
    await page.until(`positions >= ${positions + 5}`);
    assert.ok(await page.value('fits') <= fits + 1, 'for five positions');
    await close(page, /favicon|Failed to load resource/);
  }
});

/** From the next `go` on: an ETA that is past while `isPast`; no position any more but an end of them once `isGone`. */
const goneAndPast = page => hears(page, message => {
  const { type, payload } = message, sequences = window.sequences ??= {};
  if (type === 'subscribed' && /^(trip|driver):/.test(payload.channel)) {
    sequences[payload.channel] = payload.sequence;
    if (payload.snapshot?.eta && window.isPast) payload.snapshot.eta.arrivalTime = Date.now() - 61_000;
  }
  if (type === 'eta_update' && window.isPast) payload.arrivalTime = Date.now() - 61_000;
  if (window.isGone && /^(driver_location|area_update)$/.test(type)) {
    const { channel } = payload, sequence = sequences[channel] + 1;
    message.type = 'nothing';
    if (window.isGone[channel]) return;
    window.isGone[channel] = true;
    Object.assign(message, { type: 'notification', payload: { channel, kind: 'driver_offline', sequence,
      title: 'Driver offline', body: 'Nothing comes.' } });
  }
});
/** Makes ETAs go with positions that are 4 s old. */
const impatient = page => page.rewrite('/map.js', text => text.replace('age > 60 ||', 'age > 4 ||'));

test('an ETA goes when it is past or the position is old, and both pages say that a driver is offline', options,
  async t => {
    const { own, make, open } = await ride(t);
    const page = await open('/hub.js'), hasEta = isShown => async () => await page.shown('eta') === isShown;
    await goneAndPast(page);
    await impatient(page);
    await page.go(`${own.http}/track/R1#token=${await make('rider', 'P1', '--trip', 'R1')}`);
    await until('an ETA', hasEta(true));
    await page.value('window.isPast = true; 0');
    await until('none that is past', hasEta(false));
    await page.value('window.isPast = false; 0');
    await until('the next', hasEta(true));
    await page.value('window.isGone = {}; 0');
    await until('none by an old position', hasEta(false));
    assert.match(await page.text('age'), /^Your driver is offline: last seen \d+ s ago$/);
    await page.value('window.isGone = undefined; 0');
    await until('it again', async () => /^Position now$/.test(await page.text('age')) && hasEta(true)());
    await close(page, /favicon|Failed to load resource/);

    const room = await browser.open(`${own.http}/hub.js`);
    await goneAndPast(room);
    await impatient(room);
    await room.before('window.isGone = { "area:": true }');
    await room.go(`${own.http}/#token=${await make('ops', 'O1')}`);
    await live(room);
    await room.key('/');
    await room.type('D1');
    await until('it', async () => (await rows(room)).length === 1);
    await room.key('Enter');
    await follows(room, 'D1');
    await until('its state', async () => (await room.text('what')).startsWith('Offline'));
    await until('no ETA', async () => await room.shown('eta') === false);
    await close(room, /favicon|Failed to load resource/);
  });

test('a driver that is offline stays so on both pages when its last position comes again', options, async t => {
  const { own, make, driver, open } = await ride(t);
  const page = await open('/hub.js'), room = await browser.open(`${own.http}/hub.js`);
  for (const each of [page, room]) await holdSocket(each);
  await hears(page, ({ type, payload }) => {
    if (type === 'subscribed') window.answers = [...window.answers ?? [], payload];
  });
  await hears(room, message => {
    const { type, payload } = message;
    if (type === 'subscribed' && payload.channel === 'driver:D1') window.answers = [...window.answers ?? [], payload];
    if (/^(area_update|driver_location)$/.test(type)) message.type = 'nothing';
  });
  await room.rewrite('/v1/drivers', text => text.replaceAll('"online":true', '"online":false'));
  /** Where it says how old the position is, the second after the last answer. */
  const next = async (which, id) => {
    const before = await which.text(id);
    return until('the next second', async () => await which.text(id) !== before && which.text(id));
  };
  /** What its feed says. */
  const goneOffline = which => which.value(`{
    const [{ channel, sequence }] = answers;
    socket.onmessage({ data: JSON.stringify({ type: 'notification', timestamp: Date.now(), messageId: 'n',
      payload: { channel, kind: 'driver_offline', sequence: sequence + 1, title: 'a', body: 'b' } }) });
  }; 0`);
  /** The connection breaks; with the next one the last position comes, since the hub does not know that event. */
  const again = async which => {
    const { length } = await which.value('answers');
    await which.value(`socket.onclose({ code: 1001, reason: 'bye' })`);
    await which.until(`answers.length > ${length}`);
    const { snapshot } = await which.value('answers.at(-1)');
    assert.ok(snapshot?.position?.timestamp > 0);
  };

  await page.go(`${own.http}/track/R1#token=${await make('rider', 'P1', '--trip', 'R1')}`);
  await until('an ETA', async () => /to dropoff/.test(await page.text('eta')));
  await driver.stop();
  await until('its last position', async () => /^Position \d+ s ago/.test(await page.text('age')));
  await goneOffline(page);
  const isOffline = /^Your driver is offline: last seen \d+ s ago$/;
  await until('it to be offline', async () => isOffline.test(await page.text('age')));
  await again(page);
  assert.match(await next(page, 'age'), isOffline);
  await close(page, refusals);

  await room.go(`${own.http}/#token=${await make('ops', 'O1')}`);
  await live(room);
  await room.key('/');
  await room.type('D1');
  await until('it', async () => (await rows(room)).length === 1);
  await room.key('Enter');
  await follows(room, 'D1');
  await room.until('window.answers');
  await next(room, 'facts');
  assert.match(await room.text('what'), /^Offline/);
  await goneOffline(room);
  await again(room);
  await next(room, 'facts');
  assert.match(await room.text('what'), /^Offline/);
  await close(room, refusals);
});

const canShare = !skip && (await run('serve', '--help')).includes('--token-sign-key');
const shares = skip || (canShare ? false : 'the hub shares no trips');
test('a link that was shared shows the ride under another name, until it is revoked', { ...options, skip: shares },
  async t => {
    const { control, driver, open, own, make } = await ride(t, '--token-sign-key');
    const room = await browser.open(`${own.http}/#token=${await make('ops', 'O2')}`);
    await until('the driver', async () => (await rows(room)).length === 1);
    await room.click('.row');
    await until('its trip', () => room.shown('share'));
    await room.click('#share');
    await until('a link', async () => /\/track\/R1#token=\S{60}/.test(await room.text('shared')));
    await room.value(`{
      const { fetch } = window;
      window.fetch = async (url, ...more) => {
        const answer = await fetch(url, ...more);
        if (!String(url).includes('/shares')) return answer;
        await new Promise(resolve => { window.release = resolve; });
        return answer;
      };
      document.getElementById('toast').hidden = document.getElementById('shared').hidden = true;
    }; 0`);
    await room.click('#share');
    await room.until('window.release');
    assert.equal(await room.value(`document.getElementById('share').disabled`), true, 'once');
    await room.key('Escape');
    await room.value('release(); 0');
    await room.until(`!document.getElementById('share').disabled`);
    assert.deepEqual(await room.value(`['shared', 'toast'].map(id => document.getElementById(id).hidden)`),
      [true, true], 'the link of a trip that was left');
    await close(room);

    const share = await control.share('R1');
    const secret = share.token.split('.')[2];
    assert.ok(secret.length > 20 && share.url.includes(secret));
    const page = await open(share.url.replace(/^https?:\/\/[^/]*/, ''));
    await until('an ETA', async () => /to dropoff/.test(await page.text('eta')));
    const headers = { Authorization: `Bearer ${await make('ops', 'O1')}` };
    const answer = await fetch(`${own.http}/v1/trips/R1/shares/${share.shareId}`, { method: 'DELETE', headers });
    assert.ok(answer.ok);
    await until('its end', async () => /has ended\s+Whoever shared it has taken it back/.test(await page.text('over')));
    assert.equal(await page.shown('ride'), false);
    await close(page, refusals);

    // Opened only afterwards: the hub refuses each alike, and the page says no more than it knows.
    const says = async (what, { url }) => {
      const late = await open(url.replace(/^https?:\/\/[^/]*/, ''));
      await until(what, async () => what.test(await late.text('over')));
      await close(late, refusals);
    };
    await says(/This link has ended.*taken the link back/s, share);
    const soon = await control.share('R1', { expires: Date.now() + 1500 });
    await until('its end', () => Date.now() > soon.expires + 100);
    await says(/This link has expired/, soon);
    const intact = await control.share('R1');
    for (const status of ['arrived_destination', 'completed']) await driver.hub.move('R1', status);
    await says(/This link has ended\s+The trip is over/, intact);
    // It has been in addresses, subprotocols and headers; each page notes a Referer as a fault.
    assert.ok(/session|closed|GET/.test(own.log()), 'it logs much');
    assert.ok(!own.log().includes(secret), 'no log has it');
  });

test('a marker is within 5 m of the driver in 95 of 100 frames: turns, a fix a second, 3 m of noise', { skip }, t => {
  const sorted = errors.slice(50).sort((a, b) => a - b), late = sorted[Math.floor(0.95 * sorted.length)];
  t.diagnostic(`${sorted.length} frames, p50 ${sorted[sorted.length >> 1]?.toFixed(1)} m, p95 ${late?.toFixed(1)} m`);
  assert.ok(sorted.length > 100, `${sorted.length} frames`);
  assert.ok(late <= 5, `${late} m`);
});

test('what is wrong with a hub stands beside its figures', options, async t => {
  const own = await startHub('--dev-auth');
  t.after(() => own.remove());
  const page = await browser.open(`${own.http}/`);
  const says = word => until(word, async () => (await page.text('tiles')).includes(word));
  await says('hub well');
  for (const [change, word] of [['"journalLag":9', 'disk slow'], ['"errors":{"storage_full":1}', 'hub full'],
    ['"errors":{"internal":1}', 'hub faulty']]) {
    const [name] = change.match(/"\w+":/);
    await page.value(`{
      window.data ??= Object.getOwnPropertyDescriptor(MessageEvent.prototype, 'data');
      Object.defineProperty(MessageEvent.prototype, 'data', { configurable: true, get() {
        const text = data.get.call(this);
        return text.includes('"type":"stats"') ? text.replace(/${name}({[^}]*}|[^,}]+)/, '${change}') : text;
      } });
    }; 0`);
    await says(word);
  }
  await page.screenshot('ill');
  await page.value(`Object.defineProperty(MessageEvent.prototype, 'data', data); 0`);
  await says('hub well');
  await close(page);
});

test('a trip that ends lets its driver\'s card go; the exact id is found first; in view is what the window shows',
  options, async t => {
    const own = await startHub('--dev-auth', '--sampling', '1');
    const control = new Hub(own.url, { dev: { role: 'ops', id: 'O1' }, WebSocket: WebSocketByNet }).connect();
    const dropoff = { latitude: home.latitude + north(5000), longitude: home.longitude };
    await control.move('E1', 'requested', { driverId: 'car-1', riderId: 'P1', pickup: home, dropoff,
      route: [home, dropoff] });
    const made = [['car-1', { status: 'on_trip', trip: 'E1' }], ['car-12', { at: [300, 0] }],
      ['car-120', { at: [600, 0], isMoving: false }], ['car-7', { at: [9000, 0], isMoving: false }]];
    const cars = Object.fromEntries(made.map(([id, more]) => [id, new Driver(own, id, more)]));
    t.after(async () => {
      await Promise.all([control.close(), ...Object.values(cars).map(car => car.stop())]);
      await own.remove();
    });
    const move = status => cars['car-1'].hub.move('E1', status);
    await move('accepted');
    const page = await browser.open(`${own.http}/`);
    await until('all in view', async () => await page.text('shown') === '4 in view');
    await page.key('/');
    await page.type('car-12');
    await until('both', async () => (await rows(page)).length === 2);
    await page.key('Enter');
    await follows(page, 'car-12');
    await page.key('Escape');
    await page.key('Escape');
    await page.click('.row:nth-child(1)');
    await follows(page, 'car-1');
    await until('three in view', async () => await page.text('shown') === '3 in view');
    await until('its way to the pickup', async () => /to pickup at/.test(await page.text('eta')));
    for (const status of ['driver_en_route', 'arrived_pickup', 'trip_started']) await move(status);
    await until('its way to the dropoff', async () => /to dropoff at[^]* km · by road$/.test(await page.text('eta')));
    await move('arrived_destination');
    await until('no way any more', async () => await page.shown('eta') === false);
    assert.match(await page.text('trip'), /At dropoff/);
    await move('completed');
    cars['car-1'].trip = undefined;
    await until('no trip', async () => await page.shown('trip') === false
      && !(await page.text('what')).includes('E1') && await page.shown('eta') === false);
    await close(page);
  });

test('a trip that ends while the trips are loaded does not come back', options, async t => {
  const own = await startHub('--dev-auth', '--sampling', '1');
  const control = new Hub(own.url, { dev: { role: 'ops', id: 'O1' }, WebSocket: WebSocketByNet }).connect();
  await control.move('L1', 'requested', { driverId: 'car-1', riderId: 'P1', pickup: home, dropoff: home });
  const car = new Driver(own, 'car-1', { isMoving: false });
  t.after(async () => {
    await Promise.all([control.close(), car.stop()]);
    await own.remove();
  });
  for (const status of ['accepted', 'driver_en_route', 'arrived_pickup', 'trip_started']) {
    await car.hub.move('L1', status);
  }
  const page = await browser.open(`${own.http}/hub.js`);
  let release, isAsked = false;
  await page.rewrite('/v1/trips', async text => {
    isAsked = true;
    await new Promise(resolve => { release = resolve; });
    return text;
  });
  await page.go(`${own.http}/`);
  await until('its question', () => isAsked);
  for (const status of ['arrived_destination', 'completed']) await car.hub.move('L1', status);
  const began = await page.value('performance.now()');
  await page.until(`performance.now() > ${began + 500}`);   // the page has the event
  release();
  await until('the car', async () => (await rows(page)).length === 1);
  await page.key('/');
  await page.type('L1');
  const searched = await page.value('performance.now()');
  await page.until(`performance.now() > ${searched + 1500}`);
  assert.deepEqual(await rows(page), [], 'no trip, no driver of it');
  await close(page, /favicon/);
});

// MARK: Breaks

test('after a break the followed one has its track and its speeds from the hub, and no place that is off shows as fast',
  options, async t => {
    const { own, make } = await ride(t);
    const page = await browser.open(`${own.http}/#token=${await make('ops', 'O1')}`);
    let asked = 0;
    await page.rewrite('/v1/trips/R1/track.geojson', text => {
      asked++;
      const track = JSON.parse(text), { coordinates } = track.geometry;
      coordinates[coordinates.length >> 1][0] += east(40);
      coordinates.forEach((place, index) => index % 2 && place.push(519.5));   // phones measure altitude now and then
      return JSON.stringify(track);
    });
    await until('a row', async () => (await rows(page)).length === 1);
    const began = Date.now();
    await until('some fixes', () => Date.now() - began > 8000);
    await page.click('.row');
    await follows(page, 'D1');
    const max = async () => Number(/max (\d+) km/.exec(await page.text('pace-max'))?.[1]);
    await until('a track', () => asked > 0);
    const loaded = await page.value('performance.now()');
    await page.until(`performance.now() > ${loaded + 2200}`);
    assert.ok(await max() > 30 && await max() < 60, `${await max()} km/h`);
    const before = asked;
    await own.kill('SIGKILL');
    await own.start();
    await until('the track again', () => asked > before, 30);
    await close(page, brokenSocket);
  });

test('kill -9 and back; a driver that is gone stays, as offline', { skip, timeout: 90_000 }, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  await live(page);
  await hub.kill();
  await until('its words', async () => /^reconnecting in \d+ s$/.test(await page.text('pill')));
  assert.equal(await page.text('state'), 'reconnecting', 'the rest is not read out each second');
  await until('no figures', async () => /Fixes in\s+–[^]*hub silent\s+–\/s/.test(await page.text('tiles')));
  assert.ok(await page.value(`document.getElementById('pill').getBoundingClientRect().right
    < document.getElementById('fleet').getBoundingClientRect().right`), 'all of it can be read');
  await page.screenshot('gone');
  await hub.start();
  const back = Date.now();
  await until('live again', async () => await page.text('state') === 'live', 30);
  assert.ok(Date.now() - back < 12_000, 'back-off and 2 s');
  await until('all of them', async () => {
    const seen = (await rows(page)).map(text => text.split(' ')[0]);
    return seen.length === new Set(seen).size && ['taxi-1', 'taxi-2', 'taxi-3', 'van-4'].every(id => seen.includes(id));
  }, 30);
  await until('it is shown', async () => /Offline/.test(await row(page, 'van-5')), 70);
  await until('counts', async () => (await chips(page)).at(-1) === 1);
  await page.screenshot('offline');
  await close(page, brokenSocket);
});

test('the page of a hub that has become another release says so, and is loaded anew', options, async t => {
  const own = await startHub('--dev-auth');
  t.after(() => own.remove());
  const page = await browser.open(`${own.http}/`);
  await live(page);
  await page.value('window.isOld = true');
  await page.rewrite('/v1/about', text => text.replace(/"release":"[^"]*"/, '"release":"99.1"'));
  await own.kill('SIGTERM');
  await until('why', async () => /The hub is stopping/.test(await page.text('toast')));
  await own.start();
  await until('its words', async () => /The hub is now 99.1/.test(await page.text('toast')), 30);
  await until('the new page', () => page.value(`window.isOld !== true
    && document.getElementById('state')?.innerText === 'live'`), 20);
  await page.value('window.isOld = true');
  const began = Date.now();
  await until('some seconds', () => Date.now() - began > 2500);
  assert.equal(await page.text('toast'), '', 'once');
  await close(page, brokenSocket);
});
