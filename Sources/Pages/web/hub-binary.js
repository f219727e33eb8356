// The binary form of the protocol (protocol/binary.md), which hub.js loads where it is asked for (`codec: 'binary'`).
//
// Both directions use one table of layouts; deltas, and what depends on the connection, have their own functions. Input
// is checked where JSON is: in hub.js.
import { words as shared } from './hub.js';

/** Words by their numbers. */
const words = {
  ...shared,
  status: ['available', 'unavailable', 'background', 'on_trip'],
  withdrawn: ['taken', 'cancelled', 'expired', 'declined', 'unavailable', 'stopped'],
  left: ['filter', 'offline', 'forgotten'],
  source: ['gps', 'wifi', 'cellular', 'fused', 'cached'],
  verdict: ['accepted', 'absorbed', 'history', 'duplicate', 'held', 'refused'],
  ended: ['asked', 'trip_ended', 'grant_ended', 'revoked'],
  advised: ['trip_fast', 'trip_medium', 'trip_slow', 'moving', 'standing', 'background', 'watched'],
};

/**
 * What stands behind what in a message: `name:type`, with `?n` where bit n of the flags says that it is there; `*` are
 * the flags, in one byte, or `**`, in two. A type is a method of Input and Output, a list of words, or another layout,
 * which has the flags of the one around it until it reads its own. What is named `.` has its members among the others.
 */
const layouts = {
  connected: 'sessionId:text role:role id:id heartbeatInterval:f64 serverTime:time limits:limits * sampling:advice?0',
  limits: 'maxMessageBytes:varint maxBatch:varint rate:f64',
  advice: 'interval:f64 minDistance:f64',
  subscribed: 'replyTo:mid channel:channel * recovered:bit?0 sequence:varint epoch:text names:numbered?1 viewId:text?2 '
    + 'cells:cells?3 snapshot:snapshot?4',
  numbered: 'number:varint .:names',
  names: '* driverId:id?0 tripId:id?1 lag:zigzag',
  snapshot: 'trip:shortTrip?5 position:position?6 eta:eta?7',
  shortTrip: 'tripId:id status:move timestamp:time * driverId:id?0',
  position: '* driverId:id tripId:id?5 .:place heading:heading?2 speed:centi?3 accuracy:centi confidence:confidence '
    + 'timestamp:time timeSource:hub?6 age:milli after:varint',
  eta: 'tripId:id target:target eta:varint distance:varint arrivalTime:time basis:basis after:varint',
  unsubscribed: '* replyTo:mid?0 channel:channel reason:ended',
  ack: 'replyTo:mid * .:batch?0 trip:shortTrip?1',
  batch: 'accepted:varint duplicates:varint rejected:rejected',
  rejection: 'index:varint code:code',
  pong: 'replyTo:mid serverTime:time * storedThrough:time?0 .:members',
  sampling: '.:advice reason:advised',
  error: 'code:code message:long * replyTo:mid?0 retryAfter:f64?1 details:details?2',
  details: 'status:move',
  result: 'replyTo:mid .:answer',
  driver: '** driverId:id status:status vehicleType:text?0 tags:tags?1 .:place?2 heading:heading?3 speed:centi?4 '
    + 'accuracy:centi?5 age:milli?2 timestamp:time?6 predicted:place?7 distance:centi?8 online:online?9 '
    + 'timeSource:hub?11',
  trip: '* tripId:id status:move timestamp:time created:time updated:time ended:time?0 driverId:id?1 riderId:id?2 '
    + 'pickup:place?3 dropoff:place?4 route:long?5 summary:summary?6',
  summary: 'distance:centi approach:centi track:centi duration:milli waiting:milli fixes:varint gaps:varint '
    + 'gapDuration:milli',
  trip_update: '* tripId:id?4 status:move previousStatus:move?0 driverId:id?1 timestamp:time location:place?2 '
    + 'pickup:place?5 dropoff:place?6 route:long?7 summary:summary?3 sequence:varint',
  ofAll: '* riderId:id?0',
  counted: 'index:varint available:varint on_trip:varint unavailable:varint background:varint offline:varint',
  raw_fix: 'timestamp:time accuracy:centi?0 heading:heading?1 speed:centi?2 source:source?3 reason:code?4 '
    + 'offset:centi?5',
  notification: '* kind:notice title:long body:long data:data sequence:varint',
  offer: 'tripId:id * pickup:place dropoff:place?0 distance:varint eta:varint expiresAt:time sequence:varint',
  offer_withdrawn: 'tripId:id reason:withdrawn sequence:varint',
  data: 'driverId:id?0 .:near?1 .:fence?2 .:members?3',
  near: 'target:target distance:varint eta:varint',
  fence: 'fenceId:id * timestamp:time otherId:id?0 distance:centi?1 location:place?2 duration:milli?3 speed:centi?4 '
    + 'speedLimit:centi?5 reason:left?6',
  areaDriver: '* status:low driverId:id latitude:zigzag longitude:zigzag heading:heading?2 speed:centi?3 lag:zigzag '
    + 'timeSource:hub?4',
  areaDetails: '* confidence:sure accuracy:centi tripId:id?2 vehicleType:text?3 online:absent?4',

  location_batch: '* tripId:id?0 locations:fixes',
  rest: 'accuracy:centi?0 heading:heading?1 speed:centi?2 altitude:level?3',
  more: 'headingAccuracy:centi?3 speedAccuracy:centi?4 batteryLevel:centi?5',
  driver_status: 'status:status * vehicleType:text?0 tags:tags?1',
  trip_status: 'tripId:id status:move timestamp:time * location:place?0 expectedStatus:move?1 pickup:place?2 '
    + 'dropoff:place?3 driverId:id?4 riderId:id?5 route:long?6 offer:criteria?7',
  criteria: '* vehicleType:text?0 tags:tags?1 radius:f64?2 drivers:varint?3 duration:varint?4 limit:varint?5',
  offer_decline: 'tripId:id',
  subscribe: 'channel:channel * since:varint?0 epoch:text?0 viewId:text?1 precision:u8?2 eventsOnly:bit?3',
  unsubscribe: '* channel:channel viewId:text?0',
  ping: '.:members',
  refresh: 'token:long',
  query: '.:question',
  nearby: '.:place * radius:f64?0 .:filter',
  within: '* polygon:polygon?0 bbox:box .:filter',
  filter: 'limit:varint?1 status:status?2 vehicleType:text?3 tags:tags?4 maxAge:f64?5 stale:bit?6',
  driverQuery: 'driverId:id',
  tripQuery: 'tripId:id',
  trip_change: 'tripId:id * pickup:place?0 dropoff:place?1 route:long?2',
};
for (const name in layouts) {
  layouts[name] = layouts[name].split(' ').map(part => {
    const [, member, type, bit] = /^([^:]+):?(\w*)\??(\d*)$/.exec(part);
    return { member, type, bit: bit && 1 << bit };
  });
}

const replies = ['', 'connected', 'subscribed', 'unsubscribed', 'ack', 'pong', 'sampling', 'error', 'result'];
const requests = ['', 'location_batch', 'driver_status', 'trip_status', 'subscribe', 'unsubscribe', 'ping', 'refresh',
  'query', 'trip_change', 'offer_decline'];
const base32 = '0123456789bcdefghjkmnpqrstuvwxyz';
const channelKinds = ['trip', 'driver', 'fence', 'area', 'nearby', 'fleet', 'trips', 'raw', 'box', 'counts', 'block',
  'stats'];
const utf8 = new TextEncoder();
const utf8Reader = new TextDecoder('utf-8', { fatal: true });
const word32 = 2 ** 32;

/** A message's bytes from front to back. Past the end each throws a RangeError. */
class Input {
  constructor(buffer) {
    this.view = new DataView(buffer);
    this.next = 0;
  }
  take(count) {
    this.next += count;
    return this.next - count;
  }
  u8() { return this.view.getUint8(this.take(1)); }
  u16() { return this.view.getUint16(this.take(2), true); }
  u32() { return this.view.getUint32(this.take(4), true); }
  f64() { return this.view.getFloat64(this.take(8), true); }
  varint() {
    let value = 0;
    for (let factor = 1, byte = 128; byte > 127; factor *= 128) {
      byte = this.u8();
      value += (byte & 127) * factor;
    }
    return value;
  }
  zigzag() {
    const value = this.varint();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
  time() { return this.u32() + this.u16() * word32; }
  degrees() { return this.view.getInt32(this.take(4), true) / 1e7; }
  place() { return { latitude: this.degrees(), longitude: this.degrees() }; }
  centi() { return this.varint() / 100; }
  milli() { return this.varint() / 1000; }
  heading() {
    const value = this.u16();
    if (value > 36_000) throw new RangeError('no heading');
    return value % 36_000 / 100;
  }
  bytes(count) { return utf8Reader.decode(new Uint8Array(this.view.buffer, this.take(count), count)); }
  text() { return this.bytes(this.u8()); }
  long() { return this.bytes(this.varint()); }
  /** The characters of a geohash or a pseudonym, five bits each, the first one's highest. */
  characters(count, bytes) {
    let bits = 0n;
    for (let index = 0n; index < bytes; index++) bits |= BigInt(this.u8()) << 8n * index;
    return Array.from({ length: count }, (_, index) => base32[bits >> BigInt(5 * (count - 1 - index)) & 31n]).join('');
  }
  id() {
    const count = this.u8();
    return count ? this.bytes(count) : 'p' + this.characters(13, 8);
  }
  mid() {
    const head = this.varint();
    return head % 2 ? String((head - 1) / 2) : this.bytes(head / 2);
  }
  cell() {
    const count = this.u8();
    return this.characters(count, Math.ceil(5 * count / 8));
  }
  block() {
    const cell = this.cell();
    return `counts:${cell}/${cell.length + 2}`;
  }
  channel() {
    const kind = channelKinds[this.u8()];
    switch (kind) {
      case undefined: throw new RangeError('a kind of channel that nobody knows');
      case 'area': return `area:${this.cell()}`;
      case 'block': return this.block();
      case 'box': case 'counts': return `${kind}:${[0, 0, 0, 0].map(() => this.degrees())}`;
      case 'nearby': return `nearby:${this.degrees()},${this.degrees()},${this.f64()}`;
      case 'fleet': case 'trips': case 'stats': return kind;
      default: return `${kind}:${this.id()}`;
    }
  }
  list(type, count = this.varint()) { return Array.from({ length: count }, () => this.read(type, 0)); }
  tags() { return this.list('text', this.u8()); }
  cells() { return this.list('cell'); }
  rejected() { return this.list('rejection'); }
  members() { return JSON.parse(`{${this.long()}}`, (_, value) => value ?? undefined); }   // null is absent
  bit() { return true; }
  hub() { return 'hub'; }
  low(flags) { return words.status[flags & 3]; }
  absent() { return false; }
  sure(flags) { return words.confidence[flags & 3] ?? 'unknown word'; }
  online(flags) { return (flags & 1024) > 0; }
  answer() {
    const kind = this.u8();
    if (kind !== 1) return this.read(kind ? 'trip' : 'driver');
    const drivers = this.list('driver');
    const more = this.varint();
    return more ? { drivers, more } : { drivers };
  }
  /** A value of any type; a word of a newer hub is one that no list has. */
  read(type, flags) {
    if (words[type]) return words[type][this.u8()] ?? (type === 'code' ? 'internal' : 'unknown word');
    if (!layouts[type]) return this[type](flags);
    const value = {};
    for (const { member, type: inner, bit } of layouts[type]) {
      if (member[0] === '*') flags = member[1] ? this.u16() : this.u8();
      else if (!bit || flags & bit) {
        if (member === '.') Object.assign(value, this.read(inner, flags));
        else value[member] = this.read(inner, flags);
      }
    }
    return value;
  }
}

/** Reads one connection's messages: keeps the numbers of its channels, and the newest time received. */
export class BinaryReader {
  channels = new Map();
  newest = 0;

  /** The message as JSON would have it; nothing where it is for the reader alone. Throws where it is malformed. */
  read(buffer) {
    const input = new Input(buffer);
    const first = input.u8();
    if (first > 127) return this.position(input, first);
    if (replies[first]) return this.reply(input, replies[first]);
    switch (first) {
      case 16: return this.eta(input);
      case 17: return this.event(input, 'trip_update');
      case 18: return this.event(input, 'notification');
      case 19: return this.area(input);
      case 21: return this.raw(input);
      case 22: return this.counts(input);
      case 23: return this.stats(input);
      case 24: return this.event(input, 'offer');
      case 25: return this.event(input, 'offer_withdrawn');
      case 20: Object.assign(this.numbered(input), { driverId: undefined, tripId: undefined, ...input.read('names') });
    }
  }

  observed(time) {
    this.newest = Math.max(this.newest, time);
    return time;
  }
  /** The time with these lowest 32 bits that is nearest to the newest received. */
  published(input) { return this.observed(this.newest + (input.u32() - this.newest % word32 | 0)); }
  numbered(input) {
    const channel = this.channels.get(input.varint());
    if (!channel) throw new RangeError('a number that no channel has');
    return channel;
  }

  reply(input, type) {
    const messageId = `r${input.varint()}`;
    const timestamp = this.observed(input.time());
    const payload = input.read(type);
    const { names, channel } = payload;
    if (type === 'subscribed') {
      payload.recovered ??= false;
      if (payload.cells && channel.startsWith('counts')) {
        payload.blocks = payload.cells;
        delete payload.cells;
      }
      if (channel === 'stats') payload.history = Array.from({ length: input.varint() }, () => figures(input));
      if (names) this.channels.set(names.number, { ...names, name: channel });
      delete payload.names;
    } else if (type === 'unsubscribed') {
      for (const [number, { name }] of this.channels) if (name === channel) this.channels.delete(number);
    }
    return { type, payload, timestamp, messageId };
  }

  stats(input) {
    const timestamp = this.published(input);
    return { type: 'stats', payload: figures(input), timestamp, messageId: 'p0' };
  }

  event(input, type) {
    const channel = this.numbered(input).name;
    const messageId = `p${input.varint()}`;
    const timestamp = this.observed(input.time());
    const payload = { channel, ...(type === 'trip_update' && { tripId: channel.slice(5) }), ...input.read(type) };
    if (channel === 'trips') Object.assign(payload, input.read('ofAll'));
    if (payload.data && !Object.keys(payload.data).length) delete payload.data;
    return { type, payload, timestamp, messageId };
  }

  position(input, first) {
    const channel = this.numbered(input);
    const more = (first & 3) === 3 ? input.u8() : first & 3;
    const driverId = first & 16 ? input.id() : channel.driverId;
    const tripId = first & 32 ? input.id() : first & 16 ? undefined : channel.tripId;
    const timestamp = this.published(input);
    const lag = first & 64 ? input.zigzag() : channel.lag;
    const age = input.varint();
    const payload = {
      channel: channel.name, driverId, ...(tripId && { tripId }), ...input.place(),
      ...(first & 4 && { heading: input.heading() }), ...(first & 8 && { speed: input.centi() }),
      accuracy: input.centi(), confidence: words.confidence[more & 3] ?? 'unknown word',
      timestamp: timestamp - lag - age, ...(more & 4 && { timeSource: 'hub' }), age: age / 1000, after: input.varint(),
      ...(more & 8 && { status: words.status[more >> 4 & 3] }),
    };
    return { type: 'driver_location', payload, timestamp, messageId: 'p0' };
  }

  eta(input) {
    const channel = this.numbered(input).name;
    const flags = input.u8();
    const tripId = flags & 4 ? input.id() : channel.slice(5);
    const timestamp = this.published(input);
    const [eta, distance] = [input.varint(), input.varint()];
    const payload = {
      channel, tripId, target: words.target[flags & 1], eta, distance,
      arrivalTime: timestamp + eta * 1000 + input.zigzag(), basis: words.basis[flags >> 1 & 1], after: input.varint(),
    };
    return { type: 'eta_update', payload, timestamp, messageId: 'p0' };
  }

  raw(input) {
    const channel = this.numbered(input).name;
    const flags = input.u8();
    const driverId = flags & 64 ? input.id() : channel.slice(4);
    const verdict = input.read('verdict');
    const timestamp = this.published(input);
    const payload = { channel, driverId, verdict, ...input.place(), ...input.read('raw_fix', flags) };
    return { type: 'raw_fix', payload, timestamp, messageId: 'p0' };
  }

  counts(input) {
    const full = (input.u8() & 1) > 0;
    const channel = input.block();
    const block = channel.slice(7).split('/')[0];
    const timestamp = this.published(input);
    const tick = input.varint();
    const cells = input.list('counted').map(({ index, ...counts }) =>
      ({ cell: block + base32[index >> 5] + base32[index & 31], ...counts }));
    return { type: 'counts_update', payload: { channel, tick, full, cells }, timestamp, messageId: 'p0' };
  }

  area(input) {
    const flags = input.u8();
    const cell = input.cell();
    const timestamp = this.published(input);
    const tick = input.varint();
    const more = flags & 2 ? { more: input.varint() } : {};
    const channel = flags & 4 ? input.channel() : `area:${cell}`;
    let [latitude, longitude] = [0, 0];
    const drivers = input.list('areaDriver').map(({ lag, ...driver }) => ({
      ...driver, latitude: (latitude += driver.latitude) / 1e7, longitude: (longitude += driver.longitude) / 1e7,
      timestamp: timestamp - lag,
    }));
    const payload = { channel, cell, tick, full: (flags & 1) > 0, drivers, left: input.list('id'), ...more };
    if (flags & 8) drivers.forEach(driver => Object.assign(driver, input.read('areaDetails')));
    return { type: 'area_update', payload, timestamp, messageId: 'p0' };
  }
}

/** The hub's own figures of a second. */
const figures = input => ({ channel: 'stats', timestamp: input.time(), ...input.members() });

/** A message's bytes as they are written; a method for each type of a client's layouts. */
class Output {
  bytes = [];

  u8(value) { this.bytes.push(value & 255); }
  /** A whole number in so many bytes, the lowest first. */
  whole(value, count) {
    for (; count > 0; count--, value = Math.floor(value / 256)) this.u8(value % 256);
  }
  f64(value) { this.bytes.push(...new Uint8Array(Float64Array.of(value).buffer)); }
  varint(value) {
    if (!Number.isFinite(value)) throw new RangeError(`${value} has no form in binary`);
    for (; value > 127; value = Math.floor(value / 128)) this.u8(value % 128 + 128);
    this.u8(value);
  }
  zigzag(value) { this.varint(value < 0 ? -2 * value - 1 : 2 * value); }
  time(value) { this.whole(value, 6); }
  degrees(value) { this.whole(Math.round(value * 1e7) + (value < 0 ? word32 : 0), 4); }
  place({ latitude, longitude }) {
    this.degrees(latitude);
    this.degrees(longitude);
  }
  centi(value) { this.varint(Math.round(value * 100)); }
  level(value) { this.zigzag(Math.round(value * 100)); }
  heading(value) { this.whole(Math.round(value * 100) % 36_000, 2); }
  /** Text behind its length, as `length` writes it: a byte by itself. */
  text(value, length = count => this.u8(count)) {
    const bytes = utf8.encode(value);
    length(bytes.length);
    for (const byte of bytes) this.bytes.push(byte);
  }
  long(value) { this.text(value, count => this.varint(count)); }
  mid(value) {
    if (/^(0|[1-9]\d{0,14})$/.test(value)) this.varint(2 * Number(value) + 1);
    else this.text(value, count => this.varint(2 * count));
  }
  characters(text, bytes) {
    let bits = 0n;
    for (const character of text) bits = bits << 5n | BigInt(base32.indexOf(character));
    for (; bytes > 0; bytes--, bits >>= 8n) this.u8(Number(bits & 255n));
  }
  id(value) {
    if (!/^p[0-9b-g][0-9b-hjkmnp-z]{12}$/.test(value)) return this.text(value);
    this.u8(0);
    this.characters(value.slice(1), 8);
  }
  channel(name) {
    const [type, rest] = name.split(/:(.*)/);
    const kind = /\//.test(rest) ? 'block' : type;
    this.u8(channelKinds.indexOf(kind));
    if (['trip', 'driver', 'fence', 'raw'].includes(kind)) this.id(rest);
    if (kind === 'area' || kind === 'block') {
      const cell = rest.split('/')[0];
      this.u8(cell.length);
      this.characters(cell, Math.ceil(5 * cell.length / 8));
    }
    if (kind === 'box' || kind === 'counts') this.box(rest.split(',').map(Number));
    if (kind === 'nearby') {
      const [latitude, longitude, radius] = rest.split(',').map(Number);
      this.place({ latitude, longitude });
      this.f64(radius);
    }
  }
  list(values, write) {
    this.varint(values.length);
    values.forEach(write);
  }
  tags(values) { this.list(values, tag => this.text(tag)); }
  members(payload) { this.long(JSON.stringify(payload).slice(1, -1)); }
  bit() {}
  box(corners) { corners.forEach(degrees => this.degrees(degrees)); }
  polygon({ geometry, ...shape }) {
    const { type, coordinates } = geometry ?? shape;
    this.list(type === 'Polygon' ? [coordinates] : coordinates, rings => this.list(rings, ring =>
      this.list(ring, ([longitude, latitude]) => this.place({ latitude, longitude }))));
  }
  question({ kind, ...question }) {
    this.u8(['nearby', 'within', 'driver', 'trip'].indexOf(kind));
    this.write(kind.endsWith('y') || kind === 'within' ? kind : `${kind}Query`, question);
  }
  /** Each fix of a batch but the first is the difference to the one before it. */
  fixes(values) {
    let before = [0, 0, 0];
    this.list(values, fix => {
      const place = [fix.latitude * 1e7, fix.longitude * 1e7, fix.timestamp].map(Math.round);
      this.fix(fix, 0, () => {}, () => place.forEach((value, index) => this.zigzag(value - before[index])));
      before = place;
    });
  }
  /** The members of a fix; `id` writes what stands behind the first byte, `place` what stands before the rest. */
  fix(fix, first, id, place) {
    const source = words.source.indexOf(fix.source) + 1;
    const second = flagsOf('more', fix) | source;
    this.u8(first | flagsOf('rest', fix) | (second ? 16 : 0));
    id();
    if (second) this.u8(second);
    place();
    this.write('rest', fix);
    this.write('more', fix);
  }
  write(type, value) {
    if (words[type]) return this.u8(words[type].indexOf(value));
    if (!layouts[type]) return this[type](value);
    for (const { member, type: inner } of layouts[type]) {
      if (member === '*') this.u8(flagsOf(type, value));
      else if (member === '.') this.write(inner, value);
      else if (value[member] != null) this.write(inner, value[member]);
    }
  }
}

/** The flags of a layout for a value: which of its optional members are there. Null is absent, as in JSON. */
function flagsOf(type, value) {
  return layouts[type].reduce((flags, { member, type: inner, bit }) =>
    flags | (member === '.' && layouts[inner] ? flagsOf(inner, value) : value[member] != null ? bit : 0), 0);
}

/** A client's message in binary; `tripBefore` is the trip that the last fix with one named on this connection. */
export function writeBinary({ type, payload, timestamp, messageId }, tripBefore) {
  const out = new Output();
  if (type === 'location_update') {
    const { tripId } = payload;
    const isSame = tripId === tripBefore;
    out.fix(payload, 128 | (tripId ? isSame ? 32 : 64 : 0), () => {
      out.mid(messageId);
      if (tripId && !isSame) out.id(tripId);
    }, () => {
      out.place(payload);
      out.time(payload.timestamp);
      out.zigzag(timestamp - payload.timestamp);
    });
  } else {
    out.u8(requests.indexOf(type));
    out.mid(messageId);
    out.time(timestamp);
    out.write(type, payload);
  }
  return new Uint8Array(out.bytes);
}
