// What the tests of pages have in common: a hub, five drivers, a browser, and what they look at. Each file that imports
// it has its own.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { Hub, Marker } from '../../../Sources/Pages/web/hub.js';
import { openBrowser, skip as noBrowser } from './browser.mjs';
import { binary, startHub, until } from './hub-process.mjs';
import { WebSocketByNet } from './websocket.mjs';

export const skip = noBrowser
  || (binary ? false : 'there is no locationhub: set HUB_BINARY, or build it (make release)');
export const options = { skip, timeout: 300_000 };
export const home = { latitude: 48.137, longitude: 11.575 }, speed = 12;
export const north = meters => meters / 111_195;
export const east = meters => meters / 111_195 / Math.cos(home.latitude * Math.PI / 180);

// MARK: A world of drivers

/** Metres of a phone's error, the same in each run (a linear congruential generator, Box and Muller). */
function gauss(deviation) {
  let state = 1;
  const uniform = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  return () => deviation * Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Where a way through blocks of houses leads in so many metres: 60 m straight on, a quarter turn of 36 m (at 12 m/s
 *  4 m/s²), right, left, left, right, and again; [metres east, metres north, heading in degrees]. */
export function throughBlocks(meters) {
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
export class Driver {
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

export let browser, hub, ops, drivers = {};
/** Metres between where a marker of taxi-1 would be drawn and where it is, ten times a second. */
export const errors = [];
let measuring;
function measureMarker(driver) {
  const marker = new Marker(), feed = ops.driver(driver.id);
  feed.on('position', position => marker.push(position));
  measuring = setInterval(() => {
    const seen = marker.at(ops.now()), place = driver.placeAt(Date.now());
    const [up, right] = [seen.latitude - place.latitude, seen.longitude - place.longitude].map(part => part * 111_195);
    // One that is older comes of a fix that was late: the driver, this process, stood still.
    if (seen.age < 2) errors.push(Math.hypot(up, right * Math.cos(home.latitude * Math.PI / 180)));
  }, 100);
}
const pages = [];
export async function open(path, look) {
  const page = await browser.open(hub.http + path, look);
  pages.push(page);
  return page;
}
/** What Chromium itself says of a socket that broke, or that breaks while something is sent. */
export const brokenSocket =
  /WebSocket connection|WebSocket is already in CLOSING|net::ERR_CONNECTION|Failed to load resource/;
/** Closes a page, on which nothing may have gone wrong but what is named. */
export async function close(page, allowed = /^$/) {
  const faults = page.faults.filter(fault => !allowed.test(fault));
  await page.close();
  assert.deepEqual(faults, []);
}
export const hostile = '<img src=x onerror=alert(1)>';

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
export const rows = page => page.value(`[...document.querySelectorAll('.row')].filter(row => row.checkVisibility())
  .map(row => row.innerText.replaceAll('\\n', ' '))`);
export const row = async (page, id) => (await rows(page)).find(text => text.startsWith(`${id} `)) ?? '';
export const chips = page => page.value(`[...document.querySelectorAll('#chips button')].map(chip => chip.innerText)`)
  .then(texts => texts.map(text => Number(text.match(/[\d,]+$/)?.[0].replace(',', ''))));
export const follows = (page, id) => until(`the card of ${id}`, async () =>
  await page.shown('follow') && await page.text('name') === id);
export const live = page => until('a live page', async () => await page.text('state') === 'live');
/** Pixels of a metre, by the scale. */
export const scale = page => page.value(`(() => {
  const [, figure, unit] = document.getElementById('scale').innerText.match(/(\\d+) (k?m)/);
  return document.getElementById('scale').offsetWidth / (figure * (unit === 'km' ? 1000 : 1));
})()`);
/** Where a text was written last on the map, and when (ms). */
export const written = (page, text) => page.value(`written.get(${JSON.stringify(text)})?.at(-1)`);
export const since = (page, text, time) => page.value(`(written.get(${JSON.stringify(text)}) ?? []).filter(([at]) =>
  at > ${time})`);

/** From the next `go` on a page's socket is `socket` there. */
export const holdSocket = page => page.before(`{
  const { WebSocket } = window;
  window.WebSocket = class extends WebSocket { constructor(...given) { super(...given); window.socket = this; } };
}`);

/** From the next `go` on a page hears what `change` makes of each of the hub's messages. */
export const hears = (page, change) => page.before(`{
  const { get } = Object.getOwnPropertyDescriptor(MessageEvent.prototype, 'data'), change = ${change};
  Object.defineProperty(MessageEvent.prototype, 'data', { get() {
    const message = JSON.parse(get.call(this));
    change(message);
    return JSON.stringify(message);
  } });
}`);
