// Writes protocol/marker-vectors.ndjson: drives, and where a marker is drawn while their positions come. The places are
// those of hub.js, which goes by the ellipsoid everywhere (the Swift client does up to 85° of latitude); the test of
// the
// Swift client, which reads the same file, says whether both agree.
//
//   node Tests/Web/support/make-marker-vectors.mjs
import { writeFileSync } from 'node:fs';
import { Marker } from '../../../Sources/Pages/web/hub.js';
import { chance } from './by-hand.mjs';

const start = 1_763_680_000_000;
const round = (value, digits) => Number(value.toFixed(digits));

/** Positions from a function of seconds; each comes `age` later. `around` is where metres are counted from. */
function drive(name, { positions, around = [48, 11], frames, every = 370, at }) {
  const steps = [];
  const [latitude, longitude] = around;
  const perDegree = 111_200, eastPerDegree = perDegree * Math.cos(latitude * Math.PI / 180);
  for (const { seconds, east, north, age = 0, heading, speed, accuracy = 5, comes = seconds + age,
    timeSource } of positions) {
    const place = longitude + east / eastPerDegree;
    steps.push({
      at: Math.round(comes * 1000),
      position: {
        latitude: round(latitude + north / perDegree, 7),
        longitude: round(place > 180 ? place - 360 : place < -180 ? place + 360 : place, 7),
        ...(heading !== undefined && { heading: round(heading, 2) }), ...(speed !== undefined && { speed }), accuracy,
        timestamp: start + Math.round(seconds * 1000), ...(timeSource && { timeSource }), age,
      },
    });
  }
  const times = at ?? Array.from({ length: frames }, (_, frame) => 50 + frame * every);
  for (const time of times) steps.push({ at: time });
  // A position comes before what is drawn at the same time.
  steps.sort((a, b) => a.at - b.at || !!b.position - !!a.position);
  const marker = new Marker();
  for (const step of steps) {
    if (step.position) {
      marker.push({ ...step.position, published: step.at, received: step.at });
      continue;
    }
    const { latitude, longitude, heading, age } = marker.at(step.at);
    step.shown = age === Infinity ? null
      : { latitude: round(latitude, 9), longitude: round(longitude, 9),
        ...(heading !== undefined && { heading: round(heading, 6) }), age: round(age, 6) };
  }
  return { name, steps };
}

const straight = (count, interval, more) => Array.from({ length: count }, (_, index) => ({
  seconds: index * interval, east: 15 * index * interval, north: 0, heading: 90, speed: 15, ...more,
}));
const circle = (count, rate, speed = 10) => Array.from({ length: count }, (_, index) => {
  const radius = speed / (Math.abs(rate) * Math.PI / 180), angle = rate * index * Math.PI / 180;
  const heading = (rate * index % 360 + 360) % 360;
  return {
    seconds: index, east: (1 - Math.cos(angle)) * radius * Math.sign(rate),
      north: Math.abs(radius) * Math.sin(Math.abs(angle)),
    heading, speed,
  };
});

/** A car that speeds up, turns, stands, and whose positions are off, late, and sometimes without heading or speed. */
function wild(seed, count, around) {
  const random = chance(seed);
  let [seconds, east, north, heading, speed] = [0, 0, 0, 360 * random(), 10];
  const positions = Array.from({ length: count }, () => {
    const step = 0.4 + 5 * random() ** 2;
    seconds += step;
    speed = random() < 0.15 ? 0 : Math.max(0, speed + 8 * (random() - 0.5));
    if (random() < 0.4) heading = (heading + 120 * (random() - 0.5) + 360) % 360;
    east += speed * step * Math.sin(heading * Math.PI / 180);
    north += speed * step * Math.cos(heading * Math.PI / 180);
    const age = round(random() ** 3 * 6, 3);
    return {
      seconds: round(seconds, 3), east: east + 20 * (random() - 0.5), north: north + 20 * (random() - 0.5), age,
      ...(random() < 0.95 && { heading }), ...(random() < 0.95 && { speed: round(speed, 2) }),
      accuracy: round(3 + 30 * random(), 2), ...(random() < 0.1 && { timeSource: 'hub' }),
    };
  });
  return { positions, around, frames: Math.round(seconds / 0.87), every: 870 };
}

const drives = [
  drive('before the first position, and at it', { positions: straight(1, 1, { age: 0.4 }), at: [0, 399, 400, 1000] }),
  drive('straight, a position each second', { positions: straight(6, 1, { age: 0.3 }), frames: 20 }),
  drive('straight, a position every 8 s, 1.7 s old', { positions: straight(4, 8, { age: 1.7 }), frames: 90 }),
  drive('10 s after the fix it stands', { positions: straight(1, 1, { age: 2.5 }),
    at: [2500, 9900, 10_000, 10_001, 99_000] }),
  drive('older than it is ever predicted', { positions: straight(1, 1, { age: 30 }), at: [30_000, 31_000, 90_000] }),
  drive('let go to the side and forwards within a second', {
    positions: [...straight(1, 1), { seconds: 2, east: 50, north: 12, heading: 90, speed: 15 }],
    at: [1999, 2000, 2100, 2250, 2500, 2750, 2900, 3000, 4000],
  }),
  drive('ahead of a car that slowed down', {
    positions: [{ seconds: 0, east: 0, north: 0, heading: 90, speed: 20 },
      { seconds: 2, east: 20, north: 0, heading: 90, speed: 10 }],
    at: [2000, 2500, 3000, 3500, 4500, 5000, 6000],
  }),
  drive('ahead of a car that stopped, within its accuracy', {
    positions: [...straight(1, 1), { seconds: 2, east: 20, north: 0, heading: 90, speed: 0, accuracy: 25 }],
    at: [2000, 2500, 3000, 8000, 60_000],
  }),
  drive('ahead of a car that stopped, beyond its accuracy', {
    positions: [...straight(1, 1), { seconds: 2, east: 20, north: 0, heading: 90, speed: 0, accuracy: 8 }],
    at: [2000, 2500, 3000, 8000],
  }),
  drive('waiting while the prediction ends', {
    positions: [...straight(1, 1), { seconds: 2, east: 12, north: 3, heading: 90, speed: 4, accuracy: 30, age: 7 }],
    at: [9000, 9500, 10_500, 11_900, 12_500, 20_000],
  }),
  drive('round a circle to the right', { positions: circle(12, 8), frames: 34 }),
  drive('round a circle to the left, tightly', { positions: circle(12, -30), frames: 34 }),
  drive('a turn is over after a quarter of a circle', {
    positions: [{ seconds: 0, east: 0, north: 0, heading: 350, speed: 10 },
      { seconds: 1, east: 0, north: 10, heading: 20, speed: 10 }],
    at: [1000, 2000, 4000, 4100, 9000],
  }),
  drive('a slow turn is noise, a fast one is no car\'s', {
    positions: [0, 2, 4, 6, 70, 130].map((heading,
      index) => ({ seconds: index, east: 10 * index, north: 0, heading, speed: 10 })),
    frames: 20,
  }),
  drive('positions that are not newer are passed over', {
    positions: [{ seconds: 5, east: 0, north: 0, heading: 90, speed: 15 },
      { seconds: 5, east: 300, north: 0, heading: 90, speed: 15, comes: 5.5 },
      { seconds: 4, east: 300, north: 0, heading: 90, speed: 15, comes: 5.6 }], at: [5000, 5500, 6000],
  }),
  drive('a far one is not eased to', {
    positions: [...straight(1, 1), { seconds: 2, east: 700, north: 0, heading: 90, speed: 15 }], at: [1900, 2000, 2500],
  }),
  drive('without heading and speed', {
    positions: [{ seconds: 0, east: 0, north: 0 }, { seconds: 2, east: 30, north: 4, speed: 10 },
      { seconds: 4, east: 50, north: 0, heading: 90 }],
    frames: 16,
  }),
  drive('a heading or a speed that nobody has is passed over', {
    positions: [{ heading: 90, speed: 15 }, { heading: 1e9, speed: 15 }, { heading: 90, speed: 1e308 },
      { heading: 360.01, speed: 15 }, { heading: 90, speed: 1000.01 }, { heading: 90, speed: 15 }]
      .map((motion, index) => ({ seconds: index, east: 15 * index, north: index, ...motion })),
    frames: 24,
  }),
  drive('slower than it may be said to drive', {
    positions: [{ seconds: 0, east: 0, north: 0, heading: 45, speed: 0.29 },
      { seconds: 2, east: 2, north: 0, heading: 45, speed: 0.3 }],
    frames: 16,
  }),
  drive('times that the hub made up: what passed is by the arrival', {
    positions: [0, 1, 2, 3].map(index => ({
      seconds: index / 2, comes: index, east: 10 * index, north: 0, heading: 20 * index, speed: 10, timeSource: 'hub',
    })), frames: 12,
  }),
  drive('over the antimeridian to the east', { positions: straight(8, 1), around: [0, 179.9999], frames: 24 }),
  drive('over the antimeridian, far south', { positions: straight(8, 1), around: [-60, -179.9999], frames: 24 }),
  drive('far north', wild(77, 20, [84.8, 20])),
  ...[1, 2, 3, 4, 5].map(seed => drive(`at random, ${seed}`,
    wild(seed, 25, [[48, 11], [-33.9, 151.2], [1.3, 103.8]][seed % 3]))),
];
writeFileSync(new URL('../../../protocol/marker-vectors.ndjson', import.meta.url),
  drives.map(line => JSON.stringify(line)).join('\n') + '\n');
