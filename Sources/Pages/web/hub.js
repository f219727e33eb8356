// The JavaScript client of a location hub, for browsers and for Node: one ES module without dependencies.
//
//   Hub      a connection over all its breaks: feeds, questions, a driver's fixes and moves
//   Marker   where to draw a driver between two positions; Markers: the same for thousands
//
// The rules are those of protocol/ and of the Swift client (Sources/LocationHubClient), where the reasons stand; how to
// use it is in protocol/javascript.md, the types are in hub.d.ts. Times are in ms, but where a name says otherwise.

const connectMs = 10_000;         // for the socket and `connected` together
const closeMs = 2_000;            // for the closing handshake
const tokenMs = 30_000;           // for an answer of the token function
const firstDelayMs = 1_000;       // attempt n waits min(first × 2^(n−1), longest), and up to `jitter` of it more
const longestDelayMs = 30_000;
const jitter = 0.3;
const stableMs = 10_000;          // a connection that stood for so long was a good one
const spreadMs = 5_000;           // from this the first delay is drawn where many clients come at once
const overRateMs = 60_000;        // the delay after 4429
const longestRetryAfter = 3600;   // s
const renewalMs = 60_000;         // a token is renewed so long before its end, or a fifth of its time if that is less
const renewalPart = 0.2;
const renewalRetryMs = 10_000;
const silentIntervals = 2.5;      // heartbeat intervals without a word: the connection is dead
const pingPart = 0.8;             // of an interval, after which a ping goes out
const wokenMs = 3_000;            // for the answer to the ping of a page that was woken
const lateMs = 5_000;             // a timer that is later than this was asleep
const unconfirmedFixes = 64;      // so many ask for a ping before it is due
const storedMs = 15_000;          // a fix that is not stored so long after a later ping's pong goes out again
const resubscribeMs = 1_000;      // between two requests for the missed events of a channel
const burstSeconds = 4;           // of the rate; a hub's default is 5, and networks bunch what is sent
const onTime = 0.9;               // a fix this part of an interval after the last one is on time
const clockWindowMs = 30_000;     // the hub's clock is estimated from one to two of these
const queuedMessages = 4096;      // at it the oldest fix gives way
const bufferedEvents = 1000;      // of an iterator that is not read

// MARK: Messages

export const words = {
  role: ['driver', 'rider', 'ops'],
  move: ['requested', 'accepted', 'driver_en_route', 'arrived_pickup', 'trip_started', 'arrived_destination',
    'completed', 'cancelled'],
  confidence: ['high', 'medium', 'low'],
  target: ['pickup', 'dropoff'],
  basis: ['route', 'direct'],
  ended: ['asked', 'trip_ended', 'grant_ended', 'revoked'],
  advised: ['trip_fast', 'trip_medium', 'trip_slow', 'moving', 'standing', 'background', 'watched'],
  notice: ['driver_arriving', 'driver_arrived', 'off_route', 'driver_offline', 'driver_online', 'fence_enter',
    'fence_exit', 'fence_dwell', 'hazard', 'speeding', 'message'],
  code: ['bad_json', 'bad_message', 'unknown_type', 'too_large', 'unauthorized', 'forbidden', 'unknown_channel',
    'unknown_trip', 'invalid_location', 'implausible_location', 'token_expired', 'rate_limited', 'storage_full',
    'shutting_down', 'internal', 'invalid_transition', 'not_found'],
};

/** What the payload of each message has at least: `name:type`, the members of a shape without a name among its own. */
const shapes = {
  connected: 'sessionId:text role:role id:text heartbeatInterval:number serverTime:number limits:limits',
  limits: 'maxMessageBytes:number maxBatch:number rate:number',
  driver_location: 'channel:channel :position',
  position: ':place driverId:text accuracy:number confidence:confidence timestamp:number age:number after:number',
  eta_update: 'channel:channel :eta',
  eta: 'tripId:text target:target eta:number distance:number arrivalTime:number basis:basis after:number',
  area_update: 'channel:channel cell:text tick:number drivers:drivers left:list',
  trip_update: 'channel:channel sequence:number :trip',
  trip: 'tripId:text status:move timestamp:number',
  notification: 'channel:channel sequence:number kind:notice title:text body:text',
  subscribed: 'replyTo:text channel:channel sequence:number epoch:text snapshot:snapshot?',
  snapshot: 'trip:trip? position:position? eta:eta?',
  unsubscribed: 'channel:channel reason:ended',
  ack: 'replyTo:text',
  result: 'replyTo:text',
  pong: 'replyTo:text serverTime:number',
  sampling: 'interval:number minDistance:number reason:advised',
  error: 'code:text message:text',
};

/** What a value of a type is. */
const checks = {
  number: Number.isFinite,
  text: value => typeof value === 'string' && value !== '',
  list: Array.isArray,
  place: value => Math.abs(value?.latitude) <= 90 && Math.abs(value.longitude) <= 180,
  channel: value => value === 'fleet' || /^(trip|driver|fence|area|nearby):./.test(value),
  drivers: value => Array.isArray(value) && value.every(driver => checks.place(driver) && checks.text(driver.driverId)),
};

/** True, undefined where it holds a word of a newer hub, false where it is malformed. */
function fits(value, type) {
  if (checks[type]) return checks[type](value);
  if (words[type]) return checks.text(value) && (words[type].includes(value) || undefined);
  const answers = shapes[type].split(' ').map(part => {
    const [, name, inner, isOptional] = /(\w*):(\w+)(\??)/.exec(part);
    return isOptional && value[name] === undefined || fits(name ? value?.[name] : value, inner);
  });
  return answers.includes(false) ? false : answers.includes(undefined) ? undefined : true;
}

/** The message; with `unknown` where it is a newer hub's. Throws where it is malformed. */
export function checked(message) {
  const { type, timestamp, payload } = message;
  const isEnvelope = checks.text(type) && checks.number(timestamp) && Object(payload) === payload;
  const answer = isEnvelope && (Object.hasOwn(shapes, type) ? fits(payload, type) : undefined);
  if (answer === false) throw new SyntaxError(`a malformed ${type}`);
  return answer ? message : { ...message, unknown: true };
}

/** Takes members that are null away, which mean absent, and counts all names. */
function tidied(value) {
  let names = 0;
  for (const name of Object.keys(value)) {
    if (!Array.isArray(value)) names++;
    if (value[name] === null) delete value[name];
    else if (typeof value[name] === 'object') names += tidied(value[name]);
  }
  return names;
}

/** Reads JSON. Of two members of one name, which must be refused, JSON.parse shows one: so names are counted. */
export function readJSON(text) {
  const message = JSON.parse(text);
  const colons = text.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
  if (tidied(Object(message)) !== colons) throw new SyntaxError('two members of one name');
  return checked(message);
}

// MARK: What follows from codes (protocol/README.md)

/** Whether a refused message is sent again; a code that is not known counts as `internal`. */
const retryOf = code => code === 'token_expired' ? 'withNewToken'
  : ['rate_limited', 'storage_full', 'shutting_down', 'unreachable'].includes(code) ? 'later'
    : words.code.includes(code) && code !== 'internal' || ['closed', 'full', 'storage'].includes(code) ? 'never' : 'once';

/** Whether a connection is made again after a close code; what is not listed is a proxy's or a newer hub's. */
const afterClose = code => ({
  1000: 'never', 1001: 'spread', 1002: 'never', 1003: 'never', 1007: 'never', 1009: 'never', 1013: 'spread',
  4400: 'never', 4401: 'token', 4409: 'never', 4413: 'spread', 4429: 'pause',
})[code] ?? 'backOff';

/** The same for the HTTP status of an upgrade. */
const afterStatus = status => status === 401 ? 'token'
  : status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status) ? 'never' : 'backOff';

export class HubError extends Error {
  constructor(code, message, retryAfter, details) {
    super(message);
    Object.assign(this, { name: 'HubError', code, retryAfter, details });
    this.retry = retryOf(code).replace('once', 'later');
  }
}

// MARK: Places

const radians = Math.PI / 180;
const semiMajorAxis = 6_378_137;                          // WGS 84
const eccentricitySquared = (2 - 1 / 298.257223563) / 298.257223563;
const earthRadius = 6_371_008.8;

/** Metres to a degree of longitude and of latitude (Sources/Geo/LocalPlane.swift). */
const scale = { east: 0, north: 0 };
function setScale(latitude) {
  const phi = Math.max(-89.99, Math.min(89.99, latitude)) * radians;
  const w = 1 - eccentricitySquared * Math.sin(phi) ** 2;
  const vertical = semiMajorAxis / Math.sqrt(w);
  scale.east = vertical * Math.cos(phi) * radians;
  scale.north = vertical * (1 - eccentricitySquared) / w * radians;
}
const shortWay = degrees => degrees > 180 ? degrees - 360 : degrees < -180 ? degrees + 360 : degrees;

/** Where a marker is: one object that is written over, so that a frame with thousands of them leaves no garbage. */
const spot = { latitude: 0, longitude: 0, heading: 0, age: 0 };
function move(east, north) {
  spot.latitude = Math.max(-90, Math.min(90, spot.latitude + north / scale.north));
  const longitude = spot.longitude + east / scale.east;
  spot.longitude = Math.abs(longitude) <= 180 ? longitude : longitude - 360 * Math.round(longitude / 360);
}
/** Goes on by an arc (Sources/Geo/Turn.swift); near a pole along a great circle. */
function arrive(bearing, meters, turn) {
  const half = turn / 2 * radians;
  const chord = Math.abs(half) < 1e-4 ? meters : meters * Math.sin(half) / half;
  const direction = (bearing + turn / 2) * radians;
  if (Math.abs(spot.latitude) < 85) {
    setScale(spot.latitude);
    return move(chord * Math.sin(direction), chord * Math.cos(direction));
  }
  const phi = spot.latitude * radians;
  const along = Math.sin(chord / earthRadius) * Math.cos(direction);
  const across = Math.sin(chord / earthRadius) * Math.sin(direction);
  const outward = Math.cos(phi) * Math.cos(chord / earthRadius) - Math.sin(phi) * along;
  const up = Math.sin(phi) * Math.cos(chord / earthRadius) + Math.cos(phi) * along;
  spot.latitude = Math.atan2(up, Math.hypot(outward, across)) / radians;
  spot.longitude = shortWay(spot.longitude + Math.atan2(across, outward) / radians);
}

// MARK: Markers (Sources/LocationHubClient/MarkerInterpolator.swift says why each is as it is)

const longestPrediction = 10;          // s after a fix for which the driver is taken to go on
const easing = 1;                      // s over which the difference to a new position is let go
const longestTurn = 90;                // degrees after which a turn is over
const slowestTurn = 3, fastestTurn = 60;   // degrees/s
const longestTurnGap = 6;              // s
const standstill = 0.3, turningSpeed = 1;  // m/s
const longestWait = 10;                // s that a marker which is ahead waits, but for ever within the accuracy
const farthestEasing = 500;            // m
const steepestEasing = 1.5;            // the slope of smoothstep in its middle

// A marker is so many numbers of a Float64Array, from a place on: its newest position; when it came and how old it was
// then; degrees/s; how far ahead and aside (m) of it the marker was, in which direction; and how long it waits.
const [LATITUDE, LONGITUDE, HEADING, SPEED, ACCURACY, TIME, BY_HUB, ARRIVED, AGE, TURN, AHEAD, ASIDE, FRAME, SECONDS,
  WAITS, SIZE] = Array(16).keys();

/** Whether the driver is taken to go on. */
const drives = (s, o) => s[o + SPEED] >= standstill && s[o + HEADING] >= 0;

function predict(s, o, age) {
  const heading = s[o + HEADING], speed = s[o + SPEED], rate = s[o + TURN];
  spot.latitude = s[o];
  spot.longitude = s[o + LONGITUDE];
  spot.heading = heading;
  if (!drives(s, o)) return;
  const seconds = Math.min(age, longestPrediction);
  const turning = rate ? Math.min(seconds, longestTurn / Math.abs(rate)) : 0;
  const turned = heading + rate * turning;
  if (turning > 0) arrive(heading, speed * turning, rate * turning);
  if (seconds > turning) arrive(turned, speed * (seconds - turning), 0);
  spot.heading = (turned + 360) % 360;
}

/** 1 at 0, 0 from 1 on: smoothstep. */
function left(part) {
  const x = Math.min(Math.max(part, 0), 1);
  return 1 - x * x * (3 - 2 * x);
}

/** Where the marker is at t, in `spot`. */
function locate(s, o, t, snap) {
  const passed = Math.max(0, t - s[o + ARRIVED]) / 1000;
  predict(s, o, snap ? 0 : s[o + AGE] + passed);
  spot.age = s[o + AGE] + passed;
  // While the driver is not taken to go on, the marker must not go back to it either.
  const going = Math.min(passed, Math.max(0, longestPrediction - s[o + AGE]));
  const ahead = s[o + AHEAD] * left((s[o + WAITS] ? going : passed) / s[o + SECONDS]);
  const aside = s[o + ASIDE] * left(passed / easing);
  if (snap || !ahead && !aside) return;
  const sine = Math.sin(s[o + FRAME] * radians), cosine = Math.cos(s[o + FRAME] * radians);
  setScale(spot.latitude);
  move(sine * ahead + cosine * aside, cosine * ahead - sine * aside);
}

/** Degrees/s from the newest position to another, `seconds` later; 0 where they show no turn. */
function turnRate(s, o, heading, speed, seconds) {
  if (!(seconds > 0.1 && seconds <= longestTurnGap && s[o + SPEED] >= turningSpeed && speed >= turningSpeed)) return 0;
  const turn = heading - s[o + HEADING];
  const rate = (Math.abs(turn) < 180 ? turn : turn - 360 * Math.sign(turn)) / seconds;
  return Math.abs(rate) >= slowestTurn && Math.abs(rate) <= fastestTurn ? rate : 0;   // NaN too
}

function take(s, o, p) {
  if (p.timestamp <= s[o + TIME]) return;
  const isFirst = Number.isNaN(s[o + TIME]);
  const arrived = p.received ?? p.published ?? Date.now(), published = p.published ?? arrived;
  const age = Math.max(0, (p.age ?? (published - p.timestamp) / 1000) + (arrived - published) / 1000);
  const heading = p.heading >= 0 ? p.heading : NaN, speed = p.speed >= 0 ? p.speed : NaN;
  const byHub = p.timeSource === 'hub' ? 1 : 0;
  const passed = (byHub || s[o + BY_HUB] ? arrived - s[o + ARRIVED] : p.timestamp - s[o + TIME]) / 1000;
  const rate = turnRate(s, o, heading, speed, passed);
  locate(s, o, arrived);
  const { latitude, longitude } = spot;
  s.set([p.latitude, p.longitude, heading, speed, p.accuracy ?? 0, p.timestamp, byHub, arrived, age, rate, 0, 0,
    heading || 0, easing, 0], o);
  if (isFirst) return;
  predict(s, o, age);
  setScale(spot.latitude);
  const east = shortWay(longitude - spot.longitude) * scale.east, north = (latitude - spot.latitude) * scale.north;
  if (Math.hypot(east, north) >= farthestEasing) return;
  const frame = (spot.heading || 0) * radians;
  const ahead = east * Math.sin(frame) + north * Math.cos(frame);
  s[o + FRAME] = spot.heading || 0;
  s[o + AHEAD] = ahead;
  s[o + ASIDE] = east * Math.cos(frame) - north * Math.sin(frame);
  if (ahead <= 0) return;
  // One that is ahead must never run backwards: it takes as long as the car needs to catch up.
  const needed = steepestEasing * ahead / (drives(s, o) ? speed : 1e-9);
  s[o + WAITS] = needed <= longestWait || ahead <= s[o + ACCURACY] ? 1 : 0;
  if (s[o + WAITS]) s[o + SECONDS] = needed <= longestWait ? Math.max(needed, easing) : Infinity;
}

export class Marker {
  snap = false;
  #state = new Float64Array(SIZE).fill(NaN);

  push(position) { take(this.#state, 0, position); }

  at(t) {
    const s = this.#state;
    if (Number.isNaN(s[TIME])) return { latitude: NaN, longitude: NaN, age: Infinity, predicted: false };
    locate(s, 0, t, this.snap);
    const { latitude, longitude, heading, age } = spot;
    return { latitude, longitude, ...(heading >= 0 && { heading }), age, predicted: !this.snap && drives(s, 0) && age > 0 };
  }
}

export class Markers {
  snap = false;
  #state = new Float64Array(SIZE * 64);
  #ids = [];
  #places = new Map();

  push(id, position) {
    let place = this.#places.get(id);
    if (place === undefined) {
      place = this.#ids.push(id) - 1;
      this.#places.set(id, place);
      if (place * SIZE === this.#state.length) {
        const larger = new Float64Array(2 * this.#state.length);
        larger.set(this.#state);
        this.#state = larger;
      }
      this.#state.fill(NaN, place * SIZE, (place + 1) * SIZE);
    }
    take(this.#state, place * SIZE, position);
  }

  /** The last one takes the place of the one that goes. */
  drop(id) {
    const place = this.#places.get(id);
    if (place === undefined) return;
    this.#places.delete(id);
    const last = this.#ids.pop();
    if (last === id) return;
    this.#ids[place] = last;
    this.#places.set(last, place);
    this.#state.copyWithin(place * SIZE, this.#ids.length * SIZE, (this.#ids.length + 1) * SIZE);
  }

  each(t, f) {
    for (let place = 0; place < this.#ids.length; place++) {
      locate(this.#state, place * SIZE, t, this.snap);
      f(this.#ids[place], spot.latitude, spot.longitude, spot.heading, spot.age);
    }
  }
}

// MARK: Parts of a connection

/** What listens, by the type of event. A listener that throws disturbs nobody else. */
function listeners() {
  const lists = {};
  return {
    on(type, f, { signal } = {}) {
      const own = data => f(data);
      const off = () => { lists[type].delete(own); };
      (lists[type] ??= new Set()).add(own);
      signal?.addEventListener('abort', off);
      return off;
    },
    emit(type, data) {
      for (const f of lists[type] ?? []) {
        try { f(data); } catch (error) { queueMicrotask(() => { throw error; }); }
      }
    },
  };
}

/** Deadlines by name, on one timer, by a clock that never goes back. */
class Alarms {
  #alarms = {};
  #last = 0;
  #skipped = 0;
  constructor(options) { this.options = options; }
  now() {
    const now = this.options.now();
    this.#skipped += Math.max(0, this.#last - now);
    this.#last = now;
    return now + this.#skipped;
  }
  set(name, delay, f) {
    this.#alarms[name] = { time: this.now() + delay, f };
    this.#arm();
  }
  clear(names) {
    for (const name of names.split(' ')) delete this.#alarms[name];
    this.#arm();
  }
  #arm() {
    this.options.clearTimeout(this.timer);
    const next = Math.min(...Object.values(this.#alarms).map(({ time }) => time));
    if (next < Infinity) this.timer = this.options.setTimeout(() => this.run(), Math.max(0, next - this.now()));
  }
  /** Calls what is due, with how late it is. */
  run() {
    const now = this.now();
    for (const [name, alarm] of Object.entries(this.#alarms)) {
      if (alarm.time > now || this.#alarms[name] !== alarm) continue;
      delete this.#alarms[name];
      alarm.f(now - alarm.time);
    }
    this.#arm();
  }
}

/** How much may be sent now: a bucket like the hub's (protocol/rates.md), so that it never stops reading from here. */
function bucket(rate, now) {
  const burst = Math.max(1, rate * burstSeconds);
  let tokens = burst, filled = now();
  return {
    /** Ms until something of this cost may go; what costs more than a full bucket goes when it is full. */
    wait(cost) {
      tokens = Math.min(burst, tokens + (now() - filled) / 1000 * rate);
      filled = now();
      return rate && Math.max(0, Math.ceil((Math.min(cost, burst) - tokens) / rate * 1000));
    },
    charge(cost) { tokens -= cost; },
  };
}

/** What a message costs of the rate, by its bytes, its fixes and its positions (of a route at most what it may hold). */
function costOf({ locations, polygon, route }, bytes) {
  const positions = polygon ? JSON.stringify(polygon).split('],').length : (route?.length ?? 0) / 2;
  return 1 + Math.floor(Math.max(bytes / 4096, (locations?.length ?? 0) / 50, positions / 50));
}

/** Chooses the fixes that are worth sending, by the hub's advice (protocol/drivers.md, "sampling"). */
function samplingGate() {
  let last;
  return (fix, advice) => {
    const elapsed = advice && last && last.tripId === fix.tripId ? (fix.timestamp - last.timestamp) / 1000 : -1;
    if (elapsed >= 0) {
      setScale(last.latitude);
      const meters = Math.hypot(shortWay(fix.longitude - last.longitude) * scale.east,
        (fix.latitude - last.latitude) * scale.north);
      const silence = meters < advice.minDistance ? Math.max(30, 2 * advice.interval) : advice.interval;
      if (elapsed < silence * onTime) return false;
    }
    last = fix;
    return true;
  };
}

/** A fix, or a browser's GeolocationPosition, as the hub wants it: null and -1 say that a phone does not know. */
function fixOf(fix, tripId, now) {
  const { coords = fix, timestamp = now } = fix, { latitude, longitude, altitude, source } = coords;
  const result = {
    ...(tripId && { tripId }), latitude, longitude, timestamp: Math.round(+timestamp),
    ...(altitude != null && { altitude }), ...(source && { source }),
  };
  for (const name of ['accuracy', 'heading', 'speed', 'headingAccuracy', 'speedAccuracy', 'batteryLevel']) {
    if (coords[name] != null && coords[name] >= 0) result[name] = coords[name];
  }
  if (checks.place(result) && result.timestamp > 0) return result;
  throw new HubError('invalid_location', 'no place on Earth, or no time');
}

/** When a token ends, in ms since 1970; NaN where it does not say. */
function endOf(token) {
  try {
    return JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/'))).exp * 1000;
  } catch {
    return NaN;
  }
}

const done = request => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/** Keeps the queue in IndexedDB, so that it outlives the page: gives a function that begins a transaction. */
async function openStore(name) {
  const opening = indexedDB.open(name);
  opening.onupgradeneeded = () => opening.result.createObjectStore('queue');
  const database = await done(opening);
  return () => database.transaction('queue', 'readwrite').objectStore('queue');
}

/** A feed's events one by one. Of state, which is latest-wins, a slow reader gets the newest of each driver. */
async function* iterate(feed) {
  const waiting = [];
  let wake;
  const offs = ['snapshot', 'position', 'eta', 'update', 'notice', 'lost', 'ended'].map(type => feed.on(type, data => {
    const older = type === 'position' || type === 'eta' ? waiting.findIndex(event => event.type === type
      && event.data.driverId === data.driverId) : -1;
    if (older >= 0) waiting.splice(older, 1);
    if (waiting.push({ type, data }) > bufferedEvents) waiting.splice(0, 2, { type: 'lost' });
    wake?.();
  }));
  try {
    while (waiting.length || feed.state.is !== 'ended') {
      if (waiting.length) yield waiting.shift();
      else await new Promise(resolve => { wake = resolve; });
    }
  } finally {
    for (const off of offs) off();
  }
}

// MARK: The hub

export class Hub {
  #url;
  #options;
  #alarms;
  #events = listeners();
  #state;
  /** The present attempt or connection: nothing that belongs to another one is listened to. */
  #c;
  #failures = 0;
  #token;
  #asking;
  #need = 'connect';
  #channels = new Map();
  #unsubscribes = [];
  /** What has to arrive, in order, by numbers that ascend. */
  #queue = new Map();
  #dropped = 0;
  #number = 0;
  #prefix;
  #gate = samplingGate();
  #sampling;
  #store;
  #unsaved = new Map();
  #clock;
  #waiting = [];
  #page;
  on = this.#events.on;

  constructor(url, options) {
    this.#options = {
      now: Date.now, random: Math.random, setTimeout: (...a) => setTimeout(...a), clearTimeout: id => clearTimeout(id),
      WebSocket: globalThis.WebSocket, ...options,
    };
    this.#url = new URL(url);
    if (!/^wss?:$/.test(this.#url.protocol)) throw new TypeError(`${url} is no WebSocket URL: use wss://…`);
    if (!this.#options.WebSocket) throw new TypeError('there is no WebSocket here: give one in `WebSocket`');
    this.#alarms = new Alarms(this.#options);
    // Ids must be others than those of an earlier page, of which the hub may remember some.
    this.#prefix = `${Math.floor(this.#options.random() * 2 ** 52).toString(36)}-`;
    this.#become('idle');
  }

  get state() { return this.#state; }
  get sampling() { return this.#sampling; }
  get backlog() { return { messages: this.#queue.size, dropped: this.#dropped }; }
  now() { return this.#options.now() + Math.max(...this.#clock?.offsets ?? [0]); }

  #become(is, more) {
    this.#state = { is, since: this.#options.now(), ...more };
    this.#events.emit('state', this.#state);
  }

  // MARK: Connecting

  connect() {
    if (this.#state.is !== 'idle' && this.#state.is !== 'closed') return this;
    this.#failures = 0;
    this.#watchPage();
    this.#attempt();
    return this;
  }

  async close() {
    const socket = this.#c?.socket;
    this.#stop({ cause: 'us', message: 'closed' });
    if (!socket || socket.readyState === 3) return;
    await new Promise(resolve => {
      socket.onclose = resolve;
      this.#alarms.set('close', closeMs, resolve);
      socket.close(1000);
    });
    this.#alarms.clear('close');
  }

  /** For good: only `connect` opens again. What is queued is kept; questions are not. */
  #stop(reason) {
    this.#detach();
    this.#token = undefined;
    this.#page?.abort();
    const error = new HubError('closed', `the hub is closed: ${reason.message}`);
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    for (const [number, { type }] of this.#queue) if (type === 'query') this.#take(number).reject(error);
    this.#become('closed', { reason });
  }

  /** Nothing of the present connection counts any more, nor what the token function may still say. */
  #detach() {
    const c = this.#c ?? {};
    this.#c = undefined;
    this.#asking?.abort.abort();
    this.#alarms.clear('connect ping silence woken renew flush');
    if (c.socket) c.socket.onclose = c.socket.onmessage = null;
    return c;
  }

  async #attempt() {
    const c = this.#c = { pings: [], notBefore: 0, sentThrough: -Infinity };
    const { token, codec, dev, WebSocket } = this.#options;
    this.#become('connecting');
    try {
      await this.#load();
      const binary = codec === 'binary' && await import('./hub-binary.js');
      const given = typeof token === 'function' ? await this.#ask(this.#need) : token;
      if (c !== this.#c) return;
      this.#token = c.token = given;
      this.#open(c, binary);
    } catch (error) {
      if (c === this.#c) this.#ended({ cause: 'token', message: `${error?.message}` }, 'backOff');
    }
  }

  #open(c, binary) {
    const names = ['locationhub.v1.json'];
    if (binary) names.unshift('locationhub.v1.binary');
    const socket = c.socket = new this.#options.WebSocket(this.#address(this.#url), names);
    const reader = binary && new binary.BinaryReader();
    socket.binaryType = 'arraybuffer';
    c.isBinary = () => socket.protocol === 'locationhub.v1.binary';
    c.read = data => c.isBinary() ? reader.read(data) : readJSON(data);
    c.write = message => c.isBinary() ? binary.writeBinary(message, c.trip) : JSON.stringify(message);
    this.#alarms.set('connect', connectMs, () => this.#giveUp('timeout', 'no answer in time'));
    socket.onmessage = ({ data }) => this.#received(c, data);
    // Browsers do not say why an upgrade was refused; a WebSocket for Node may.
    socket.onerror = ({ status, retryAfter }) => Object.assign(c, { status, retryAfter });
    socket.onclose = ({ code, reason }) => {
      if (c.status) this.#ended(refusal(c.status), afterStatus(c.status), c.retryAfter);
      else if (code === 1006) this.#ended({ cause: 'lost', message: 'connection lost' }, 'backOff');
      else this.#ended({ cause: 'closed', code, message: reason || `closed with ${code}` }, afterClose(code));
    };
  }

  /** A URL with the credential in its query, as a browser's socket needs it. */
  #address(url) {
    const address = new URL(url);
    for (const [name, value] of Object.entries(this.#options.dev ?? (this.#token && { access_token: this.#token }) ?? {})) {
      address.searchParams.set(name, value);
    }
    return address.href;
  }

  #giveUp(cause, message) {
    this.#c.socket.close();
    this.#ended({ cause, message }, 'backOff');
  }

  #ended(reason, rule, retryAfter) {
    const { openedAt } = this.#detach();
    if (this.#alarms.now() - openedAt >= stableMs) this.#failures = 0;
    if (rule === 'token') {
      this.#need = 'refused';
      rule = typeof this.#options.token === 'function' ? 'backOff' : 'never';
    }
    if (rule === 'never') return this.#stop(reason);
    const isFirst = this.#failures === 0;
    const growing = Math.min(firstDelayMs * 2 ** this.#failures++, longestDelayMs);
    if (rule === 'spread' && isFirst) this.#wait(spreadMs * this.#options.random(), reason);
    else this.#waitAtLeast(Math.max(growing, rule === 'pause' ? overRateMs : 0), retryAfter, reason);
    // Not each time: a hub that is overloaded must not get twice the requests.
    if (reason.cause === 'lost' && !openedAt && Math.log2(this.#failures) % 1 === 0) this.#askWhy();
  }

  #waitAtLeast(delay, retryAfter, reason) {
    const least = Math.max(delay, Math.min(retryAfter ?? 0, longestRetryAfter) * 1000);
    this.#wait(least * (1 + jitter * this.#options.random()), reason);
  }

  #wait(delay, reason) {
    this.#become('waiting', { retryAt: this.#options.now() + delay, reason });
    this.#alarms.set('connect', delay, () => this.#attempt());
  }

  /** Why a socket did not open a browser does not say: a question over HTTP does, with the same credential. */
  async #askWhy() {
    const waiting = this.#state;
    const { status, headers } = await fetch(this.#address(this.#http('/v1/trips/-'))).catch(() => ({}));
    if (waiting !== this.#state) return;
    if (status === 401) {
      this.#need = 'refused';
      if (typeof this.#options.token !== 'function') this.#stop(refusal(401));
    } else if (status === 429 || status === 503) this.#waitAtLeast(0, headers.get('Retry-After') ?? 1, refusal(status));
  }

  // MARK: Tokens

  /** Asks for a token, once at a time: an earlier question is called off, its end is waited for, its answer dropped. */
  #ask(reason) {
    const before = this.#asking;
    before?.abort.abort();
    const asking = this.#asking = { abort: new AbortController() };
    const { signal } = asking.abort;
    asking.done = Promise.resolve(before?.done).catch(() => {}).then(() => new Promise((resolve, reject) => {
      signal.throwIfAborted();
      this.#alarms.set('token', tokenMs, () => reject(new Error('the token function took too long')));
      new Promise(resolve => resolve(this.#options.token({ reason, signal }))).then(resolve, reject);
    })).then(token => {
      if (!checks.text(token)) throw new Error('the token function gave no token');
      return token;
    }).finally(() => {
      if (this.#asking === asking) this.#asking = undefined;
      this.#alarms.clear('token');
    });
    return asking.done;
  }

  /** A new token is asked for some time before the end of the one that the hub has, not by all clients at once. */
  #renewLater() {
    const left = endOf(this.#c.token) - this.now();
    const early = Math.min(renewalMs, left * renewalPart) * (1 + jitter * this.#options.random());
    if (typeof this.#options.token === 'function' && left < Infinity) this.#renewIn(Math.max(0, left - early));
  }

  #renewIn(delay) {
    const c = this.#c;
    this.#alarms.set('renew', delay, async () => {
      const token = await this.#ask('expiring').catch(() => {});
      if (c !== this.#c) return;
      if (!token || token === c.token) return this.#renewIn(renewalRetryMs);
      this.#token = token;
      c.refresh = this.#message('refresh', { token });
      this.#post(c, c.refresh, true);
    });
  }

  /** One that the hub refused changes nothing: the session goes on with the one that it has. */
  #refreshed(c, isTaken) {
    if (isTaken) c.token = c.refresh.payload.token;
    this.#token = c.token;
    c.refresh = undefined;
    if (isTaken) this.#renewLater(); else this.#renewIn(renewalRetryMs);
  }

  // MARK: While it stands

  #received(c, data) {
    c.heard = this.#alarms.now();
    this.#alarms.clear('woken');
    let message;
    try {
      message = c.read(data);
      if (message) message = checked(message);
    } catch {
      return;   // a hub does not send such, and there is nobody to tell
    }
    if (!message || !c.greeting && message.type !== 'connected') return;
    this.#setClock(message.timestamp);
    this.#handle(c, message, data.length ?? data.byteLength);
    this.#flush();
  }

  /** A message took some time on its way, so the hub's clock is at least where it said. */
  #setClock(timestamp) {
    const now = this.#options.now(), offset = timestamp - now;
    if (!this.#clock) this.#clock = { offsets: [offset, offset], since: now };
    const { offsets, since } = this.#clock;
    if (Math.abs(now - since) > clockWindowMs) this.#clock = { offsets: [offset, offsets[0]], since: now };
    else offsets[0] = Math.max(offset, offsets[0]);
  }

  #handle(c, { type, payload, timestamp, unknown }, bytes) {
    const channel = this.#channels.get(payload.channel);
    switch (type) {
      case 'trip_update':
      case 'notification': return this.#event(c, channel, type, payload, unknown, bytes);
      case 'error': return this.#refused(c, payload);
    }
    if (unknown) return;
    switch (type) {
      case 'connected': return this.#connected(c, payload);
      case 'driver_location': return this.#stated(channel, 'position', this.#dated(payload, timestamp));
      case 'eta_update': return this.#stated(channel, 'eta', payload);
      case 'area_update': return this.#area(payload, timestamp);
      case 'subscribed': return this.#subscribed(c, payload, timestamp, bytes);
      case 'unsubscribed': return payload.reason !== 'asked' && this.#end(channel, payload.reason);
      case 'pong': return this.#pong(c, payload);
      case 'sampling': return this.#advised(payload);
      default: return this.#answered(c, payload, bytes);
    }
  }

  #advised(advice) {
    this.#sampling = advice;
    this.#events.emit('sampling', advice);
  }

  #connected(c, greeting) {
    if (c.greeting) return;
    c.greeting = greeting;
    c.interval = Math.max(greeting.heartbeatInterval * 1000, 50);
    c.openedAt = this.#alarms.now();
    c.budget = bucket(greeting.limits.rate, () => this.#alarms.now());
    this.#need = 'connect';
    if (greeting.sampling) this.#advised(greeting.sampling);
    this.#unsubscribes = [];
    for (const channel of this.#channels.values()) Object.assign(channel, { due: 0, asked: undefined });
    for (const entry of this.#queue.values()) entry.isSent = false;
    this.#batch(() => true);
    this.#alarms.clear('connect');
    // The first ping at a random time, so that clients which came together do not ping together.
    this.#pingIn(c.interval * pingPart * (0.5 + 0.5 * this.#options.random()));
    this.#listen(c);
    this.#renewLater();
    this.#become('live');
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  #pingIn(delay) {
    this.#alarms.set('ping', delay, () => this.#ping(this.#c));
  }

  /** A ping goes over the rate, if need be: a connection that may not send must still be known to live. */
  #ping(c) {
    const message = this.#message('ping', {});
    c.pings.push({ id: message.messageId, through: c.sentThrough });
    this.#post(c, message, true);
    this.#pingIn(c.interval * pingPart);
  }

  #listen(c) {
    const patience = () => c.heard + silentIntervals * c.interval - this.#alarms.now();
    this.#alarms.set('silence', patience(), late => {
      if (patience() > 0) this.#listen(c);
      else if (late > lateMs) this.#woken();
      else this.#giveUp('silent', 'the hub was silent for too long');
    });
  }

  /** The page slept, or was hidden: a ping shows whether there is a connection. */
  #woken() {
    const c = this.#c;
    if (!c?.greeting) return this.#alarms.run();
    this.#alarms.set('woken', wokenMs, () => this.#giveUp('silent', 'no answer to a page that was woken'));
    c.heard = this.#alarms.now();
    this.#listen(c);
    this.#ping(c);
  }

  #watchPage() {
    const { document } = globalThis;
    this.#page = new AbortController();
    const woken = () => document?.visibilityState === 'hidden' || this.#woken();
    for (const type of ['pageshow', 'online']) globalThis.addEventListener?.(type, woken, this.#page);
    for (const type of ['visibilitychange', 'resume']) document?.addEventListener(type, woken, this.#page);
  }

  // MARK: Sending

  #message(type, payload, messageId = this.#prefix + ++this.#number) {
    return { type, payload, timestamp: Math.round(this.#options.now()), messageId };
  }

  /** Sends a message and charges it; gives the ms to wait where the rate does not allow it now. */
  #post(c, message, isUrgent) {
    const data = c.write(message);
    const cost = costOf(message.payload, data.length), wait = c.budget.wait(cost);
    if (wait && !isUrgent) return wait;
    c.budget.charge(cost);
    if (message.type === 'location_update') c.trip = message.payload.tripId ?? c.trip;
    c.socket.send(data);
    return 0;
  }

  /** Channels first, then the queue in its order. */
  #flush() {
    const c = this.#c;
    if (!c?.greeting) return;
    const wait = this.#flushChannels(c) || this.#flushQueue(c);
    if (wait) this.#alarms.set('flush', wait, () => this.#flush());
  }

  #flushChannels(c) {
    const now = this.#alarms.now();
    let next = Infinity, wait;
    while (this.#unsubscribes.length) {
      if ((wait = this.#post(c, this.#message('unsubscribe', this.#unsubscribes[0])))) return wait;
      this.#unsubscribes.shift();
    }
    for (const target of this.#channels.values()) {
      const { channel, viewId, since, epoch, due } = target;
      next = Math.min(next, due);
      if (due > now) continue;
      const message = this.#message('subscribe', { channel, ...(epoch && { since, epoch }), ...(viewId && { viewId }) });
      if ((wait = this.#post(c, message))) return wait;
      Object.assign(target, { due: Infinity, asked: message.messageId });
    }
    if (next > now && next < Infinity) this.#alarms.set('due', next - now, () => this.#flush());
  }

  #flushQueue(c) {
    const patience = c.notBefore - this.#alarms.now();
    if (patience > 0) return patience;
    let unconfirmed = 0;
    for (const [number, entry] of this.#queue) {
      const { type, payload } = entry;
      const isFix = type === 'location_update';
      if (!entry.isSent) {
        // A fix is answered with an error at most, on this connection: in binary its number is name enough.
        const wait = this.#post(c, this.#message(type, payload, isFix && c.isBinary() ? `${number}` : entry.id));
        if (wait) return wait;
        entry.isSent = true;
        c.sentThrough = Math.max(c.sentThrough, number);
      }
      if (isFix) unconfirmed++;
    }
    if (unconfirmed >= unconfirmedFixes && !c.pings.length) this.#ping(c);
  }

  // MARK: The queue

  /** False where there is no room, even after a fix gave way. */
  #enqueue(type, payload, settle) {
    if (this.#queue.size >= queuedMessages && !this.#dropFix()) return false;
    const number = ++this.#number;
    this.#put(number, { id: this.#prefix + number, type, payload, ...settle });
    this.#flush();
    return true;
  }

  #request(type, payload) {
    return new Promise((resolve, reject) => {
      if (!this.#enqueue(type, payload, { resolve, reject })) reject(new HubError('full', 'the queue is full'));
    });
  }

  #put(number, entry) {
    const { id, type, payload } = entry;
    this.#queue.set(number, entry);
    if (type !== 'query') this.#save(number, { id, type, payload });
  }

  #take(number) {
    const entry = this.#queue.get(number);
    if (this.#queue.delete(number)) this.#save(number);
    return entry;
  }

  #dropFix() {
    for (const [number, { type, payload }] of this.#queue) {
      if (!type.startsWith('location')) continue;
      this.#dropped += payload.locations?.length ?? 1;
      return this.#take(number);
    }
  }

  /** Makes batches of live fixes in a row that name one trip, and are to be sent again. */
  #batch(isAgain) {
    const { maxBatch, maxMessageBytes } = this.#c.greeting.limits;
    const entries = [...this.#queue];
    let batch;
    this.#queue.clear();
    for (const [number, entry] of entries) {
      if (entry.type !== 'location_update' || !isAgain(number, entry)) {
        batch = undefined;
        this.#queue.set(number, entry);
        continue;
      }
      const { tripId, ...fix } = entry.payload;
      const fixes = batch?.payload.locations.length ?? 0;
      if (fixes && batch.payload.tripId === tripId && fixes < Math.min(maxBatch, 500, maxMessageBytes / 300 - 1)) {
        this.#take(batch.number);
      } else batch = { type: 'location_batch', payload: { ...(tripId && { tripId }), locations: [] } };
      batch.payload.locations.push(fix);
      // It has the number of its last fix, so that numbers still ascend.
      this.#put(number, Object.assign(batch, { number, id: this.#prefix + number }));
    }
  }

  /** What an earlier page left goes to the front. */
  async #load() {
    const name = this.#options.queue?.indexedDB;
    if (!name || this.#store !== undefined) return;
    try {
      const begin = await openStore(name), store = begin();
      const entries = await done(store.getAll()), own = [...this.#queue];
      store.clear();
      this.#queue.clear();
      entries.forEach((entry, index) => this.#put(index - entries.length, entry));
      for (const [number, entry] of own) this.#put(number, entry);
      this.#store = { begin, base: this.#state.since * 1000 };
      this.#write();
    } catch (error) {
      this.#store = null;
      this.#events.emit('error', new HubError('storage', `the queue is in memory alone: ${error?.message}`));
    }
  }

  #save(number, entry) {
    if (this.#store !== null && this.#options.queue?.indexedDB) this.#unsaved.set(number, entry);
    if (this.#unsaved.size === 1) queueMicrotask(() => this.#write());
  }

  #write() {
    if (!this.#store || !this.#unsaved.size) return;
    const store = this.#store.begin();
    for (const [number, entry] of this.#unsaved) {
      if (entry) store.put(entry, this.#store.base + number); else store.delete(this.#store.base + number);
    }
    this.#unsaved.clear();
  }

  // MARK: Answers

  #find(id) {
    for (const [number, entry] of this.#queue) if (id === entry.id || id === `${number}`) return number;
  }

  #answered(c, answer, bytes) {
    if (answer.replyTo === c.refresh?.messageId) return this.#refreshed(c, true);
    if (answer.tripId) this.#charge(c, bytes);
    for (const { code, index } of answer.rejected ?? []) {
      this.#events.emit('error', new HubError(code, `fix ${index} of a batch was refused`));
    }
    this.#take(this.#find(answer.replyTo))?.resolve?.(answer);
  }

  #refused(c, { code, message, replyTo, retryAfter, details }) {
    if (replyTo && replyTo === c.refresh?.messageId) return this.#refreshed(c, false);
    const error = new HubError(code, message, retryAfter, details);
    const channel = replyTo && [...this.#channels.values()].find(({ asked }) => asked === replyTo);
    const number = this.#find(replyTo), target = channel ?? this.#queue.get(number);
    const retry = retryOf(code), time = this.#alarms.now() + Math.min(retryAfter ?? 1, longestRetryAfter) * 1000;
    if (target && (retry === 'later' || retry === 'once' && !target.isRepeated)) {
      target.isRepeated ||= retry === 'once';
      target.isSent = false;
      if (channel) Object.assign(channel, { asked: undefined, due: time });
      else c.notBefore = Math.max(c.notBefore, time);   // all wait, so that the order is kept as far as it can be
      return;
    }
    if (channel) this.#end(channel, code);
    const { reject = e => this.#events.emit('error', e) } = this.#take(number) ?? {};
    reject(error);
  }

  #pong(c, { replyTo, storedThrough }) {
    const place = c.pings.findIndex(({ id }) => id === replyTo);
    if (place < 0) return;
    const { through } = c.pings.splice(0, place + 1)[place], now = this.#alarms.now();
    for (const [number, { type, isSent, payload }] of this.#queue) {
      if (type === 'location_update' && isSent && number <= through && payload.timestamp <= storedThrough) this.#take(number);
    }
    // What was sent before a ping that was answered long ago is stored by now, or there was no room for it.
    if (c.answered && now - c.answered.time < storedMs) return;
    if (c.answered) this.#batch((number, { isSent }) => isSent && number <= c.answered.through);
    c.answered = { through, time: now };
  }

  /** A rider is charged for long answers. What they were compressed to counts as well: about a quarter of them. */
  #charge(c, bytes, before = 0) {
    const cost = total => Math.max(0, Math.floor((total * 1.25 - 16_384) / 4096));
    if (c.greeting.role === 'rider') c.budget.charge(cost(before + bytes) - cost(before));
    c.charged = before + bytes;
  }

  // MARK: Channels

  /** A feed of a channel, or of a view; feeds of one channel share its subscription, which lasts as long as they do. */
  #feed(channel, viewId) {
    const key = viewId ?? channel;
    const target = this.#channels.get(key)
      ?? { key, channel, viewId, due: 0, feeds: new Map(), shown: {}, drivers: new Map(), more: new Map() };
    const { on, emit } = listeners();
    const feed = {
      state: { is: target.isLive ? 'live' : 'waiting' },
      get position() { return target.shown.position; },
      get eta() { return target.shown.eta; },
      get trip() { return target.shown.trip; },
      on,
      close: () => this.#leave(target, feed),
      [Symbol.asyncIterator]: () => iterate(feed),
    };
    this.#channels.set(key, target);
    target.feeds.set(feed, emit);
    if (target.isLive) queueMicrotask(() => emit('snapshot', target.shown));
    this.#flush();
    return { feed, target };
  }

  #tell(target, type, data) {
    for (const [feed, emit] of target.feeds) {
      if (type === 'snapshot') feed.state = { is: 'live' };
      if (type === 'ended') feed.state = { is: 'ended', reason: data };
      emit(type, data);
    }
  }

  #leave(target, feed) {
    const emit = target.feeds.get(feed);
    if (!target.feeds.delete(feed)) return;
    feed.state = { is: 'ended', reason: 'asked' };
    emit('ended', 'asked');
    if (target.feeds.size || !this.#channels.delete(target.key)) return;
    const { channel, viewId } = target;
    if (this.#c?.greeting) this.#unsubscribes.push(viewId ? { viewId } : { channel });
    this.#flush();
  }

  #end(target, reason) {
    if (!target) return;
    this.#channels.delete(target.key);
    this.#tell(target, 'ended', reason);
    target.feeds.clear();
  }

  /** When something was published, and when it came, by the hub's clock: a marker needs both. */
  #dated(position, timestamp) {
    return Object.assign(position, { published: timestamp, received: this.now() });
  }

  #subscribed(c, answer, timestamp, bytes) {
    const { replyTo, viewId, channel, cells, epoch, sequence, recovered, snapshot = {} } = answer;
    const target = this.#channels.get(viewId ?? channel);
    this.#charge(c, bytes);
    if (!target) return;
    c.missed = channel;
    if (target.asked === replyTo) Object.assign(target, { asked: undefined, isRepeated: false, standing: this.#alarms.now() });
    if (cells) this.#watches(target, new Set(cells));
    if (recovered && target.epoch === epoch) return target.isLive = true;
    if (target.epoch && !viewId) this.#tell(target, 'lost');
    if (snapshot.position) this.#dated(snapshot.position, timestamp);
    Object.assign(target, { isLive: true, shown: snapshot, ...(!viewId && { epoch, since: sequence }) });
    this.#tell(target, 'snapshot', snapshot);
  }

  /** Each event once and in order: what came before is dropped, and what came too early comes again. */
  #event(c, target, type, event, unknown, bytes) {
    if (!target) return;
    if (c.missed === target.channel) this.#charge(c, bytes, c.charged);
    if (event.sequence > target.since + 1) return this.#noteGap(target);
    if (event.sequence <= target.since) return;
    target.since = event.sequence;
    if (unknown) return;
    const { tripId, status, driverId, timestamp } = event;
    if (type === 'trip_update') target.shown.trip = { ...target.shown.trip, tripId, status, timestamp, ...(driverId && { driverId }) };
    this.#tell(target, type === 'trip_update' ? 'update' : 'notice', event);
  }

  #stated(target, type, state) {
    if (!target) return;
    if (state.after > target.since) this.#noteGap(target);
    target.shown[type] = state;
    this.#tell(target, type, state);
  }

  /** An event is missing: those since the last one are asked for. */
  #noteGap(target) {
    if (target.asked || target.due < Infinity) return;
    target.due = Math.max(this.#alarms.now(), target.standing + resubscribeMs);
  }

  // MARK: Areas (protocol/areas.md, "Rules for a client")

  /** A view has these cells now; of one that another view had already, the hub tells only what changes. */
  #watches(view, cells) {
    const others = [...this.#channels.values()].filter(other => other !== view);
    const known = others.flatMap(({ drivers }) => [...drivers.values()]).filter(({ cell }) => cells.has(cell));
    for (const driver of known) if (!view.drivers.has(driver.driverId)) view.drivers.set(driver.driverId, driver);
    for (const [id, { cell }] of view.drivers) if (!cells.has(cell)) view.drivers.delete(id);
    for (const cell of view.more.keys()) if (!cells.has(cell)) view.more.delete(cell);
    view.cells = cells;
  }

  /** What a cell says of a driver counts until another cell shows it. */
  #area(update, timestamp) {
    const { cell, full, left, more = 0 } = update;
    const named = new Set(full ? update.drivers.map(({ driverId }) => driverId) : left);
    for (const driver of update.drivers) this.#dated(driver, timestamp).cell = cell;
    for (const view of this.#channels.values()) {
      if (!view.cells?.has(cell)) continue;
      for (const [id, driver] of view.drivers) if (driver.cell === cell && named.has(id) !== !!full) view.drivers.delete(id);
      for (const driver of update.drivers) view.drivers.set(driver.driverId, driver);
      view.more.set(cell, more);
      this.#tell(view, 'update', update);
    }
  }

  // MARK: What one asks for

  trip(id) { return this.#feed(`trip:${id}`).feed; }
  driver(id) { return this.#feed(`driver:${id}`).feed; }
  fence(id) { return this.#feed(`fence:${id}`).feed; }
  fleet() { return this.#feed('fleet').feed; }

  view(place) {
    const name = place => typeof place === 'string' ? `area:${place}`
      : `nearby:${place.latitude.toFixed(7)},${place.longitude.toFixed(7)},${place.radius}`;
    const { feed, target } = this.#feed(name(place), `view-${++this.#number}`);
    const move = place => {
      Object.assign(target, { channel: name(place), due: 0 });
      this.#flush();
    };
    return Object.defineProperty(Object.assign(feed, { drivers: target.drivers, move }), 'more', {
      get: () => [...target.more.values()].reduce((sum, more) => sum + more, 0),
    });
  }

  #query(kind, question) { return this.#request('query', { kind, ...question }).then(({ replyTo, ...result }) => result); }
  nearby(question) { return this.#query('nearby', question).then(({ drivers }) => drivers); }
  within(question) { return this.#query('within', question); }
  getDriver(driverId) { return this.#query('driver', { driverId }); }
  getTrip(tripId) { return this.#query('trip', { tripId }); }

  getTrips(question) { return this.#get('/v1/trips', question); }
  track(id, question) { return this.#get(`/v1/trips/${id}/track.geojson`, question); }
  fences(question) { return this.#get('/v1/fences', question); }
  getFence(id) { return this.#get(`/v1/fences/${id}`); }

  #http(path) {
    const url = new URL(this.#url);
    url.protocol = url.protocol.replace('ws', 'http');
    url.pathname = url.pathname.replace(/(\/v1\/ws)?\/?$/, path);
    return url;
  }

  /** Over HTTP, with the token of the connection: so it waits for one. */
  async #get(path, question = {}) {
    if (!this.#token && !this.#options.dev) await new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    const url = new URL(this.#options.dev ? this.#address(this.#http(path)) : this.#http(path));
    for (const [name, value] of Object.entries(question)) if (value !== undefined) url.searchParams.set(name, value);
    const headers = this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
    const response = await fetch(url, { headers }).catch(error => { throw new HubError('unreachable', error.message); });
    const body = await response.json();
    if (response.ok) return body;
    throw new HubError(body.error?.code, body.error?.message, +response.headers.get('Retry-After') || undefined);
  }

  // MARK: What a driver says

  send(fix, { trip } = {}) {
    const payload = fixOf(fix, trip, this.#options.now());
    if (!this.#gate(payload, this.#sampling)) return 'leftOut';
    return this.#enqueue('location_update', payload) ? 'queued' : 'full';
  }

  async status(status) {
    await this.#request('driver_status', typeof status === 'string' ? { status } : status);
  }

  async move(tripId, status, { expected: expectedStatus, ...more } = {}) {
    const timestamp = Math.round(this.#options.now());
    const { trip } = await this.#request('trip_status', { tripId, status, timestamp, expectedStatus, ...more });
    return trip ?? this.getTrip(tripId);
  }

  async change(tripId, change) {
    await this.#request('trip_change', { tripId, ...change });
    return this.getTrip(tripId);
  }
}

const refusal = status => ({ cause: 'refused', code: status, message: `HTTP ${status}` });
