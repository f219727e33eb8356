// The client in a browser: the code of protocol/javascript.md as it stands there, with the browser's own WebSocket,
// IndexedDB and modules. Its rules are tested without one, elsewhere.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Hub } from '../../Sources/Pages/web/hub.js';
import { openBrowser, skip as noBrowser } from './support/browser.mjs';
import { binary, startHub, until } from './support/hub-process.mjs';
import { WebSocketByNet } from './support/websocket.mjs';

const skip = noBrowser || (binary ? false : 'there is no locationhub: set HUB_BINARY, or build it (make release)');

/** Runs a block of code of the page, with this hub and development credentials for those in it. */
function runBlock(page, heading, { url }, dev) {
  const text = readFileSync(new URL('../../protocol/javascript.md', import.meta.url), 'utf8');
  const [, code] = new RegExp(`## ${heading} in \\d+ lines\n\n\`\`\`js\n([^]*?)\n\`\`\``).exec(text);
  const here = code.replace(/import (.*) from ('.*');/, 'const $1 = await import($2);')
    .replace(/'wss:[^']*', \{ (token[^,}]*|token)/, `'${url}', { ${dev ? `dev: ${JSON.stringify(dev)}` : '$1'}`);
  return page.value(`(async () => {\n${here}\nwindow.hub = hub;\n})()`);
}

test('the rider in 12 lines and the driver in 6 run in a browser; what was unsent outlives the page',
  { skip, timeout: 300_000 }, async t => {
    const [browser, hub] = await Promise.all([openBrowser(), startHub('--dev-auth', '--sampling', '1',
      '--grant-grace', '0')]);
    const ops = new Hub(hub.url, { dev: { role: 'ops', id: 'O1' }, WebSocket: WebSocketByNet }).connect();
    t.after(async () => {
      await ops.close();
      await browser.close();
      await hub.remove();
    });
    await ops.move('T1', 'requested', { driverId: 'D1', riderId: 'R1', pickup: { latitude: 48.11, longitude: 11.5 } });

    const rider = await browser.open(`${hub.http}/hub.js`);
    await rider.value(`Object.assign(window, { moved: [], eta: {}, banner: {}, car: {
      moveTo(...place) { moved.push(place); }, remove() { this.isGone = true; } } }); 0`);
    await runBlock(rider, 'A rider', hub, { role: 'rider', id: 'R1' });
    await rider.until(`banner.textContent === '' && hub.state.is === 'live'`);

    // Its token does not come: what it says stays in IndexedDB.
    const driver = await browser.open(`${hub.http}/hub.js`), time = Date.now() - 20_000;
    const begin = async (latitude, dev) => {
      await driver.value(`{
        const { fetch } = window;
        const coords = { latitude: ${latitude}, longitude: 11.5, accuracy: 5, heading: 0, speed: 11 };
        window.fetch = (url, ...more) => url === '/my/token' ? new Promise(() => {}) : fetch(url, ...more);
        navigator.geolocation.watchPosition = success => success({ coords, timestamp: ${dev ? Date.now() : time} });
      }`);
      await runBlock(driver, 'A driver', hub, dev);
    };
    await begin(48.1);
    await until('what is unsent', () => driver.value(`(async () => {
      const done = request => new Promise(resolve => { request.onsuccess = () => resolve(request.result); });
      if (!(await indexedDB.databases()).some(({ name }) => name === 'fixes')) return false;
      const database = await done(indexedDB.open('fixes')), store = database.transaction('queue').objectStore('queue');
      const entries = await done(store.getAll());
      database.close();
      return entries.map(({ type }) => type).sort().join() === 'location_update,trip_status';
    })()`));
    await driver.go(`${hub.http}/hub.js`);
    await begin(48.1002, { role: 'driver', id: 'D1' });
    await until('the trip to be accepted', async () => (await ops.getTrip('T1')).status === 'accepted');
    const times = async () => (await ops.track('T1', { source: 'raw' })).properties.times.flat(2);
    await until('the fix of the page before, and one of this', async () => {
      const all = await times().catch(() => []);
      return all.length === 2 && all[0] === time;
    });

    await until('a car that moves', () => rider.value(`(() => {
      const [latitude, longitude] = moved.at(-1);
      return Math.abs(latitude - 48.1002) < 0.002 && Math.abs(longitude - 11.5) < 0.001 && !car.faded;
    })()`));
    await rider.until('eta.dateTime > Date.now()');
    await ops.move('T1', 'cancelled');
    await rider.until('car.isGone');
    // The second page says `accepted` once more.
    const expected = /favicon|a trip cannot go from accepted to accepted/;
    assert.deepEqual([...rider.faults, ...driver.faults].filter(fault => !expected.test(fault)), []);
  });
