// The followed driver: its card, and on the map its track from the hub, its raw fixes beside where they were shown, its
// accuracy, and the way that is left. Following is a mode: a pan ends the camera's part of it, Esc all of it.

import { Marker } from './hub.js';
import { Arrows, decode, xOf, yOf } from './map.js';
import { kindOf } from './fleet.js';
import { $, ago, clock, drawLine, element, figure, isOver, moves, reducedMotion, say, setText, showEta, showSteps,
  statuses, targetOf } from './ui.js';

const paceSeconds = 90, keptPlaces = 20_000, keptFixes = 1_000, meanOf = 60, closeZoom = 16, flightMs = 450;
const winds = ['N', 'NE', 'E', 'SE', 'S', 'SW', 'W', 'NW'];
const facts = ['Speed', 'Heading', 'Position', 'Accuracy', 'Confidence', 'Raw − shown'];

export class Follow {
  id; camera = false;
  #hub; #map; #fleet; #layers; #driverFeed; #tripFeed; #tripId; #trip; #eta; #position; #marker; #arrows = new Arrows();
  #track = []; #shownAt = new Map(); #raw = []; #route; #pace = []; #facts; #flight; #changed;

  constructor(hub, map, fleet, layers, changed) {
    [this.#hub, this.#map, this.#fleet, this.#layers, this.#changed] = [hub, map, fleet, layers, changed];
    this.#facts = facts.map(name => {
      const value = element('dd');
      return { value, node: element('div', {}, element('dt', { textContent: name }), value) };
    });
    $('facts').replaceChildren(...this.#facts.map(({ node }) => node));
    $('share').addEventListener('click', () => this.#share());
  }

  // MARK: Who

  /** Follows a driver; `seen` is what is known of it where the map does not show it. */
  begin(id, seen) {
    if (id !== this.id) {
      this.end();
      this.id = this.#fleet.followed = id;
      this.#marker = new Marker();
      const driver = this.#fleet.driver(id) ?? seen;
      if (driver?.latitude !== undefined) this.#place({ age: 0, ...driver });
      this.#listen();
      if (!driver) this.#hub.getDriver(id).then(found => id === this.id && !this.#position && this.#place(found),
        error => id === this.id && say(`${id}: ${error.message}`));
    }
    this.recentre();
    this.card();
  }

  recentre() {
    this.camera = true;
    const { x, y, zoom } = this.#map;
    this.#flight = { x, y, zoom, since: performance.now(), to: Math.max(zoom, closeZoom) };
    this.#changed();
  }

  end() {
    if (this.id === undefined) return false;
    this.#driverFeed.close();
    this.#tripFeed?.close();
    this.id = this.#fleet.followed = this.#tripFeed = this.#tripId = this.#position = undefined;
    [this.#track, this.#raw, this.#pace] = [[], [], []];
    this.#shownAt.clear();
    this.#forgetTrip();
    this.camera = false;
    this.#changed();
    return true;
  }

  /** Its feed; raw fixes are asked for only while they are shown. */
  #listen() {
    const { id } = this, before = this.#driverFeed;
    this.#driverFeed = this.#hub.driver(id, { raw: this.#layers.raw });
    this.#driverFeed.on('position', position => this.#place(position));
    this.#driverFeed.on('raw', fix => this.#fix(fix));
    this.#driverFeed.on('lost', () => this.#load());
    this.#driverFeed.on('ended', reason => reason !== 'asked' && say(`${id}: ${reason}`));
    before?.close();
  }
  layersChanged(name) {
    if (this.id === undefined || name !== 'raw') return;
    this.#raw = [];
    this.#listen();
    if (this.#layers.raw) this.#load();
  }

  // MARK: What comes

  #place(position) {
    const { latitude, longitude, timestamp, speed } = position;
    this.#position = { ...this.#position, ...position };
    this.#marker.push(position);
    this.#shown(timestamp, latitude, longitude);
    const before = this.#track.at(-1);
    if (!before || before[2] < timestamp) this.#track.push([latitude, longitude, timestamp]);
    if (this.#track.length > keptPlaces) this.#track.splice(0, keptPlaces / 10);
    this.#pace.push([timestamp, speed]);
    if (this.#pace.length > 2 * paceSeconds) this.#pace.splice(0, paceSeconds / 2);
    this.#follow(this.#position.tripId);
    this.#changed(true);
  }
  #shown(timestamp, latitude, longitude) {
    this.#shownAt.set(timestamp, [latitude, longitude]);
    if (this.#shownAt.size > keptPlaces) this.#shownAt.delete(this.#shownAt.keys().next().value);
  }
  #fix(fix) {
    this.#raw.push(fix);
    if (this.#raw.length > keptFixes) this.#raw.shift();
  }

  #forgetTrip() { this.#trip = this.#eta = this.#route = undefined; }
  #follow(tripId) {
    if (tripId === this.#tripId) return;
    this.#tripFeed?.close();
    this.#tripFeed = undefined;
    this.#tripId = tripId;
    this.#forgetTrip();
    $('shared').hidden = true;
    if (!tripId) return;
    const feed = this.#tripFeed = this.#hub.trip(tripId);
    const take = trip => {
      this.#trip = { ...this.#trip, ...trip };
      if (trip.route) this.#route = decode(trip.route);
      this.card();
    };
    feed.on('snapshot', ({ trip, eta }) => {
      if (trip) take(trip);
      if (eta) this.#eta = eta;
      this.#load();
      // Where it begins and ends, and by which way, is said of a trip that is asked for.
      this.#hub.getTrip(tripId).then(whole => feed === this.#tripFeed && take(whole), () => {});
    });
    feed.on('update', take);
    feed.on('eta', eta => { this.#eta = eta; });
    feed.on('ended', () => feed === this.#tripFeed && this.#forgetTrip());
  }

  /** The track so far from the hub, so that none is missing after the page was opened anew. */
  async #load() {
    const { id } = this, tripId = this.#tripId;
    if (!tripId) return;
    const ask = source => this.#hub.track(tripId, { source }).then(placesOf, () => []);
    const [filtered, raw] = await Promise.all([ask('filtered'), this.#layers.raw ? ask('raw') : []]);
    if (id !== this.id || tripId !== this.#tripId) return;
    const last = filtered.at(-1)?.[2] ?? 0;
    this.#track = [...filtered, ...this.#track.filter(([, , time]) => time > last)];
    for (const [latitude, longitude, time] of filtered) this.#shown(time, latitude, longitude);
    // The speed before it was followed is that of its track.
    const paced = filtered.slice(1).map(([latitude, longitude, time], index) =>
      [time, metersBetween(filtered[index], [latitude, longitude]) / (time - filtered[index][2]) * 1000]);
    const first = this.#pace[0]?.[0] ?? Infinity;
    this.#pace = [...paced.filter(([time]) => time < first).slice(-paceSeconds), ...this.#pace];
    const known = new Set(this.#raw.map(({ timestamp }) => timestamp));
    const older = raw.filter(([, , time]) => !known.has(time)).map(([latitude, longitude, timestamp]) =>
      ({ latitude, longitude, timestamp, verdict: this.#shownAt.has(timestamp) ? 'accepted' : 'absorbed' }));
    this.#raw = [...older, ...this.#raw].sort((a, b) => a.timestamp - b.timestamp).slice(-keptFixes);
  }

  async #share() {
    try {
      const { url } = await this.#hub.share(this.#tripId);
      setText($('shared'), url);
      $('shared').hidden = false;
      await navigator.clipboard?.writeText(url).then(() => say('The link was copied.'), () => {});
    } catch (error) {
      say(`The trip was not shared: ${error.message}`);
    }
  }

  // MARK: The card

  card() {
    const shown = this.id !== undefined, position = this.#position ?? {}, now = this.#hub.now();
    $('follow').hidden = !shown;
    $('recentre').hidden = !shown || this.camera;
    if (!shown) return;
    const driver = this.#fleet.driver(this.id) ?? position, kind = kindOf(driver) ?? 'offline', trip = this.#trip;
    const speed = Number.isFinite(position.speed) ? position.speed * 3.6 : NaN, age = (now - position.timestamp) / 1000;
    setText($('name'), this.id);
    setText($('what'), [statuses[kind] ?? kind, this.#tripId, driver.vehicleType].filter(Boolean).join(' · '));
    $('badge').setAttribute('class', kind);
    $('badge').firstElementChild.setAttribute('href', `#${kind}`);
    $('badge').style.transform = `rotate(${kind === 'offline' ? 0 : Math.round(position.heading ?? 0)}deg)`;
    $('trip').hidden = isOver(trip);
    $('eta').hidden = !this.#eta || isOver(trip);
    if (trip) {
      showSteps($('steps'), trip.status);
      setText($('step'), moves[trip.status]);
      setText($('since'), `since ${clock(trip.timestamp)}`);
    }
    if (this.#eta) showEta(this.#eta, now);
    const raw = this.#meanOffset(), heading = position.heading;
    [
      [Number.isFinite(speed) ? `${Math.round(speed)}` : '–', 'km/h'],
      heading >= 0 ? [`${Math.round(heading)}°`, winds[Math.round(heading / 45) % 8]] : ['–', ''],
      [kind === 'offline' || age > 60 ? ago(age).replace(' ago', '') : ago(age), age > 60 ? 'ago' : ''],
      Number.isFinite(position.accuracy) ? [`±${position.accuracy.toFixed(1)}`, 'm'] : ['–', ''],
      [position.confidence ?? '–', ''],
      [Number.isFinite(raw) ? figure(raw).replace(/(\.\d)\d/, '$1') : '–', 'm'],
    ].forEach(([value, unit], index) => {
      const { value: node } = this.#facts[index];
      if (node.dataset.shown === value + unit) return;
      node.dataset.shown = value + unit;
      node.replaceChildren(`${value} `, element('small', { textContent: unit }));
    });
    this.#drawPace(now);
  }

  #drawPace(now) {
    const values = new Array(paceSeconds).fill(undefined);
    for (const [time, speed] of this.#pace) {
      const at = paceSeconds - 1 - Math.floor((now - time) / 1000);
      if (at >= 0 && Number.isFinite(speed)) values[Math.min(at, paceSeconds - 1)] = speed * 3.6;
    }
    // A second between two fixes has the speed of the one before.
    for (let at = 1; at < paceSeconds; at++) if (values.slice(at).some(Number.isFinite)) values[at] ??= values[at - 1];
    while (values.length && values.at(-1) === undefined) values.pop();
    const [, most] = drawLine($('pace-line'), values, paceSeconds, this.#map.colors.track);
    setText($('pace-max'), Number.isFinite(most) ? `max ${Math.round(most)} km/h` : '');
  }

  #meanOffset() {
    const offsets = this.#raw.slice(-meanOf).map(fix => fix.offset ?? this.#offset(fix)).filter(Number.isFinite);
    return offsets.reduce((sum, offset) => sum + offset, 0) / offsets.length;
  }
  #offset({ timestamp, latitude, longitude }) {
    const shown = this.#shownAt.get(timestamp);
    return shown ? metersBetween(shown, [latitude, longitude]) : NaN;
  }

  // MARK: The map

  /** Moves the camera, and gives where the driver is drawn. */
  aim(now) {
    if (!this.#position) return undefined;
    this.#marker.snap = reducedMotion.matches;
    const place = this.#marker.at(now);
    if (!this.camera || Number.isNaN(place.latitude)) return place;
    const [x, y] = [xOf(place.longitude), yOf(place.latitude)], flight = this.#flight;
    if (!flight) {
      if (Math.hypot(x - this.#map.x, y - this.#map.y) * this.#map.scale > 0.02) this.#map.show(x, y);
      return place;
    }
    const part = reducedMotion.matches ? 1 : Math.min(1, (performance.now() - flight.since) / flightMs);
    const eased = part * part * (3 - 2 * part);
    this.#map.show(flight.x + (x - flight.x) * eased, flight.y + (y - flight.y) * eased,
      flight.zoom + (flight.to - flight.zoom) * eased);
    if (part === 1) this.#flight = undefined;
    return place;
  }

  draw(page, place, now, isGone) {
    const map = this.#map, { colors } = map, layers = this.#layers, position = this.#position;
    if (!place) return;
    const here = [place.latitude, place.longitude], trip = this.#trip;
    const isByRoad = this.#eta?.basis === 'route' && trip?.status === 'trip_started';
    map.way(here, isByRoad && this.#route, targetOf(trip));
    if (layers.track) {
      const past = this.#track.filter(([, , time]) => time <= position.timestamp);
      const places = [...past.slice(0, -1), here];
      map.line(places, colors.trackEdge, 7);
      map.line(places, colors.track, 4);
    }
    if (layers.raw) this.#drawRaw(page);
    if (trip?.pickup && !isOver(trip)) map.pin(trip.pickup, 'A', colors.available);
    if (trip?.dropoff && !isOver(trip)) map.pin(trip.dropoff, 'B', colors.on_trip);
    map.project(...here);
    const { px, py } = map, size = Math.max(15, Math.min(20, this.#fleet.size() * 1.4));
    const driver = this.#fleet.driver(this.id);
    const kind = kindOf(driver ?? position) ?? 'offline', color = isGone ? colors.offline : colors[kind];
    if (layers.accuracy && position.accuracy) {
      page.globalAlpha = 0.2;
      map.circle(px, py, Math.max(4, position.accuracy * map.pixels(place.latitude)), color);
      page.globalAlpha = 0.6;
      map.circle(px, py, Math.max(4, position.accuracy * map.pixels(place.latitude)), '', color);
    }
    page.globalAlpha = 1;
    if (!isGone && !reducedMotion.matches) map.pulse(px, py, size, color);
    this.#arrows.clear();
    this.#arrows.add(kind, isGone || place.age > 60 ? 2 : place.age > 12 ? 1 : 0, px, py, place.heading ?? NaN);
    this.#arrows.draw(page, colors, size, [1, 0.6, 1]);
    map.text(this.id, px, py + size + 16, colors.onAccent, '700 12px', colors.accent);
  }

  /** As dots, each with a whisker to where it was shown; what was refused is hollow, with why. */
  #drawRaw(page) {
    const map = this.#map, { colors } = map, dots = new Path2D(), refused = new Path2D(), whiskers = new Path2D();
    const radius = map.zoom > 15 ? 3 : 2, reasons = [];
    for (const { latitude, longitude, timestamp, verdict, reason } of this.#raw) {
      map.project(latitude, longitude);
      const { px, py } = map;
      if (px < -50 || py < -50 || px > map.width + 50 || py > map.height + 50) continue;
      const isRefused = verdict === 'refused', path = isRefused ? refused : dots;
      path.moveTo(px + radius, py);
      path.arc(px, py, isRefused ? radius + 1.5 : radius, 0, 2 * Math.PI);
      if (isRefused && reason) reasons.push([reason.replaceAll('_', ' '), px, py - 14]);
      const shown = this.#shownAt.get(timestamp);
      if (!shown || isRefused) continue;
      whiskers.moveTo(px, py);
      map.project(...shown);
      whiskers.lineTo(map.px, map.py);
    }
    page.strokeStyle = page.fillStyle = colors.raw;
    page.lineWidth = 1;
    page.globalAlpha = 0.75;
    page.stroke(whiskers);
    page.globalAlpha = 1;
    page.fill(dots);
    page.strokeStyle = colors.edge;
    page.stroke(dots);
    page.strokeStyle = colors.raw;
    page.lineWidth = 1.5;
    page.stroke(refused);
    for (const [reason, px, py] of reasons.slice(-8)) map.text(reason, px, py, colors.raw, '600 11px', colors.plate);
  }
}

/** Good for a street's length. */
const metersBetween = ([latitude, longitude], [toLatitude, toLongitude]) => 111_195 * Math.hypot(latitude - toLatitude,
  (longitude - toLongitude) * Math.cos(latitude * Math.PI / 180));

/** [latitude, longitude, time] of a track of the hub's. */
function placesOf({ geometry, properties }) {
  if (!geometry) return [];
  const isOne = geometry.type === 'Point', isMany = geometry.type === 'MultiLineString';
  const places = isOne ? [geometry.coordinates] : isMany ? geometry.coordinates.flat() : geometry.coordinates;
  const times = isMany ? properties.times.flat() : [properties.times].flat();
  return places.map(([longitude, latitude], index) => [latitude, longitude, times[index]]);
}
