// The followed driver: its card, its track, its raw fixes, its trip, and the camera that goes along.

import { Marker } from './hub.js';
import { disc, xOf, yOf } from './map.js';
import { $, Arrows, ago, clock, decode, drawLine, element, isOver, moves, reducedMotion, say, setText, showEta,
  showSteps, statuses, targetOf } from './page.js';
import { kindOf, toneOf, turn } from './fleet.js';
import { hub, layers, map } from './app.js';

const paceSeconds = 90, keptPlaces = 20_000, keptFixes = 1_000, meanOf = 60, closeZoom = 16, flightMs = 450;
const winds = ['N', 'NE', 'E', 'SE', 'S', 'SW', 'W', 'NW'];
const facts = ['Speed', 'Heading', 'Position', 'Accuracy', 'Confidence', 'Raw − shown'];

export class Follow {
  id; camera = false;
  #fleet; #driverFeed; #tripFeed; #tripId; #trip; #eta; #position; #marker; #arrows = new Arrows();
  #track = []; #raw = []; #route; #facts; #flight; #changed;

  constructor(fleet, changed) {
    [this.#fleet, this.#changed] = [fleet, changed];
    this.#facts = facts.map(name => {
      const figure = element('span'), small = element('small');
      $('facts').append(element('div', {}, element('dt', { textContent: name }), element('dd', {}, figure, small)));
      return [figure, small];
    });
    $('share').onclick = () => this.#share();
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
      if (!driver) hub.getDriver(id).then(found => id === this.id && !this.#position && this.#place(found),
        error => id === this.id && say(`${id}: ${error.message}`));
    }
    this.recentre();
    this.card();
  }

  recentre() {
    this.camera = true;
    const { x, y, zoom } = map;
    this.#flight = { x, y, zoom, since: performance.now(), to: Math.max(zoom, closeZoom) };
    this.#changed();
  }

  /** The camera goes along no more. */
  letGo() {
    if (!this.camera) return;
    this.camera = false;
    this.card();
  }

  end() {
    if (this.id === undefined) return false;
    this.#driverFeed.close();
    this.#tripFeed?.close();
    this.id = this.#fleet.followed = this.#tripFeed = this.#tripId = this.#position = undefined;
    [this.#track, this.#raw] = [[], []];
    this.#forgetTrip();
    this.camera = false;
    this.#changed();
    return true;
  }

  /** Its feed; raw fixes are asked for only while they are shown. */
  #listen() {
    const { id } = this, before = this.#driverFeed;
    this.#driverFeed = hub.driver(id, { raw: layers.raw });
    this.#driverFeed.on('position', position => this.#place(position));
    this.#driverFeed.on('raw', fix => {
      this.#raw.push(fix);
      if (this.#raw.length > keptFixes) this.#raw.shift();
    });
    this.#driverFeed.on('lost', () => this.#load());
    this.#driverFeed.on('ended', reason => reason !== 'asked' && say(`${id}: ${reason}`));
    before?.close();
  }
  rawChanged() {
    this.#raw = [];
    this.#listen();
  }

  // MARK: What comes

  #place(position) {
    const { latitude, longitude, timestamp, speed } = position, last = this.#track.at(-1)?.[2] ?? 0;
    this.#position = { ...this.#position, ...position };
    this.#marker.push(position);
    if (timestamp > last) this.#track.push([latitude, longitude, timestamp, speed]);
    if (this.#track.length > keptPlaces) this.#track.splice(0, keptPlaces / 10);
    this.#follow(this.#position.tripId);
    this.#changed(true);
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
    const feed = this.#tripFeed = hub.trip(tripId);
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
      hub.getTrip(tripId).then(whole => feed === this.#tripFeed && take(whole), () => {});
    });
    feed.on('update', take);
    feed.on('eta', eta => { this.#eta = eta; });
    feed.on('ended', () => feed === this.#tripFeed && this.#forgetTrip());
  }

  /** The track so far from the hub, so that none is missing after the page was opened anew. */
  async #load() {
    const { id } = this, tripId = this.#tripId;
    const past = tripId ? await hub.track(tripId).then(placesOf, () => []) : [], last = past.at(-1)?.[2] ?? 0;
    if (id !== this.id || tripId !== this.#tripId) return;
    this.#track = [...past, ...this.#track.filter(([, , time]) => time > last)];
  }

  async #share() {
    try {
      const { url } = await hub.share(this.#tripId);
      setText('shared', url);
      $('shared').hidden = false;
      await navigator.clipboard?.writeText(url).then(() => say('The link was copied.'), () => {});
    } catch (error) {
      say(`The trip was not shared: ${error.message}`);
    }
  }

  // MARK: The card

  card() {
    const shown = this.id !== undefined, position = this.#position ?? {}, now = hub.now();
    $('follow').hidden = !shown;
    $('recentre').hidden = !shown || this.camera;
    if (!shown) return;
    const driver = this.#fleet.driver(this.id) ?? position, kind = kindOf(driver) ?? 'offline', trip = this.#trip;
    const age = (now - position.timestamp) / 1000;
    setText('name', this.id);
    setText('what', [statuses[kind] ?? kind, this.#tripId, driver.vehicleType].filter(Boolean).join(' · '));
    $('badge').setAttribute('class', kind);
    turn($('badge'), kind, position.heading);
    $('trip').hidden = isOver(trip);
    $('eta').hidden = !this.#eta || isOver(trip);
    if (trip) {
      showSteps(trip.status);
      setText('step', moves[trip.status]);
      setText('since', `since ${clock(trip.timestamp)}`);
    }
    if (this.#eta) showEta(this.#eta, now);
    const raw = this.#meanOffset(), heading = position.heading;
    [
      [position.speed >= 0 ? Math.round(position.speed * 3.6) : '–', 'km/h'],
      heading >= 0 ? [`${Math.round(heading)}°`, winds[Math.round(heading / 45) % 8]] : ['–'],
      [ago(age)],
      position.accuracy >= 0 ? [`±${position.accuracy.toFixed(1)}`, 'm'] : ['–'],
      [position.confidence ?? '–'],
      [raw >= 0 ? raw.toFixed(1) : '–', 'm'],
    ].forEach(([value, unit = ''], index) => {
      const [figure, small] = this.#facts[index];
      setText(figure, `${value} `);
      setText(small, unit);
    });
    this.#drawPace(now);
  }

  #drawPace(now) {
    const values = [];
    this.#track.slice(-2 * paceSeconds).forEach(([latitude, longitude, time, known], index, places) => {
      const at = paceSeconds - 1 - Math.floor((now - time) / 1000), before = places[index - 1];
      const speed = known ?? (before && metersBetween(before, [latitude, longitude]) / (time - before[2]) * 1000);
      if (at >= 0) values[Math.min(at, paceSeconds - 1)] = speed * 3.6;
    });
    // A second between two fixes has the speed of the one before.
    for (let at = 1; at < values.length; at++) values[at] ??= values[at - 1];
    const [, most] = drawLine($('pace-line'), values, paceSeconds, map.colors.track);
    setText('pace-max', Number.isFinite(most) ? `max ${Math.round(most)} km/h` : '');
  }

  #meanOffset() {
    const offsets = this.#raw.slice(-meanOf).map(({ offset }) => offset).filter(Number.isFinite);
    return offsets.reduce((sum, offset) => sum + offset, 0) / offsets.length;
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
      if (Math.hypot(x - map.x, y - map.y) * map.scale > 0.02) map.show(x, y);
      return place;
    }
    const part = reducedMotion.matches ? 1 : Math.min(1, (performance.now() - flight.since) / flightMs);
    const eased = part * part * (3 - 2 * part);
    map.show(flight.x + (x - flight.x) * eased, flight.y + (y - flight.y) * eased,
      flight.zoom + (flight.to - flight.zoom) * eased);
    if (part === 1) this.#flight = undefined;
    return place;
  }

  draw(page, place, isGone) {
    if (!place) return;
    const { colors } = map, position = this.#position, here = [place.latitude, place.longitude], trip = this.#trip;
    const isByRoad = this.#eta?.basis === 'route' && trip?.status === 'trip_started';
    map.way(here, isByRoad && this.#route, targetOf(trip));
    if (layers.track) {
      const past = this.#track.filter(([, , time]) => time <= position.timestamp);
      const path = map.path([...past.slice(0, -1), here]);
      map.stroke(path, colors.trackEdge, 7);
      map.stroke(path, colors.track, 4);
    }
    if (layers.raw) this.#drawRaw();
    if (!isOver(trip)) map.pins(trip);
    map.project(...here);
    const { px, py } = map, size = Math.max(15, Math.min(20, this.#fleet.size() * 1.4));
    const kind = kindOf(this.#fleet.driver(this.id) ?? position) ?? 'offline';
    const color = isGone ? colors.offline : colors[kind];
    if (layers.accuracy && position.accuracy) {
      const circle = disc(px, py, Math.max(4, position.accuracy * map.pixels(place.latitude)));
      map.fill(circle, color, 0.2);
      map.stroke(circle, color, 1.2, 0.6);
    }
    if (!isGone && !reducedMotion.matches) map.pulse(px, py, size, color);
    this.#arrows.clear();
    this.#arrows.add(kind, toneOf(place.age, isGone), px, py, place.heading);
    this.#arrows.draw(page, colors, size, [1, 0.6, 1]);
    map.text(this.id, px, py + size + 16, colors.onAccent, '700 12px', colors.accent);
  }

  /** As dots, each with a whisker to where it was shown; what was refused is hollow, with why. */
  #drawRaw() {
    const { colors } = map, dots = new Path2D(), refused = new Path2D(), whiskers = new Path2D(), reasons = [];
    const places = new Map(this.#track.slice(-keptFixes).map(place => [place[2], place]));
    const radius = map.zoom > 15 ? 3 : 2;
    for (const { latitude, longitude, timestamp, verdict, reason } of this.#raw) {
      const shown = places.get(timestamp), isRefused = verdict === 'refused';
      map.project(latitude, longitude);
      const { px, py } = map;
      if (!map.sees(px, py)) continue;
      (isRefused ? refused : dots).addPath(disc(px, py, isRefused ? radius + 1.5 : radius));
      if (isRefused && reason) reasons.push([reason.replaceAll('_', ' '), px, py - 14]);
      if (shown && !isRefused) whiskers.addPath(map.path([[latitude, longitude], shown]));
    }
    map.stroke(whiskers, colors.raw, 1, 0.75);
    map.fill(dots, colors.raw);
    map.stroke(dots, colors.edge, 1);
    map.stroke(refused, colors.raw, 1.5);
    for (const [reason, px, py] of reasons.slice(-8)) map.text(reason, px, py, colors.raw, '600 11px', colors.plate);
  }
}

/** Good for a street's length. */
const metersBetween = ([latitude, longitude], [toLatitude, toLongitude]) => 111_195 * Math.hypot(latitude - toLatitude,
  (longitude - toLongitude) * Math.cos(latitude * Math.PI / 180));

const depths = { Point: 0, LineString: 1, MultiLineString: 2 };
/** [latitude, longitude, time] of a track of the hub's. */
function placesOf({ geometry, properties }) {
  const places = geometry ? [geometry.coordinates].flat(depths[geometry.type]) : [];
  const times = [properties.times].flat(2);
  return places.map(([longitude, latitude], index) => [latitude, longitude, times[index]]);
}
