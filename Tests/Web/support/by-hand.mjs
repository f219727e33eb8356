// A hub whose time, chance and socket a test drives by hand: nothing sleeps.
import assert from 'node:assert/strict';
import { Hub } from '../../../Sources/Pages/web/hub.js';

/** Lets everything that waits for promises run. */
export const settled = () => new Promise(resolve => setImmediate(resolve));

/** A clock with timers, both moved by `pass`. */
export class Clock {
  time = 1_763_680_000_000;
  #timers = new Map();
  #next = 1;
  now = () => this.time;
  setTimeout = (f, delay) => {
    this.#timers.set(this.#next, { f, time: this.time + delay });
    return this.#next++;
  };
  clearTimeout = id => { this.#timers.delete(id); };
  get count() { return this.#timers.size; }
  get nextTime() { return Math.min(...[...this.#timers.values()].map(({ time }) => time)); }

  /** Goes on by so many ms, from timer to timer. */
  async pass(ms) {
    const end = this.time + ms;
    await settled();
    while (this.nextTime <= end) {
      this.time = Math.max(this.time, this.nextTime);
      this.run();
      await settled();
    }
    this.time = end;
  }
  /** Goes on at once, and calls what is late then: as a page that slept. */
  async sleep(ms) {
    this.time += ms;
    this.run();
    await settled();
  }
  /** This machine's clock is set; timers go on as they are. */
  set(ms) {
    this.time += ms;
    for (const timer of this.#timers.values()) timer.time += ms;
  }
  run() {
    for (const [id, { f, time }] of [...this.#timers]) if (time <= this.time && this.#timers.delete(id)) f();
  }
}

/** splitmix64's little sister: the same chance in each run. */
export function chance(seed) {
  let state = seed >>> 0;
  return () => {
    state = state + 0x9e3779b9 >>> 0;
    let z = state;
    z = Math.imul(z ^ z >>> 16, 0x85ebca6b);
    z = Math.imul(z ^ z >>> 13, 0xc2b2ae35);
    return ((z ^ z >>> 16) >>> 0) / 2 ** 32;
  };
}

/** What a Hub sees as WebSocket; a test is the other end. */
class Socket {
  readyState = 0;
  protocol = '';
  sent = [];
  constructor(world, url, protocols) {
    Object.assign(this, { world, url: new URL(url), protocols });
    world.sockets.push(this);
  }
  send(data) {
    this.sent.push(typeof data === 'string' ? JSON.parse(data) : data);
  }
  close(code) {
    this.closedWith = code ?? 1005;
    this.readyState = 2;
  }

  /** The upgrade is granted and the hub greets. */
  async greet(payload = {}) {
    this.readyState = 1;
    this.protocol = this.protocols[0];
    await this.say('connected', {
      sessionId: 'c5a1', role: 'rider', id: 'rider-3', heartbeatInterval: 30, serverTime: this.world.clock.now(),
      limits: { maxMessageBytes: 262144, maxBatch: 500, rate: 10 }, ...payload,
    });
    return this;
  }
  async say(type, payload, timestamp = this.world.clock.now()) {
    await this.hear(JSON.stringify({ type, payload, timestamp, messageId: 'x1' }));
  }
  /** Text, or bytes, as they come from the hub. */
  async hear(data) {
    this.onmessage?.({ data });
    await settled();
  }
  async end(code, reason = '') {
    this.readyState = 3;
    this.onclose?.({ code, reason });
    await settled();
  }
  async refuse(status, retryAfter) {
    this.onerror?.({ status, retryAfter });
    await this.end(1006);
  }

  /** What was sent of a type, the newest one by `last`. */
  of(type) { return this.sent.filter(message => message.type === type); }
  last(type) { return this.of(type).at(-1); }
  async ack(message, more = {}) { await this.say('ack', { replyTo: message.messageId, ...more }); }
  async subscribed(message, more = {}) {
    const { channel, viewId } = message.payload;
    await this.say('subscribed', {
      replyTo: message.messageId, channel, ...(viewId && { viewId }), sequence: 0, epoch: 'e1', recovered: false,
        ...more,
    });
  }
}

/** A hub by hand; `options` are the Hub's own. */
export function byHand(options = {}) {
  const world = { clock: new Clock(), sockets: [], states: [], errors: [] };
  const { clock } = world;
  Object.defineProperty(world, 'socket', { get: () => world.sockets.at(-1) });
  const WebSocket = function (url, protocols) { return new Socket(world, url, protocols); };
  const hub = new Hub('wss://hub.example/v1/ws', {
    dev: { role: 'rider', id: 'rider-3' }, WebSocket, now: clock.now, random: () => 0.5, setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout, ...options,
  });
  hub.on('state', state => world.states.push(state));
  hub.on('error', error => world.errors.push(error));
  return Object.assign(world, {
    hub,
    /** Connects and is greeted. */
    async live(greeting) {
      const before = world.sockets.length, isNew = hub.state.is === 'idle' || hub.state.is === 'closed';
      if (isNew) hub.connect();
      await settled();
      for (let n = 0; n < 100 && isNew && world.sockets.length === before; n++) await settled();
      return world.sockets.at(-1).greet(greeting);
    },
    /** Passes the time until the next attempt, and is greeted. */
    async again(greeting) {
      const before = world.sockets.length;
      for (let n = 0; n < 100 && world.sockets.length === before; n++) await clock.pass(1000);
      assert.equal(world.sockets.length, before + 1, 'it connects again');
      return world.sockets.at(-1).greet(greeting);
    },
  });
}

export const position = (seconds, more = {}) => ({
  channel: 'trip:T1', driverId: 'D1', tripId: 'T1', latitude: 48.1, longitude: 11.5, heading: 90, speed: 10,
    accuracy: 5,
  confidence: 'high', timestamp: 1_763_680_000_000 + seconds * 1000, age: 0.1, after: 0, ...more,
});
