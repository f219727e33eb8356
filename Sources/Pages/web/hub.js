// The client of a location hub: protocol/javascript.md. Times are in ms, unless a name says more.

const connectMs = 10_000, closeMs = 2_000, tokenMs = 30_000;
// Delays double, up to `jitter` longer; the first is up to `spreadMs` where many come at once.
const firstDelayMs = 1_000, longestDelayMs = 30_000, jitter = 0.3, spreadMs = 5_000, stableMs = 10_000;
const overRateMs = 60_000, longestRetryAfterMs = 3_600_000;
const renewalMs = 60_000, renewalPart = 0.2, renewalRetryMs = 10_000;
const silentIntervals = 2.5, pingPart = 0.8;        // of a heartbeat interval
const wokenMs = 3_000, lateMs = 5_000;              // a later timer was asleep
const unconfirmedFixes = 64, storedMs = 15_000;     // then a ping; what is not stored goes out again
const resubscribeMs = 1_000, earlyPingMs = 1_000, clockWindowMs = 30_000;
const burstSeconds = 4, onTime = 0.9;               // a hub's is of 5 s; networks bunch
const queuedMessages = 4096, bufferedEvents = 1000;

// MARK: Messages

const list = text => text.split(' ');

export const words = {
  role: list('driver rider ops'),
  move: list('requested accepted driver_en_route arrived_pickup trip_started arrived_destination completed cancelled'),
  confidence: list('high medium low'),
  target: list('pickup dropoff'),
  basis: list('route direct'),
  verdict: list('accepted absorbed history duplicate held refused'),
  notice: list('driver_arriving driver_arrived off_route driver_offline driver_online fence_enter fence_exit '
    + 'fence_dwell hazard speeding message unserved'),
  code: list('bad_json bad_message unknown_type too_large unauthorized forbidden unknown_channel unknown_trip '
    + 'invalid_location implausible_location token_expired rate_limited storage_full shutting_down internal '
    + 'invalid_transition not_found'),
};

/** What a payload has at least: `name:type`; without a name, what that shape has. */
const shapes = {
  connected: 'sessionId:text role:role id:text heartbeatInterval:number serverTime:number limits:limits',
  limits: 'maxMessageBytes:number maxBatch:number rate:number',
  driver_location: 'channel:channel :position',
  position: ':mover driverId:text accuracy:number confidence:confidence timestamp:number age:number after:number',
  eta_update: 'channel:channel :eta',
  eta: 'tripId:text target:target eta:number distance:number arrivalTime:number basis:basis after:number',
  area_update: 'channel:channel cell:text tick:number drivers:drivers left:list',
  trip_update: 'channel:channel sequence:number :trip',
  trip: 'tripId:text status:move timestamp:number',
  notification: 'channel:channel sequence:number kind:notice title:text body:text',
  offer: 'channel:channel sequence:number tripId:text pickup:place distance:number eta:number expiresAt:number',
  offer_withdrawn: 'channel:channel sequence:number reason:text tripId:text',
  counts_update: 'channel:channel tick:number cells:list',
  raw_fix: 'channel:channel driverId:text :place timestamp:number verdict:verdict',
  stats: 'channel:channel timestamp:number fixes:number',
  subscribed: 'replyTo:text channel:channel sequence:number epoch:text snapshot:snapshot?',
  snapshot: 'trip:trip? position:position? eta:eta?',
  unsubscribed: 'channel:channel reason:text',
  ack: 'replyTo:text',
  result: 'replyTo:text',
  pong: 'replyTo:text serverTime:number',
  sampling: 'interval:number minDistance:number',
  error: 'code:text message:text',
};

const checks = {
  number: Number.isFinite,
  text: value => typeof value === 'string' && value !== '',
  list: Array.isArray,
  place: value => Math.abs(value?.latitude) <= 90 && Math.abs(value.longitude) <= 180,
  channel: value => /^(fleet|trips|stats|(trip|driver|fence|area|nearby|box|counts|raw):.+)$/.test(value),
  mover: value => checks.place(value) && !(value.heading > 360 || value.speed > fastest),
  drivers: value => Array.isArray(value) && value.every(driver => checks.mover(driver) && checks.text(driver.driverId)),
};

/** True; undefined for a word of a newer hub, false where it is malformed. */
function fits(value, type) {
  if (checks[type]) return checks[type](value);
  if (words[type]) return checks.text(value) && (words[type].includes(value) || undefined);
  const answers = shapes[type].split(' ').map(part => {
    const [, name, inner, isOptional] = /(\w*):(\w+)(\??)/.exec(part);
    return isOptional && value[name] === undefined || fits(name ? value?.[name] : value, inner);
  });
  return answers.includes(false) ? false : answers.includes(undefined) ? undefined : true;
}

/** The message, `unknown` where it is a newer hub's. Throws where it is malformed. */
export function checked(message) {
  const { type, timestamp, payload } = message ?? {};
  const isEnvelope = checks.text(type) && checks.number(timestamp) && Object(payload) === payload;
  const answer = isEnvelope && (Object.hasOwn(shapes, type) ? fits(payload, type) : undefined);
  if (answer === false) throw new SyntaxError(`a malformed ${type}`);
  return answer ? message : { ...message, unknown: true };
}

/** Takes null members away, as absent; counts all names. */
function tidied(value) {
  let names = 0;
  for (const name of Object.keys(value)) {
    if (!Array.isArray(value)) names++;
    if (value[name] === null) delete value[name];
    else if (typeof value[name] === 'object') names += tidied(value[name]);
  }
  return names;
}

/** Of two members of one name, which must be refused, JSON.parse shows one: names are counted. */
export function readJSON(text) {
  const message = JSON.parse(text);
  const colons = text.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1;
  if (tidied(Object(message)) !== colons) throw new SyntaxError('two members of one name');
  return message;
}

/** Whether a refused message is sent again; an unknown code counts as `internal`. */
const retryOf = code => code === 'token_expired' ? 'withNewToken'
  : /^(rate_l|storage_f|shutting|unreach)/.test(code) ? 'later'
    : code !== 'internal' && [...words.code, 'closed', 'full', 'storage'].includes(code) ? 'never' : 'once';

/** Whether a connection is made again, by close code or HTTP status. */
const ruleOf = code => code === 401 || code === 4401 ? 'token'
  : code === 4429 ? 'pause' : [1000, 1002, 1003, 1007, 1009, 4400, 4409].includes(code) ? 'never'
    : code >= 1000 && code !== 4408 ? 'spread'
      : code >= 400 && code < 500 && ![408, 409, 425, 429].includes(code) ? 'never' : 'backOff';

export class HubError extends Error {
  constructor(code, message, retryAfter, details) {
    super(message);
    Object.assign(this, { name: 'HubError', code, retryAfter, details });
    this.retry = retryOf(code).replace('once', 'later');
  }
}

// MARK: Places

const radians = Math.PI / 180;
const semiMajorAxis = 6_378_137;   // WGS 84
const eccentricitySquared = (2 - 1 / 298.257223563) / 298.257223563;

const scale = { east: 0, north: 0 };
function setScale(latitude) {
  const phi = Math.max(-89.99, Math.min(89.99, latitude)) * radians;
  const w = 1 - eccentricitySquared * Math.sin(phi) ** 2;
  const vertical = semiMajorAxis / Math.sqrt(w);
  scale.east = vertical * Math.cos(phi) * radians;
  scale.north = vertical * (1 - eccentricitySquared) / w * radians;
}
const shortWay = degrees => degrees - 360 * Math.round(degrees / 360);

/** Where a marker is; written over: no garbage. */
const spot = { latitude: 0, longitude: 0, heading: 0, age: 0 };
function move(east, north) {
  spot.latitude = Math.max(-90, Math.min(90, spot.latitude + north / scale.north));
  spot.longitude = shortWay(spot.longitude + east / scale.east);
}
/** On an arc (Sources/Geo/Turn.swift). */
function arrive(bearing, meters, turn) {
  const half = turn / 2 * radians;
  const chord = Math.abs(half) < 1e-4 ? meters : meters * Math.sin(half) / half;
  const direction = (bearing + turn / 2) * radians;
  setScale(spot.latitude);
  move(chord * Math.sin(direction), chord * Math.cos(direction));
}

// MARK: Markers (MarkerInterpolator.swift)

// Seconds, degrees, degrees/s, m/s, metres.
const longestPrediction = 10, easing = 1, longestTurnGap = 6, longestWait = 10;
const longestTurn = 90, slowestTurn = 3, fastestTurn = 60;
const standstill = 0.3, turningSpeed = 1, fastest = 1000, farthestEasing = 500;
const steepestEasing = 1.5;   // of smoothstep

// A marker's newest position, its age (s) and turn (degrees/s); how far ahead and aside of it the marker was (m), which
// eases out in `seconds`.
const noMarker = () => ({
  latitude: NaN, longitude: NaN, age: Infinity, rate: 0, ahead: 0, aside: 0, frame: 0, seconds: easing, waits: false,
});

const drives = s => s.speed >= standstill && s.heading >= 0;

function predict(s, age) {
  spot.latitude = s.latitude;
  spot.longitude = s.longitude;
  spot.heading = s.heading;
  if (!drives(s)) return;
  const seconds = Math.min(age, longestPrediction);
  const turning = s.rate ? Math.min(seconds, longestTurn / Math.abs(s.rate)) : 0;
  const turned = s.heading + s.rate * turning;
  if (turning > 0) arrive(s.heading, s.speed * turning, s.rate * turning);
  if (seconds > turning) arrive(turned, s.speed * (seconds - turning), 0);
  spot.heading = (turned + 360) % 360;
}

function left(part) {
  const x = Math.min(Math.max(part, 0), 1);
  return 1 - x * x * (3 - 2 * x);
}

function locate(s, t, snap) {
  const passed = Math.max(0, t - s.arrived) / 1000;
  spot.age = s.age + (passed || 0);
  predict(s, snap ? 0 : spot.age);
  const going = Math.min(passed, Math.max(0, longestPrediction - s.age));
  const ahead = s.ahead * left((s.waits ? going : passed) / s.seconds), aside = s.aside * left(passed / easing);
  if (snap || !ahead && !aside) return;
  const sine = Math.sin(s.frame * radians), cosine = Math.cos(s.frame * radians);
  setScale(spot.latitude);
  move(sine * ahead + cosine * aside, cosine * ahead - sine * aside);
}

function turnRate(s, heading, speed, seconds) {
  if (!(seconds > 0.1 && seconds <= longestTurnGap && Math.min(s.speed, speed) >= turningSpeed)) return 0;
  const turn = heading - s.heading;
  const rate = (Math.abs(turn) < 180 ? turn : turn - 360 * Math.sign(turn)) / seconds;
  return Math.abs(rate) >= slowestTurn && Math.abs(rate) <= fastestTurn ? rate : 0;
}

function take(s, p) {
  if (p.timestamp <= s.timestamp) return;
  const { latitude, longitude, speed, timestamp, accuracy = 0 } = p;
  const arrived = p.received ?? p.published ?? Date.now(), published = p.published ?? arrived;
  const age = Math.max(0, (p.age ?? (published - timestamp) / 1000) + (arrived - published) / 1000);
  const heading = p.heading >= 0 && checks.mover(p) ? p.heading : NaN;
  const isByHub = p.timeSource === 'hub';
  const passed = (isByHub || s.isByHub ? arrived - s.arrived : timestamp - s.timestamp) / 1000;
  const rate = turnRate(s, heading, speed, passed);
  locate(s, arrived);
  const before = { ...spot };
  Object.assign(s, noMarker(), {
    latitude, longitude, heading, speed, accuracy, timestamp, isByHub, arrived, age, rate,
  });
  predict(s, age);
  setScale(spot.latitude);
  const east = shortWay(before.longitude - spot.longitude) * scale.east;
  const north = (before.latitude - spot.latitude) * scale.north;
  if (!(Math.hypot(east, north) < farthestEasing)) return;
  s.frame = spot.heading || 0;
  const sine = Math.sin(s.frame * radians), cosine = Math.cos(s.frame * radians);
  s.ahead = east * sine + north * cosine;
  s.aside = east * cosine - north * sine;
  if (s.ahead <= 0) return;
  // One ahead waits for the car: it must never back up.
  const needed = steepestEasing * s.ahead / (drives(s) ? speed : 1e-9);
  s.waits = needed <= longestWait || s.ahead <= accuracy;
  if (s.waits) s.seconds = needed <= longestWait ? Math.max(needed, easing) : Infinity;
}

export class Markers {
  snap = false;
  #all = new Map();

  push(id, position) {
    if (!this.#all.has(id)) this.#all.set(id, noMarker());
    take(this.#all.get(id), position);
  }

  drop(id) { this.#all.delete(id); }

  each(t, f) {
    this.#all.forEach((s, id) => {
      locate(s, t, this.snap);
      f(id, spot.latitude, spot.longitude, spot.heading, spot.age);
    });
  }
}

export class Marker {
  snap = false;
  #state = noMarker();

  push(position) { take(this.#state, position); }

  at(t) {
    locate(this.#state, t, this.snap);
    const { heading, ...place } = spot, predicted = !this.snap && spot.age > 0 && drives(this.#state);
    return { ...place, ...(heading >= 0 && { heading }), predicted };
  }
}

/** A listener that throws disturbs no other. */
function listeners() {
  const lists = {};
  return {
    on(type, f, { signal } = {}) {
      const own = (...event) => f(...event);
      const off = () => {
        lists[type]?.delete(own);
        signal?.removeEventListener('abort', off);
      };
      if (signal?.aborted) return off;
      (lists[type] ??= new Set()).add(own);
      signal?.addEventListener('abort', off);
      return off;
    },
    emit(type, data) {
      for (const f of [...lists[type] ?? [], ...lists.any ?? []]) {
        try { f(data, type); } catch (error) { queueMicrotask(() => { throw error; }); }
      }
    },
  };
}

/** Deadlines by name, and a clock that never goes back. */
function alarms({ now, setTimeout, clearTimeout }) {
  const timers = {};
  let last = 0, skipped = 0;
  const clock = () => {
    const time = now();
    skipped += Math.max(0, last - time);
    last = time;
    return time + skipped;
  };
  const clear = names => list(names).forEach(name => clearTimeout(timers[name]));
  const set = (name, delay, f) => {
    const time = clock() + delay;
    clear(name);
    timers[name] = setTimeout(() => f(clock() - time), Math.min(delay, 2e9));
  };
  return { now: clock, clear, set };
}

/** protocol/rates.md */
function bucket(rate, now) {
  const burst = Math.max(1, rate * burstSeconds);
  let tokens = burst, filled = now();
  return {
    wait(cost) {
      tokens = Math.min(burst, tokens + (now() - filled) / 1000 * rate);
      filled = now();
      return rate && Math.max(0, Math.ceil((Math.min(cost, burst) - tokens) / rate * 1000));
    },
    charge(cost) { tokens -= cost; },
  };
}

/** What a message costs at most: a position has 6 bytes or more, one of a route 2. */
const costOf = ({ locations, polygon, route }, bytes) => 1 + Math.floor(Math.max(
  bytes / 4096, (locations?.length ?? 0) / 50, polygon ? bytes / 300 : route ? route.length / 100 : 0));

/** Which fixes to send (protocol/drivers.md, "sampling"). */
function samplingGate() {
  let last = {};
  return (fix, advice) => {
    const passed = advice && last.tripId === fix.tripId ? (fix.timestamp - last.timestamp) / 1000 : -1;
    if (passed >= 0) {
      setScale(last.latitude);
      const meters = Math.hypot(shortWay(fix.longitude - last.longitude) * scale.east,
        (fix.latitude - last.latitude) * scale.north);
      const silence = meters < advice.minDistance ? Math.max(30, 2 * advice.interval) : advice.interval;
      if (passed < silence * onTime) return false;
    }
    last = fix;
    return true;
  };
}

function fixOf(fix, tripId, now) {
  const { coords: phone = fix, timestamp = now } = fix, { latitude, longitude, source } = phone;
  const result = {
    ...(tripId && { tripId }), ...(source && { source }), latitude, longitude, timestamp: Math.round(+timestamp),
  };
  for (const name of list('accuracy heading speed altitude headingAccuracy speedAccuracy batteryLevel')) {
    const value = phone[name];
    if (checks.number(value) && (value >= 0 || name === 'altitude')) result[name] = value;
  }
  if (checks.place(result) && result.timestamp > 0 && result.timestamp < Infinity) return result;
  throw new HubError('invalid_location', 'no place, or no time');
}

/** What a token says, unchecked. */
export function claimsOf(token) {
  try {
    return JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')));
  } catch {
    return {};
  }
}

/** Of state a slow reader gets the newest. */
async function* iterate(feed) {
  const waiting = new Map(), events = [];
  let last = 0, wake;
  const off = feed.on('any', (data, type) => {
    const isState = type === 'position' || type === 'eta', id = isState ? type + data.driverId : ++last;
    waiting.delete(id);
    waiting.set(id, { type, data });
    if (!isState && events.push(id) > bufferedEvents) {
      waiting.delete(events.shift());
      waiting.set(events[0], { type: 'lost' });
    }
    wake?.();
  });
  try {
    while (waiting.size || feed.state.is !== 'ended') {
      for (const [id, event] of waiting) {
        waiting.delete(id);
        if (id === events[0]) events.shift();
        yield event;
      }
      if (feed.state.is !== 'ended') await new Promise(resolve => { wake = resolve; });
    }
  } finally {
    off();
  }
}

// MARK: The hub

export class Hub {
  #url;
  #options;
  #alarms;
  #events = listeners();
  #state;
  /** The attempt or connection. */
  #c;
  #failures = 0;
  #chance;
  #token;
  #asking;
  #need = 'connect';
  #channels = new Map();
  #unsubscribes = [];
  /** What has to arrive, by ascending numbers. */
  #queue = new Map();
  #dropped = 0;
  #number = 0;
  #prefix;
  #owner;
  #gate = samplingGate();
  #sampling;
  #store;
  #loading;
  #areas;
  #clock;
  #page;
  on = this.#events.on;

  constructor(url, options) {
    this.#options = {
      now: Date.now, random: Math.random, setTimeout, clearTimeout, WebSocket: globalThis.WebSocket, ...options,
    };
    this.#url = new URL(url);
    if (!/^wss?:$/.test(this.#url.protocol)) throw new TypeError(`${url} is no WebSocket URL`);
    if (!this.#options.WebSocket) throw new TypeError('no WebSocket: give one');
    this.#alarms = alarms(this.#options);
    this.#prefix = `${Math.floor(this.#options.random() * 2 ** 52).toString(36)}-`;
    this.#become('idle');
  }

  get state() { return this.#state; }
  get sampling() { return this.#sampling; }
  get backlog() { return { messages: this.#queue.size, dropped: this.#dropped }; }
  now() { return this.#options.now() + Math.max(...this.#clock?.offsets ?? [0]); }

  #become(is, more) {
    this.#events.emit('state', this.#state = { is, since: this.#options.now(), ...more });
  }

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

  #stop(reason) {
    this.#detach();
    this.#token = undefined;
    this.#page?.abort();
    for (const [number, { type }] of this.#queue) {
      if (type === 'query') this.#take(number).reject(new HubError('closed', 'the hub is closed'));
    }
    this.#become('closed', { reason });
  }

  #detach() {
    const c = this.#c ?? {};
    this.#c = undefined;
    this.#asking?.abort.abort();
    this.#alarms.clear('connect ping silence woken renew flush due');
    if (c.socket) c.socket.onclose = c.socket.onmessage = c.socket.onerror = null;
    return c;
  }

  async #attempt() {
    const c = this.#c = { pings: [], sentThrough: -Infinity };
    const { token, codec } = this.#options;
    this.#alarms.set('connect', connectMs, () => this.#giveUp('timeout'));
    this.#become('connecting');
    try {
      await (this.#loading ??= this.#load());
      const binary = codec === 'binary' && await import('./hub-binary.js');
      if (c !== this.#c) return;
      this.#alarms.clear('connect');
      const given = typeof token === 'function' ? await this.#ask(this.#need) : token;
      if (c !== this.#c) return;
      this.#token = c.token = given;
      this.#open(c, binary);
    } catch (error) {
      if (c === this.#c) this.#ended({ cause: 'token', message: `${error?.message}` }, c.token ? 'token' : 'backOff');
    }
  }

  #open(c, binary) {
    const names = ['locationhub.v1.json'];
    if (binary) names.unshift('locationhub.v1.binary');
    if (this.#token) names.push(`access_token.${this.#token}`);
    const socket = c.socket = new this.#options.WebSocket(this.#address().href, names);
    const reader = binary && new binary.BinaryReader();
    socket.binaryType = 'arraybuffer';
    c.isBinary = () => socket.protocol === names[0] && binary;
    c.read = data => c.isBinary() ? reader.read(data) : readJSON(data);
    c.write = message => c.isBinary() ? binary.writeBinary(message, c.trip) : JSON.stringify(message);
    this.#alarms.set('connect', connectMs, () => this.#giveUp('timeout'));
    socket.onmessage = ({ data }) => this.#received(c, data);
    socket.onerror = ({ status, retryAfter }) => {
      Object.assign(c, { status, retryAfter });
      // Node 22 has no close event for a socket that did not open.
      this.#alarms.set('connect', 100, () => socket.onclose?.({ code: 1006 }));
    };
    socket.onclose = ({ code, reason }) => {
      const lost = { cause: 'lost', message: 'connection lost' };
      if (c.status) this.#ended(refusal(c.status), ruleOf(c.status), c.retryAfter);
      else if (code === 1006) this.#ended(lost, c.greeting ? 'spread' : 'backOff');
      else this.#ended({ cause: 'closed', code, message: reason || `closed with ${code}` }, ruleOf(code));
    };
  }

  #address() {
    const address = new URL(this.#url), { dev } = this.#options;
    for (const name in dev) address.searchParams.set(name, dev[name]);
    return address;
  }

  #giveUp(cause) {
    this.#c.socket?.close();
    this.#ended({ cause, message: 'no answer' }, cause === 'silent' ? 'spread' : 'backOff');
  }

  #ended(reason, rule, retryAfter) {
    const { openedAt } = this.#detach();
    if (this.#alarms.now() - openedAt >= stableMs) this.#failures = 0;
    if (rule === 'token') {
      this.#need = 'refused';
      rule = typeof this.#options.token === 'function' ? 'backOff' : 'never';
    }
    if (rule === 'never') return this.#stop(reason);
    // One draw a break: sums would heap up.
    const isFirst = this.#failures === 0;
    if (isFirst) this.#chance = this.#options.random();
    const growing = Math.min(firstDelayMs * 2 ** this.#failures++, longestDelayMs);
    this.#wait(rule === 'spread' && isFirst ? spreadMs * this.#options.random()
      : this.#spread(rule === 'pause' ? overRateMs : growing, retryAfter), reason);
    if (this.#state.reason?.cause === 'lost' && !openedAt && Math.log2(this.#failures) % 1 === 0) this.#askWhy();
  }

  #wait(delay, reason) {
    this.#alarms.set('connect', delay, () => this.#attempt());
    this.#become('waiting', { retryAt: this.#options.now() + delay, reason });
  }

  #spread(least, retryAfter = 0) {
    return Math.max(least, Math.min(retryAfter * 1000, longestRetryAfterMs)) * (1 + jitter * this.#chance);
  }

  /** The same credential over HTTP shows why a socket did not open. */
  async #askWhy() {
    const waiting = this.#state;
    const { status, headers } = await fetch(...this.#asked('trips/-')).catch(() => ({}));
    if (waiting !== this.#state) return;
    if (status === 401) {
      this.#need = 'refused';
      if (typeof this.#options.token !== 'function') this.#stop(refusal(status));
    } else if (status === 429 || status === 503) {
      this.#wait(this.#spread(0, +headers.get('Retry-After') || 1), refusal(status));
    }
  }

  /** Once at a time: an earlier one is called off and waited for. */
  #ask(reason) {
    const before = this.#asking;
    before?.abort.abort();
    const asking = this.#asking = { abort: new AbortController() }, { signal } = asking.abort;
    asking.done = (async () => {
      await before?.done.catch(() => {});
      signal.throwIfAborted();
      const token = await new Promise((resolve, reject) => {
        this.#alarms.set('token', tokenMs, () => {
          asking.abort.abort();
          reject(new Error('no token in time'));
        });
        Promise.resolve(this.#options.token({ reason, signal })).then(resolve, reject);
      }).finally(() => {
        if (this.#asking === asking) this.#asking = undefined;
        this.#alarms.clear('token');
      });
      if (!checks.text(token)) throw new Error('no token');
      return token;
    })();
    return asking.done;
  }

  #renewLater() {
    const left = Math.max(0, claimsOf(this.#c.token).exp * 1000 - this.now());
    const early = Math.min(renewalMs, left * renewalPart) * (1 + jitter * this.#options.random());
    if (typeof this.#options.token === 'function' && left < 2e9) this.#renewIn(left - early || renewalRetryMs);
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

  #refreshed(c, isTaken) {
    if (isTaken) c.token = c.refresh.payload.token;
    this.#token = c.token;
    c.refresh = undefined;
    if (isTaken) this.#renewLater(); else this.#renewIn(renewalRetryMs);
  }

  #received(c, data) {
    c.heard = this.#alarms.now();
    this.#alarms.clear('woken');
    let message;
    try {
      message = checked(c.read(data));
    } catch {
      return;
    }
    if (!c.greeting && message.type !== 'connected') return;
    this.#setClock(message.timestamp);
    this.#handle(c, message, data.length ?? data.byteLength);
    this.#flush();
  }

  /** The hub's clock is at least where it was at sending. */
  #setClock(timestamp) {
    const now = this.#options.now(), offset = timestamp - now;
    const { offsets, since } = this.#clock ??= { offsets: [offset, offset], since: now };
    if (Math.abs(now - since) > clockWindowMs) this.#clock = { offsets: [offset, offsets[0]], since: now };
    else offsets[0] = Math.max(offset, offsets[0]);
  }

  #handle(c, { type, payload, timestamp, unknown }, bytes) {
    const channel = this.#channels.get(payload.channel);
    switch (unknown && !('sequence' in payload) ? '' : type) {
      case 'connected': return this.#connected(c, payload);
      case 'driver_location': return this.#stated(channel, 'position', this.#dated(payload, timestamp));
      case 'eta_update': return this.#stated(channel, 'eta', payload);
      case 'area_update':
        for (const driver of payload.drivers) this.#dated(driver, timestamp);
        // falls through
      case 'counts_update': return this.#areas?.updated(type, payload, this.#channels, view =>
        this.#notify(view, 'update', payload));
      case 'stats':
      case 'raw_fix': return channel && this.#notify(channel, type.split('_')[0], payload);
      case 'subscribed': return this.#subscribed(c, payload, timestamp, bytes);
      case 'unsubscribed': return payload.reason !== 'asked' && this.#end(channel, payload.reason);
      case 'pong': return this.#pong(c, payload);
      case 'sampling': return this.#events.emit(type, this.#sampling = payload);
      case 'error': return this.#refused(c, payload);
      case 'ack':
      case 'result': return this.#answered(c, payload, bytes);
      default: if (payload.sequence > 0) this.#event(c, channel, type, payload, unknown, bytes);
    }
  }

  #connected(c, greeting) {
    if (c.greeting) return;
    this.#claim(greeting);
    c.greeting = greeting;
    c.interval = Math.max(greeting.heartbeatInterval * 1000, 50);
    c.openedAt = this.#alarms.now();
    c.budget = bucket(greeting.limits.rate, () => this.#alarms.now());
    this.#need = 'connect';
    if (greeting.sampling) this.#events.emit('sampling', this.#sampling = greeting.sampling);
    if (c !== this.#c) return;
    this.#unsubscribes = [];
    for (const target of [...this.#channels.values(), ...this.#queue.values()]) {
      Object.assign(target, { isSent: false, asked: undefined, due: 0 });
    }
    this.#batch(() => true);
    this.#alarms.clear('connect');
    // Who came together must not ping together.
    this.#pingIn(c.interval * pingPart * (0.5 + 0.5 * this.#options.random()));
    this.#listen(c);
    this.#renewLater();
    this.#become('live');
  }

  /** What another left is not this one's to send; what was kept before any hub answered is. */
  #claim({ role, id }) {
    const owner = `${role} ${id}`;
    if (owner === this.#owner) return;
    const others = this.#owner ? [...this.#queue].filter(([, { type }]) => type !== 'query')
      : this.#store?.claim(this.#queue, owner) ?? [];
    this.#owner = owner;
    const error = new HubError('forbidden', `${others.length} messages are not ${owner}'s to send`);
    for (const [number, { reject }] of others) {
      // What is stored waits for a driver.
      if (role === 'driver') this.#drop(number); else this.#queue.delete(number);
      reject?.(error);
    }
    if (others.length) queueMicrotask(() => this.#events.emit('error', error));
  }

  #pingIn(delay) {
    this.#alarms.set('ping', delay, () => this.#ping(this.#c));
  }

  #ping(c) {
    const message = this.#message('ping', {});
    c.pings.push({ id: message.messageId, through: c.sentThrough });
    c.pinged = this.#alarms.now();
    this.#post(c, message, true);
    this.#pingIn(c.interval * pingPart);
  }

  #listen(c) {
    const wait = () => c.heard + silentIntervals * c.interval - this.#alarms.now();
    this.#alarms.set('silence', wait(), late => {
      if (wait() > 0) this.#listen(c);
      else if (late > lateMs) this.#woken();
      else this.#giveUp('silent');
    });
  }

  #woken() {
    const c = this.#c;
    if (!c?.greeting) return;
    this.#alarms.set('woken', wokenMs, () => this.#giveUp('silent'));
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

  #message(type, payload, messageId = this.#prefix + ++this.#number) {
    return { type, payload, timestamp: Math.round(this.#options.now()), messageId };
  }

  /** Gives the ms to wait, by the rate. What cannot be written is refused. */
  #post(c, message, isUrgent) {
    let data;
    try {
      data = c.write(message);
    } catch (error) {
      return this.#refused(c, { code: 'bad_message', message: error.message, replyTo: message.messageId });
    }
    const cost = costOf(message.payload, data.length), wait = c.budget.wait(cost);
    if (wait && !isUrgent) return wait;
    c.budget.charge(cost);
    if (message.type === 'location_update') c.trip = message.payload.tripId ?? c.trip;
    c.socket.send(data);
    return 0;
  }

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
      const { channel, viewId, precision, eventsOnly, since, epoch, due } = target;
      if (!channel) continue;
      next = Math.min(next, due);
      if (due > now) continue;
      const message = this.#message('subscribe',
        { channel, viewId, precision, eventsOnly, ...(epoch && { since, epoch }) });
      if ((wait = this.#post(c, message))) return wait;
      Object.assign(target, { due: Infinity, asked: message.messageId, c });
    }
    if (next > now && next < Infinity) this.#alarms.set('due', next - now, () => this.#flush());
  }

  #flushQueue(c) {
    const now = this.#alarms.now(), kinds = new Set(), ordered = c.greeting.role === 'driver';
    let unconfirmed = 0, next = Infinity;
    for (const [number, entry] of this.#queue) {
      const { type, payload } = entry;
      const isFix = type === 'location_update', kind = type + payload.tripId;
      if (kinds.has(kind) || type === 'trip_change' && kinds.has('trip_status' + payload.tripId)) continue;
      if ((ordered ? /^(dri|trip_c)/ : /^trip/).test(type)) kinds.add(kind);   // one by one
      if (entry.due > now) {
        next = Math.min(next, entry.due);
        if (ordered && /^(loc|trip_s)/.test(type)) break;   // in order
      } else if (!entry.isSent) {
        // In binary a number will do: only errors answer fixes.
        const wait = this.#post(c, this.#message(type, payload, isFix && c.isBinary() ? `${number}` : entry.id));
        if (wait) return wait;
        entry.isSent = true;
        c.sentThrough = Math.max(c.sentThrough, number);
      }
      if (isFix) unconfirmed++;
    }
    if (unconfirmed >= unconfirmedFixes && !c.pings.length && !(now < c.pinged + earlyPingMs)) this.#ping(c);
    return next < Infinity && next - now;
  }

  #enqueue(type, payload, settle) {
    if (this.#queue.size >= queuedMessages && !this.#dropFix()) return false;
    const number = ++this.#number, entry = { id: this.#prefix + number, type, payload, ...settle };
    this.#queue.set(number, entry);
    this.#store?.put(number, entry, this.#owner);
    this.#flush();
    return true;
  }

  #request(type, payload) {
    return new Promise((resolve, reject) => {
      if (!this.#enqueue(type, payload, { resolve, reject })) reject(new HubError('full', 'the queue is full'));
    });
  }

  #take(number) {
    const entry = this.#queue.get(number);
    this.#queue.delete(number);
    if (entry) for (const own of entry.numbers ?? [number]) this.#store?.delete(own);
    return entry;
  }

  #drop(number) {
    const { type, payload } = this.#take(number);
    if (type.startsWith('location')) return this.#dropped += payload.locations?.length ?? 1;
  }

  #dropFix() {
    for (const [number, { type }] of this.#queue) if (type.startsWith('location')) return this.#drop(number);
  }

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
      if (fixes && batch.payload.tripId === tripId && fixes < Math.min(maxBatch, 500, maxMessageBytes / 400 - 1)) {
        this.#queue.delete(batch.numbers.at(-1));
      } else batch = { type: 'location_batch', payload: { ...(tripId && { tripId }), locations: [] }, numbers: [] };
      batch.payload.locations.push(fix);
      batch.numbers.push(number);
      this.#queue.set(number, Object.assign(batch, { id: this.#prefix + number }));
    }
  }

  async #load() {
    const name = this.#options.queue?.indexedDB;
    if (!name) return;
    const failed = error => this.#events.emit('error', new HubError('storage', `not stored: ${error?.message}`));
    try {
      const { openStore } = await import('./hub-store.js');
      this.#store = await openStore(name, this.#state.since, failed);
      this.#store.load(this.#queue);
    } catch (error) {
      failed(error);
    }
  }

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
    const retry = retryOf(code), due = this.#alarms.now() + Math.min((retryAfter ?? 1) * 1000, longestRetryAfterMs);
    if (target && (retry === 'later' || retry === 'once' && !target.isRepeated)) {
      target.isRepeated ||= retry === 'once';
      Object.assign(target, { isSent: false, asked: undefined, due });
      return;
    }
    this.#end(channel, code);
    const { reject = e => this.#events.emit('error', e) } = this.#take(number) ?? {};
    reject(error);
  }

  #pong(c, { replyTo, storedThrough }) {
    const index = c.pings.findIndex(({ id }) => id === replyTo);
    if (index < 0) return;
    const { through } = c.pings.splice(0, index + 1).at(-1), now = this.#alarms.now();
    for (const [number, { type, isSent, payload }] of this.#queue) {
      const isStored = isSent && number <= through && payload.timestamp <= storedThrough;
      if (isStored && type === 'location_update') this.#take(number);
    }
    // What an earlier ping did not confirm had no room.
    if (now - c.answered?.time < storedMs) return;
    this.#batch((number, { isSent }) => isSent && number <= c.answered?.through);
    c.answered = { through, time: now };
  }

  /** A rider pays for long answers (protocol/rates.md). */
  #charge(c, bytes, before = 0) {
    const cost = total => Math.max(0, Math.floor(total * 1.25 / 4096) - 4);
    if (c.greeting.role === 'rider') c.budget.charge(cost(before + bytes) - cost(before));
    c.charged = before + bytes;
  }

  /** Feeds of one channel share its subscription. */
  #feed(channel, viewId, eventsOnly) {
    const key = viewId ?? channel;
    const target = this.#channels.get(key)
      ?? { key, channel, viewId, eventsOnly, due: 0, feeds: new Map(), shown: {}, drivers: new Map(), more: new Map(),
        counts: new Map() };
    const { on, emit } = listeners();
    const feed = {
      state: { is: target.isLive ? 'live' : 'waiting' },
      get position() { return target.shown.position; },
      get more() { return [...target.more.values()].reduce((sum, more) => sum + more, 0); },
      drivers: target.drivers,
      cells: target.counts,
      on,
      close: () => this.#leave(target, feed),
      [Symbol.asyncIterator]: () => iterate(feed),
    };
    if (!eventsOnly && target.eventsOnly) Object.assign(target, { eventsOnly, due: 0 });
    this.#channels.set(key, target);
    target.feeds.set(feed, emit);
    if (target.isLive) queueMicrotask(() => emit('snapshot', target.shown));
    this.#flush();
    return { feed, target };
  }

  #notify(target, type, data) {
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
    if (target.c === this.#c) this.#unsubscribes.push(viewId ? { viewId } : { channel });
    this.#flush();
  }

  #end(target, reason) {
    if (!target) return;
    this.#channels.delete(target.key);
    // After a refused move the hub still has it.
    if (target.cells ?? target.blocks) this.#unsubscribes.push({ viewId: target.viewId });
    this.#notify(target, 'ended', reason);
    target.feeds.clear();
  }

  #dated(position, published) {
    return Object.assign(position, { published, received: this.now() });
  }

  #subscribed(c, answer, timestamp, bytes) {
    const { replyTo, viewId, channel, history, epoch, sequence, recovered, snapshot = {} } = answer;
    const target = this.#channels.get(viewId ?? channel);
    this.#charge(c, bytes);
    const isAsked = target?.asked === replyTo, standing = this.#alarms.now();
    // A reopened feed begins with its own answer; a view takes all.
    if (!target || !isAsked && !viewId && !target.isLive) return;
    c.missed = channel;
    target.through = sequence;
    if (isAsked) Object.assign(target, { asked: undefined, isRepeated: false, standing });
    this.#areas?.subscribed(target, answer, this.#channels);
    if (history) snapshot.history = history;
    else if (recovered) {
      target.epoch = epoch;
      return target.isLive = true;
    }
    if (target.epoch && !viewId && !recovered) this.#notify(target, 'lost');
    if (snapshot.position) this.#dated(snapshot.position, timestamp);
    Object.assign(target, { isLive: true, shown: snapshot, ...(!viewId && { epoch, since: sequence }) });
    this.#notify(target, 'snapshot', snapshot);
  }

  /** What came before is dropped; what is too early comes again. */
  #event(c, target, type, event, unknown, bytes) {
    if (!target) return;
    if (c.missed === target.channel) this.#charge(c, bytes, c.charged);
    if (event.sequence > Math.max(target.since, target.through) + 1) return this.#noteGap(target);
    if (event.sequence <= target.since) return;
    target.since = event.sequence;
    if (unknown) return;
    if (type === 'trip_update') target.shown.trip = event;
    this.#notify(target, type === 'trip_update' ? 'update' : type === 'notification' ? 'notice' : type.slice(6) || type,
      event);
  }

  #stated(target, type, state) {
    if (!target) return;
    if (state.after > Math.max(target.since, target.through)) this.#noteGap(target);
    target.shown[type] = state;
    this.#notify(target, type, state);
  }

  #noteGap(target) {
    if (target.asked || target.due < Infinity) return;
    target.due = Math.max(this.#alarms.now(), target.standing + resubscribeMs);
  }

  trip(id) { return this.#feed(`trip:${id}`).feed; }
  fence(id) { return this.#feed(`fence:${id}`).feed; }
  fleet() { return this.#feed('fleet').feed; }
  trips() { return this.#feed('trips').feed; }
  stats() { return this.#feed('stats').feed; }

  driver(id, { raw } = {}) {
    const { feed, target } = this.#feed(`driver:${id}`), emit = target.feeds.get(feed), { close } = feed;
    const fixes = raw ? this.#feed(`raw:${id}`).feed : undefined;
    fixes?.on('raw', fix => emit('raw', fix));
    feed.close = () => [close(), fixes?.close()];
    return feed;
  }

  offers(driver) {
    const { feed } = this.#feed(`driver:${driver}`, undefined, true);
    feed.accept = trip => this.move(trip, 'accepted');
    feed.decline = tripId => this.#request('offer_decline', { tripId });
    return feed;
  }

  /** The first map loads what only maps need. */
  #shows(kind, place, options = {}) {
    const { feed, target } = this.#feed('', `view-${++this.#number}`);
    feed.move = async (place, { precision } = options) => {
      do {
        try {
          this.#areas = await import('./hub-areas.js');
        } catch {
          await new Promise(resolve => { const off = this.on('state', () => resolve(off())); });
        }
      } while (!this.#areas);
      Object.assign(target, { channel: this.#areas.channelOf(kind, place), precision, due: 0 });
      this.#flush();
    };
    feed.move(place);
    return feed;
  }
  view(place, options) { return this.#shows('box', place, options); }
  counts(box, options) { return this.#shows('counts', box, options); }

  /** An answer's ages are of now. */
  #asOfNow(answer) {
    for (const place of answer.drivers ?? [answer]) if (place.age >= 0) this.#dated(place, this.now());
    return answer;
  }
  async #query(kind, question) {
    const { replyTo, ...answer } = await this.#request('query', { kind, ...question });
    return this.#asOfNow(answer);
  }
  async nearby(question) { return (await this.#query('nearby', question)).drivers; }
  within(question) { return this.#query('within', question); }
  getDriver(driverId) { return this.#query('driver', { driverId }); }
  getTrip(tripId) { return this.#query('trip', { tripId }); }

  getTrips(question) { return this.#get('trips', question); }
  track(id, question) { return this.#get(`trips/${encodeURIComponent(id)}/track.geojson`, question); }
  fences(question) { return this.#get('fences', question); }
  getFence(id) { return this.#get(`fences/${encodeURIComponent(id)}`); }
  find(question) { return this.#get('drivers', question); }
  share(trip, { expires } = {}) {
    return this.#get(`trips/${encodeURIComponent(trip)}/shares`, {}, expires ? { expires: +expires } : {});
  }

  /** A question over HTTP, for fetch. */
  #asked(path) {
    const url = this.#address();
    url.protocol = url.protocol.replace('ws', 'http');
    url.pathname = url.pathname.replace(/(\/v1\/ws)?\/?$/, `/v1/${path}`);
    return [url, this.#token && { headers: { Authorization: `Bearer ${this.#token}` } }];
  }

  async #get(path, question, body) {
    const { request } = await import('./hub-http.js');
    return this.#asOfNow(await request(this, () => (this.#token || !this.#options.token) && this.#asked(path), question,
      body));
  }

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
    return trip ?? this.getTrip(tripId).catch(() => ({ tripId, status, timestamp }));
  }

  async change(tripId, change) {
    await this.#request('trip_change', { tripId, ...change });
    return this.getTrip(tripId).catch(() => ({ tripId, ...change }));
  }
}

const refusal = code => ({ cause: 'refused', code, message: `HTTP ${code}` });
