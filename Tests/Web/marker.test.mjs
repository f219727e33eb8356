// Markers: the vectors that the Swift client's tests read as well, and what must hold whatever comes.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Marker, Markers } from '../../Sources/Pages/web/hub.js';
import { chance } from './support/by-hand.mjs';

const radians = Math.PI / 180;
const meters = (a, b) => Math.hypot((a.latitude - b.latitude) * 111_200,
  ((a.longitude - b.longitude + 540) % 360 - 180) * 111_200 * Math.cos(a.latitude * radians));
const drives = readFileSync(new URL('../../protocol/marker-vectors.ndjson', import.meta.url), 'utf8').trim().split('\n')
  .map(line => JSON.parse(line));

for (const { name, steps } of drives) {
  test(`vector: ${name}`, () => {
    const marker = new Marker(), markers = new Markers();
    for (const { at, position, shown } of steps) {
      if (position) {
        for (const push of [p => marker.push(p), p => markers.push('D1', p)]) push({ ...position, published: at,
          received: at });
        continue;
      }
      const found = marker.at(at);
      if (!shown) {
        assert.equal(found.age, Infinity);
        continue;
      }
      assert.ok(meters(found, shown) < 0.01, `at ${at} ms ${JSON.stringify(found)} is not ${JSON.stringify(shown)}`);
      assert.ok(Math.abs(found.age - shown.age) < 1e-5);
      assert.equal(found.heading === undefined, shown.heading === undefined);
      const turn = shown.heading === undefined ? 0 : found.heading - shown.heading;
      assert.ok(Math.abs(Math.sin(turn * radians / 2)) < 1e-5);
      markers.each(at, (id, latitude, longitude, heading, age) => {
        assert.deepEqual([id, latitude, longitude, age], ['D1', found.latitude, found.longitude, found.age]);
        assert.ok(Object.is(heading, found.heading ?? NaN));
      });
    }
  });
}

const origin = { latitude: 48, longitude: 11 };
const east = distance => origin.longitude + distance / (111_200 * Math.cos(48 * radians));
const at = (seconds, x, more = {}) => ({
  latitude: 48, longitude: east(x), heading: 90, speed: 15, accuracy: 60, timestamp: seconds * 1000 + 1e12, age: 0,
  published: seconds * 1000, received: seconds * 1000, ...more,
});

test('on a straight it never backs up, and lies within 10 s of driving, and what is eased, of the newest one', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = chance(seed), marker = new Marker();
    let [time, next, place, speed, last, off, newest] = [0, 0, 0, 15, -Infinity, 0, null];
    for (let frame = 0; frame < 3000; frame++) {
      time += 0.001 + random() * 0.03;
      if (time >= next) {
        const wanted = random() < 0.17 ? 0 : random() * 30;
        speed = Math.max(0, Math.max(speed - 3, Math.min(speed + 2, wanted)));
        const interval = 0.5 + random() * 2.5, age = random();
        place += speed * interval;
        newest = at(next, place + (random() - 0.5) * 8, { speed, age, received: time * 1000, published: time * 1000 });
        const before = marker.at(time * 1000);
        marker.push(newest);
        off = before.age === Infinity ? 0 : meters(before, newest) + speed * age;
        next += interval;
      }
      const shown = marker.at(time * 1000), x = meters(shown, { latitude: 48, longitude: east(0) });
      assert.ok(x >= last - 1e-3, `seed ${seed}: at ${time} s it went back by ${last - x} m`);
      assert.ok(meters(shown, newest) <= speed * 10 + off + 0.01, 'the prediction, and what is being let go');
      last = x;
    }
    assert.ok(last > 300);
  }
});

test('the age counts from the fix, with the time that the position was on its way', () => {
  const marker = new Marker();
  marker.push(at(5, 0, { age: 0.5, published: 5000, received: 5300 }));
  assert.equal(marker.at(5300).age, 0.8);
  assert.equal(marker.at(6300).age, 1.8);
  assert.ok(Math.abs(meters(marker.at(5300), at(0, 12))) < 0.05, '15 m/s for 0.8 s');
});

test('without `age` it is computed from the times; without `received` a position came now', () => {
  const marker = new Marker();
  marker.push({ latitude: 48, longitude: 11, timestamp: 10_000, published: 12_000 });
  assert.deepEqual(marker.at(13_000), { latitude: 48, longitude: 11, age: 3, predicted: false });
  const now = Date.now(), other = new Marker();
  other.push({ latitude: 48, longitude: 11, timestamp: now - 1000 });
  const later = Date.now();
  assert.ok(Math.abs(other.at(later).age - 1 - (later - now) / 1000) < 0.01);
});

test('`predicted` says whether the driver is taken to go on; `snap` sets the marker down', () => {
  const marker = new Marker();
  marker.push(at(0, 0));
  assert.equal(marker.at(0).predicted, false);
  assert.equal(marker.at(1000).predicted, true);
  marker.push(at(2, 50));
  marker.snap = true;
  assert.ok(meters(marker.at(2000), at(0, 50)) < 1e-6);
  assert.ok(meters(marker.at(4000), at(0, 50)) < 1e-6);
  assert.deepEqual([marker.at(4000).predicted, marker.at(4000).heading], [false, 90]);
});

test('thousands of markers come, go and are each where one alone would be', () => {
  const markers = new Markers(), alone = new Map(), random = chance(7);
  for (let n = 0; n < 4000; n++) {
    const id = `D${Math.floor(random() * 300)}`;
    if (random() < 0.2) {
      markers.drop(id);
      alone.delete(id);
      continue;
    }
    const position = at(n / 10, random() * 50);
    markers.push(id, position);
    if (!alone.has(id)) alone.set(id, new Marker());
    alone.get(id).push(position);
  }
  const seen = new Set();
  markers.each(401_000, (id, latitude, longitude, heading, age) => {
    assert.deepEqual({ latitude, longitude, heading, age, predicted: true }, alone.get(id).at(401_000));
    seen.add(id);
  });
  assert.equal(seen.size, alone.size);
});
