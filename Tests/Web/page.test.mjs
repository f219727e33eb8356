// The live map in a real browser, with a real hub and drivers: what is seen, by what is done. Each page must leave no
// message on the console, ask nobody but its hub, and keep its content security policy.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Hub } from '../../Sources/Pages/web/hub.js';
import { binary, startHub, until } from './support/hub-process.mjs';
import { WebSocketByNet } from './support/websocket.mjs';
import { Driver, browser, chips, close, drivers, east, follows, hears, holdSocket, home, hostile, hub, live, open, ops,
  options, row, rows, scale, since, speed, written } from './support/world.mjs';

test('what a page loads, compressed', () => {
  const bytes = name => readFileSync(new URL(`../../Sources/Pages/web/${name}`, import.meta.url));
  const size = name => gzipSync(bytes(name), { level: 9 }).length;
  const sum = names => names.split(' ').reduce((total, name) => total + size(name), 0);
  const both = 'hub.js hub-areas.js hub-http.js map.js style.css';
  const map = sum(`${both} index.html app.js`), ride = sum(`${both} track.html track.js`);
  assert.ok(map <= 45 * 1024, `the live map: ${map} bytes`);
  assert.ok(ride <= 34 * 1024, `the rider's page: ${ride} bytes`);
});

test('the fleet: list, counts, figures, states; drivers of each status', options, async () => {
  const page = await open('/');
  await until('drivers', async () => (await rows(page)).length === 5);
  await live(page);
  await until('counts', async () => `${await chips(page)}` === '2,1,1,1,0');
  await until('a position of now', async () => /^taxi-1 Available \d+ km\/h now$/.test(await row(page, 'taxi-1')));
  await until('trips', async () => /^taxi-2 To dropoff/.test(await row(page, 'taxi-2')));
  await until('one that stands', async () => /stopped/.test(await row(page, 'van-5')));
  assert.equal(await page.text('shown'), '5 in view');
  const figures = await until('figures', async () => {
    const texts = await page.value(`[...document.querySelectorAll('.tile')].map(tile => tile.innerText)`);
    return texts.length === 7 && /Fixes in\n[4-6]\/s/.test(texts[0]) && texts;
  });
  assert.match(figures[6], /Drops, errors\s+hub well/);
  await page.until(`[...written.keys()].some(text => /^<img src=x onerror=alert.1.>: \\d+ inside$/.test(text))`);
  const [, x, y] = await page.value(`[...written].find(([text]) => text.startsWith('<img'))[1].at(-1)`);
  // Half a minute after their start they have left it again.
  const isInside = id => {
    const at = drivers[id].placeAt(Date.now());
    return Math.hypot((at.latitude - home.latitude) * 111_195, (at.longitude - home.longitude) / east(1)) < 300;
  };
  const allowed = ['taxi-', ...['taxi-1', 'taxi-2'].some(isInside) ? [] : ['none in view']];
  await page.press(x + 60, y + 60);
  await until('who is inside', async () => {
    const said = await page.text('toast');
    return allowed.some(who => said.startsWith(`${hostile}: ${who}`));
  });
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
  const facts = /Speed\n\d+ km\/h\nHeading\n0° N\nPosition\nnow\nAccuracy\n±[\d.]+ m/;
  await until('its facts', async () => facts.test(await page.text('facts')));
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
  // A while in which the machine lets the driver send and the browser draw: others say nothing of the page.
  let fault;
  const drive = async () => {
    const began = await page.value('performance.now()');
    await page.until(`performance.now() > ${began + 2500}`);
    const seen = await since(page, 'taxi-2', began), pixels = await scale(page);
    if (seen.length <= 25) return `${seen.length} frames`;
    const moved = (seen[0][2] - seen.at(-1)[2]) / pixels / (seen.at(-1)[0] - seen[0][0]) * 1000;
    if (Math.abs(moved - speed) >= speed / 3) return `${moved} m/s on the page`;
    for (let at = 1; at < seen.length; at++) {
      const meters = Math.hypot(seen[at][1] - seen[at - 1][1], seen[at][2] - seen[at - 1][2]) / pixels;
      const most = 2.5 * speed * (seen[at][0] - seen[at - 1][0]) / 1000 + 2 / pixels;
      if (meters > most) return `${meters} m within ${seen[at][0] - seen[at - 1][0]} ms`;
    }
  };
  for (let times = 0; times < 5 && (times === 0 || fault); times++) fault = await drive();
  assert.equal(fault, undefined);
  await page.click('#recentre');
  assert.equal(await page.shown('recentre'), false);
  await page.key('ArrowLeft');
  assert.equal(await page.shown('recentre'), true, 'keys pan, too');
  await page.screenshot('follow');
  // Where a fence's label is, in a frame that began after what was done.
  const fixed = async () => {
    const done = await page.value('performance.now()');
    // With any number of drivers: they leave it one after the other.
    return (await until('a frame', () => page.value(`[...written].filter(([text]) => / inside$/.test(text))
      .map(([, places]) => places.at(-1)).find(([at]) => at > ${done + 20})`))).slice(1);
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
  assert.match(await row(page, 'b-faded'), /stopped [2-5]\d s ago$/);
  assert.match(await row(page, 'c-grey'), /stopped last seen ([7-9]\d s|\d min) ago$/);
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
  });
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
  await page.key('Enter');   // at once: it waits for the hub
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
    await until('a page of drivers, and one more', async () => (await control.find({ limit: 1000 })).next);
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

test('where the browser forbids storage, or has none, the map works as well', options, async () => {
  for (const store of ['() => null', `() => { throw new Error('forbidden'); }`]) {
    const page = await browser.open(`${hub.http}/hub.js`);
    for (const name of ['localStorage', 'sessionStorage']) {
      await page.before(`Object.defineProperty(window, '${name}', { configurable: true, get: ${store} })`);
    }
    await page.go(`${hub.http}/`);
    await until('drivers', async () => (await rows(page)).length > 0);
    await page.click('#theme');
    await close(page, /favicon/);
  }
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
