// The live map: the drivers on it and in the list, the followed one, the hub's figures, who is connected, keys, and the
// loop that draws. It is one file, because four that share words are 1.9 KB more to load. It talks to the hub by hub.js
// and nothing else.

import { Hub, Marker, Markers } from './hub.js';
import { $, Arrows, LiveMap, ago, askAbout, boxOf, clock, colorsOf, count, decode, drawLine, element, figure,
  followRelease, hubURL, icon, isOver, isPhone, moves, reducedMotion, say, setText, sheet, showEta, showSteps, statuses,
  takeToken, targetOf, theme, xOf, yOf } from './map.js';

// MARK: - The drivers

const crowded = 3000, roomy = 2500;        // drivers in view: from one to the other it stays as it is
const moveMs = 500, fadedAge = 12, greyAge = 60;
const rowHeight = 50, labelled = 120, linesFrom = 13.4, labelsFrom = 14.6;
const strengths = [1, 0.5, 0.75];          // fresh, faded, grey
const kinds = Object.keys(statuses);
const world = { west: -180, south: -85, east: 179.999999, north: 85 };

const kindOf = driver => driver.online === false ? 'offline' : driver.status;
const sumOf = cells => {
  const sum = Object.fromEntries(kinds.map(kind => [kind, 0]));
  for (const cell of cells.values()) for (const kind of kinds) sum[kind] += cell[kind] ?? 0;
  return { ...sum, all: kinds.reduce((total, kind) => total + sum[kind], 0) };
};

class Fleet {
  trips = new Map();
  chosen = new Set();                      // statuses; none is all
  #pick;
  #markers = new Markers(); #arrows = new Arrows(); #known = new Set(); #labels = new Map();
  #view; #shown; #whole; #cells; #moved = 0; #later; #isCrowded = false; #visible = 0; #found = []; #asked = '';
  #order = []; #ids = []; #rows = []; #active = -1; #chips = {}; #collator = new Intl.Collator('en', { numeric: true });

  constructor(pick, box) {
    this.#pick = pick;
    this.#makeChips();
    this.#makeList();
    const [west, south, east, north] = box ?? [];
    this.#whole = hub.counts(box ? { west, south, east, north } : world);
    this.#whole.on('update', () => this.#count());
    const trips = hub.trips();
    trips.on('update', trip => this.#trip(trip));
    trips.on('snapshot', () => this.#loadTrips());
  }

  get drivers() { return this.#view?.drivers ?? new Map(); }
  driver(id) { return this.drivers.get(id); }
  tripOf(driver) { return driver?.tripId && this.trips.get(driver.tripId); }

  // MARK: Trips

  #trip(trip) {
    if (isOver(trip)) this.trips.delete(trip.tripId);
    else this.trips.set(trip.tripId, { ...this.trips.get(trip.tripId), ...trip });
  }
  async #loadTrips() {
    const status = 'requested,accepted,driver_en_route,arrived_pickup,trip_started,arrived_destination';
    const before = new Map(this.trips);
    let cursor;
    this.trips.clear();
    try {
      do {
        const page = await hub.getTrips({ status, limit: 1000, ...(cursor && { cursor }) });
        for (const trip of page.trips) if (!this.trips.has(trip.tripId)) this.trips.set(trip.tripId, trip);
        cursor = page.next;
      } while (cursor);
    } catch {
      // The connection went while they came: the next snapshot asks again.
      for (const [id, trip] of before) if (!this.trips.has(id)) this.trips.set(id, trip);
    }
  }

  // MARK: Views

  /** The map has moved: at most twice a second the view follows. */
  look() {
    const wait = this.#moved + moveMs - performance.now();
    clearTimeout(this.#later);
    if (wait > 0) this.#later = setTimeout(() => this.look(), wait); else this.#look();
  }

  #look() {
    const box = map.box(), shown = this.#shown;
    const inside = shown && map.zoom < shown.zoom + 1.5 && box.west >= shown.box.west && box.east <= shown.box.east
      && box.south >= shown.box.south && box.north <= shown.box.north;
    if (inside || !map.width) return;
    this.#moved = performance.now();
    this.#shown = { zoom: map.zoom, box: map.box(0.2) };
    if (this.#cells) this.#cells.move(this.#shown.box);
    if (this.#isCrowded) return;
    if (this.#view) return this.#view.move(this.#shown.box);
    this.#view = hub.view(this.#shown.box);
    this.#view.on('update', update => {
      for (const driver of update.drivers) {
        this.#markers.push(driver.driverId, driver);
        this.#known.add(driver.driverId);
      }
    });
  }

  /** Whether so many are in view that they are shown as counts by cell. */
  #crowd() {
    const all = sumOf(this.#whole.cells).all;
    if (!this.#cells && all > crowded && this.#shown) this.#cells = hub.counts(this.#shown.box);
    if (!this.#cells) return;
    if (all <= roomy) {
      this.#cells.close();
      this.#cells = undefined;
    }
    const inView = this.#cells ? sumOf(this.#cells.cells).all : all;
    const isCrowded = inView > (this.#isCrowded ? roomy : crowded);
    if (isCrowded === this.#isCrowded) return;
    this.#isCrowded = isCrowded;
    if (isCrowded) {
      this.#view?.close();
      this.#view = undefined;
    } else {
      this.#shown = undefined;
      this.#look();
    }
  }

  // MARK: Each second

  tick(now) {
    const { drivers } = this;
    for (const id of this.#known) {
      if (drivers.has(id)) continue;
      this.#known.delete(id);
      this.#markers.drop(id);
      this.#labels.delete(id);
    }
    this.#crowd();
    this.#count();
    this.#list(now);
  }

  #makeChips() {
    $('chips').replaceChildren(...kinds.map(kind => {
      const figure = element('b', { textContent: '–' });
      const chip = element('button', { type: 'button', className: kind }, icon(kind), statuses[kind], figure);
      chip.setAttribute('aria-pressed', 'false');
      chip.addEventListener('click', () => {
        if (!this.chosen.delete(kind)) this.chosen.add(kind);
        chip.setAttribute('aria-pressed', this.chosen.has(kind));
        $('chips').classList.toggle('some', this.chosen.size > 0);
        this.#list(hub.now());
      });
      this.#chips[kind] = figure;
      return chip;
    }));
  }
  #count() {
    const sum = sumOf(this.#whole.cells);
    for (const kind of kinds) setText(this.#chips[kind], count(sum[kind]));
  }

  // MARK: The list

  #makeList() {
    const list = $('list');
    $('rows').replaceChildren();
    list.addEventListener('scroll', () => this.#paint());
    list.addEventListener('keydown', event => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -1e9, End: 1e9 }[event.key];
      if (step) {
        this.#active = Math.max(0, Math.min(this.#ids.length - 1, this.#active + step));
        const top = this.#active * rowHeight;
        if (top < list.scrollTop) list.scrollTop = top;
        if (top + rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + rowHeight - list.clientHeight;
        this.#paint();
      } else if (event.key === 'Enter' || event.key === ' ') this.#choose(this.#active);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    $('rows').addEventListener('click', event => {
      const row = event.target.closest('.row');
      if (row) this.#choose(Number(row.dataset.index));
    });
    $('query').addEventListener('input', () => {
      list.scrollTop = 0;
      this.#active = -1;
      this.#search();
    });
    $('query').addEventListener('keydown', event => {
      if (event.key === 'Enter') this.#choose(0);
      if (event.key === 'ArrowDown') list.focus();
    });
  }
  #choose(index) {
    const entry = this.#ids[index];
    if (entry) this.#pick(entry.driverId, entry);
  }

  /** Those in view are found at once, others the hub is asked for: by how an id begins, and a trip by its whole id. */
  #search() {
    const text = $('query').value.trim();
    clearTimeout(this.#asked);
    this.#found = [];
    this.#list(hub.now());
    if (text) this.#asked = setTimeout(async () => {
      const [page, trip] = await Promise.all([
        hub.find({ search: text, limit: 50 }).catch(() => ({ drivers: [] })),
        hub.getTrip(text).catch(() => undefined)]);
      if ($('query').value.trim() !== text) return;
      const driver = trip?.driverId && await hub.getDriver(trip.driverId).catch(() => undefined);
      this.#found = [...driver ? [{ ...driver, tripId: trip.tripId }] : [], ...page.drivers];
      this.#list(hub.now());
    }, 200);
  }

  #list(now) {
    const text = $('query').value.trim().toLowerCase(), { drivers, chosen } = this;
    if (this.#order.length !== drivers.size || this.#order.some(id => !drivers.has(id))) {
      this.#order = [...drivers.keys()].sort(this.#collator.compare);
    }
    const fits = driver => (!chosen.size || chosen.has(kindOf(driver)))
      && (!text || driver.driverId.toLowerCase().includes(text) || driver.tripId?.toLowerCase().includes(text));
    const all = this.#order.map(id => drivers.get(id));
    const byTrip = this.#found.filter(({ tripId }) => text && tripId?.toLowerCase() === text);
    const isFound = id => byTrip.some(({ driverId }) => driverId === id);
    const elsewhere = this.#found.filter(({ driverId }) => !drivers.has(driverId) && !isFound(driverId));
    this.#ids = [...byTrip, ...all.filter(driver => fits(driver) && !isFound(driver.driverId)), ...elsewhere];
    const more = this.#view?.more ?? 0, inView = drivers.size + more;
    const words = this.#isCrowded ? `${count(sumOf(this.#cells.cells).all)} in view, counted by cell: zoom in`
      : text ? this.#ids.length ? `${count(this.#ids.length)} found` : 'No driver in view, no id and no trip fits'
      : chosen.size ? `${count(this.#ids.length)} of ${count(inView)}`
        : more ? `${count(drivers.size)} of ${count(inView)}: zoom in for all` : `${count(inView)} in view`;
    setText($('shown'), words);
    this.#paint(now);
  }

  /** Only rows that can be seen exist. */
  #paint(now = hub.now()) {
    const list = $('list'), first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 2);
    const room = Math.min(this.#ids.length - first, Math.ceil(list.clientHeight / rowHeight) + 4);
    $('rows').style.height = `${this.#ids.length * rowHeight}px`;
    while (this.#rows.length < room) {
      const node = $('row').content.cloneNode(true).firstChild, [svg, words, figures] = node.children;
      this.#rows.push({ node, svg, use: svg.firstChild, name: words.children[0], what: words.children[1],
        speed: figures.children[0], age: figures.children[1] });
      $('rows').append(node);
    }
    this.#rows.forEach((row, at) => {
      row.node.hidden = at >= room;
      if (at < room) this.#fill(row, first + at, now);
    });
    const active = this.#rows[this.#active - first];
    if (active) list.setAttribute('aria-activedescendant', active.node.id);
    else list.removeAttribute('aria-activedescendant');
  }

  #fill(row, index, now) {
    const driver = this.#ids[index], kind = kindOf(driver), trip = this.tripOf(driver);
    const age = (now - driver.timestamp) / 1000, isStopped = !(driver.speed >= 0.8) || kind === 'offline';
    const { node } = row;
    Object.assign(node.dataset, { index });
    Object.assign(node, { id: `row-${index}` });
    node.className = `row ${kind}${index === this.#active ? ' active' : ''}${isStopped ? ' stopped' : ''}${
      age > greyAge ? ' old' : ''}`;
    node.setAttribute('aria-selected', driver.driverId === this.followed);
    node.setAttribute('aria-setsize', this.#ids.length);
    node.setAttribute('aria-posinset', index + 1);
    node.style.transform = `translateY(${index * rowHeight}px)`;
    row.use.setAttribute('href', `#${driver.heading >= 0 || kind === 'offline' ? kind : 'offline'}`);
    row.svg.style.transform = `rotate(${kind === 'offline' ? 0 : Math.round(driver.heading ?? 0)}deg)`;
    setText(row.name, driver.driverId);
    setText(row.what, kind === 'on_trip' && trip ? moves[trip.status] : statuses[kind] ?? kind);
    setText(row.speed, isStopped ? kind === 'offline' ? '' : 'stopped' : `${Math.round(driver.speed * 3.6)} km/h`);
    setText(row.age, age > greyAge ? `last seen ${ago(age)}` : ago(age));
  }

  // MARK: The map

  /** Draws all but the followed one; `isGone`: there is no connection. */
  draw(page, now, followed, isGone) {
    const { drivers, chosen } = this, arrows = this.#arrows, { width, height } = map;
    this.#markers.snap = reducedMotion.matches;
    if (this.#isCrowded) return this.#drawCounts(page);
    if (layers.cells) this.#drawCells(page);
    if (map.zoom >= linesFrom) this.#drawLines(page, followed);
    const size = this.size();
    const names = [];
    let visible = 0;
    arrows.clear();
    this.#markers.each(now, (id, latitude, longitude, heading, age) => {
      const driver = drivers.get(id);
      if (!driver || id === followed) return;
      const kind = kindOf(driver);
      if (chosen.size && !chosen.has(kind)) return;
      map.project(latitude, longitude);
      const { px, py } = map;
      if (px < -20 || py < -20 || px > width + 20 || py > height + 20) return;
      visible++;
      arrows.add(kind, isGone || age > greyAge ? 2 : age > fadedAge ? 1 : 0, px, py, heading);
      if (names.length <= 3 * labelled) names.push(id, px, py);
    });
    this.#visible = visible;
    arrows.draw(page, map.colors, size, strengths, followed === undefined ? 1 : 0.6);
    if (layers.labels && map.zoom >= labelsFrom && visible <= labelled) {
      const taken = [];
      for (let at = 0; at < names.length; at += 3) {
        this.#label(page, names[at], Math.round(names[at + 1]), Math.round(names[at + 2] + size + 12), taken);
      }
    }
  }

  /** By the zoom, but so that they do not cover each other. */
  size() {
    const { zoom, width, height } = map;
    const wish = Math.max(4, Math.min(15, 7 + (zoom - 12) * 1.8));
    return Math.max(3.2, Math.min(wish, 0.16 * Math.sqrt(width * height / Math.max(1, this.#visible))));
  }

  /** Drawn once, to a picture: a hundred texts in each frame cost too much. None covers another one. */
  #label(page, id, px, py, taken) {
    const { colors } = map, ratio = Math.min(devicePixelRatio || 1, 2);
    let label = this.#labels.get(id);
    if (label?.color !== colors.text) {
      const canvas = element('canvas'), pen = canvas.getContext('2d'), font = '600 11px system-ui, sans-serif';
      pen.font = font;
      const wide = 2 * Math.ceil(pen.measureText(id).width / 2) + 12;
      Object.assign(canvas, { width: wide * ratio, height: 17 * ratio });
      pen.scale(ratio, ratio);
      pen.font = font;
      pen.fillStyle = colors.plate;
      pen.roundRect(0, 0, wide, 17, 8.5);
      pen.fill();
      pen.fillStyle = colors.text;
      pen.textBaseline = 'middle';
      pen.fillText(id, 6, 9);
      label = { canvas, wide, color: colors.text };
      this.#labels.set(id, label);
    }
    const { canvas, wide } = label;
    if (taken.some(([x, y, other]) => Math.abs(px - x) < (wide + other) / 2 && Math.abs(py - y) < 17)) return;
    taken.push([px, py, wide]);
    page.drawImage(canvas, px - wide / 2, py - 9, wide, 17);
  }

  #drawLines(page, followed) {
    page.beginPath();
    for (const driver of this.drivers.values()) {
      const target = driver.driverId !== followed && targetOf(this.tripOf(driver));
      if (!target) continue;
      map.project(driver.latitude, driver.longitude);
      page.moveTo(map.px, map.py);
      map.project(target.latitude, target.longitude);
      page.lineTo(map.px, map.py);
    }
    page.setLineDash([1, 6]);
    page.lineCap = 'round';
    page.lineWidth = 1.2;
    page.strokeStyle = map.colors.on_trip;
    page.globalAlpha = 0.25;
    page.stroke();
    page.globalAlpha = 1;
    page.setLineDash([]);
  }

  #corners(geohash) {
    const [west, south, east, north] = boxOf(geohash);
    map.project(north, west);
    const { px, py } = map, wide = (xOf(east) - xOf(west)) * map.scale, high = (yOf(south) - yOf(north)) * map.scale;
    return [px, py, wide, high];
  }

  #drawCells(page) {
    const cells = new Set([...this.drivers.values()].map(({ cell }) => cell));
    page.strokeStyle = map.colors.muted;
    page.lineWidth = 1;
    for (const cell of cells) {
      const [px, py, wide, high] = this.#corners(cell);
      page.strokeRect(px, py, wide, high);
      map.text(cell, px + wide / 2, py + 12, map.colors.muted);
    }
  }

  #drawCounts(page) {
    const { colors, width, height } = map;
    const kindsShown = kinds.filter(kind => !this.chosen.size || this.chosen.has(kind));
    const all = [...this.#cells.cells.values()].map(cell =>
      ({ cell, sum: kindsShown.reduce((sum, kind) => sum + (cell[kind] ?? 0), 0) })).filter(({ sum }) => sum);
    const most = Math.max(...all.map(({ sum }) => sum), 1);
    for (const { cell, sum } of all) {
      const [left, top, wide, high] = this.#corners(cell.cell), px = left + wide / 2, py = top + high / 2;
      if (px < -50 || py < -50 || px > width + 50 || py > height + 50) continue;
      const radius = Math.max(11, Math.min(wide, high, 88) * 0.46 * Math.sqrt(0.25 + 0.75 * sum / most));
      map.circle(px, py, radius, colors.plate);
      let from = -Math.PI / 2;
      for (const kind of kindsShown) {
        const part = (cell[kind] ?? 0) / sum * 2 * Math.PI;
        if (!part) continue;
        page.beginPath();
        page.arc(px, py, radius, from, from += part);
        page.strokeStyle = colors[kind];
        page.lineWidth = Math.max(2.5, radius * 0.16);
        page.lineCap = 'butt';
        page.stroke();
      }
      if (radius > 12) map.text(count(sum), px, py, colors.text, `700 ${radius > 24 ? 14 : 11}px`);
    }
  }

  /** The driver nearest to a pixel. */
  at(px, py) {
    let best, least = 20;
    this.#markers.each(hub.now(), (id, latitude, longitude) => {
      map.project(latitude, longitude);
      const distance = Math.hypot(map.px - px, map.py - py);
      const driver = this.drivers.get(id);
      if (distance >= least || !driver || this.chosen.size && !this.chosen.has(kindOf(driver))) return;
      [best, least] = [id, distance];
    });
    return best;
  }

  /** A box around all there are: [west, south, east, north]. */
  async bounds() {
    const cells = [...this.#whole.cells.values()].filter(cell => kinds.some(kind => cell[kind]))
      .map(({ cell }) => boxOf(cell));
    const places = cells.length ? [] : (await hub.find({ limit: 1000 })).drivers;
    const known = places.filter(({ latitude }) => latitude !== undefined);
    const all = [...cells, ...known.map(({ latitude, longitude }) => [longitude, latitude, longitude, latitude])];
    if (!all.length) return undefined;
    const edge = (side, pick) => all.reduce((found, box) => pick(found, box[side]), all[0][side]);
    return [edge(0, Math.min), edge(1, Math.min), edge(2, Math.max), edge(3, Math.max)];
  }
}

// MARK: - The followed driver

const paceSeconds = 90, keptPlaces = 20_000, keptFixes = 1_000, meanOf = 60, closeZoom = 16, flightMs = 450;
const winds = ['N', 'NE', 'E', 'SE', 'S', 'SW', 'W', 'NW'];
const facts = ['Speed', 'Heading', 'Position', 'Accuracy', 'Confidence', 'Raw − shown'];

class Follow {
  id; camera = false;
  #driverFeed; #tripFeed; #tripId; #trip; #eta; #position; #marker; #arrows = new Arrows();
  #track = []; #shownAt = new Map(); #raw = []; #route; #pace = []; #facts; #flight; #changed;

  constructor(changed) {
    this.#changed = changed;
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
      this.id = fleet.followed = id;
      this.#marker = new Marker();
      const driver = fleet.driver(id) ?? seen;
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

  end() {
    if (this.id === undefined) return false;
    this.#driverFeed.close();
    this.#tripFeed?.close();
    this.id = fleet.followed = this.#tripFeed = this.#tripId = this.#position = undefined;
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
    this.#driverFeed = hub.driver(id, { raw: layers.raw });
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
    if (layers.raw) this.#load();
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
    if (!tripId) return;
    const ask = source => hub.track(tripId, { source }).then(placesOf, () => []);
    const [filtered, raw] = await Promise.all([ask('filtered'), layers.raw ? ask('raw') : []]);
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
      const { url } = await hub.share(this.#tripId);
      setText($('shared'), url);
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
    const driver = fleet.driver(this.id) ?? position, kind = kindOf(driver) ?? 'offline', trip = this.#trip;
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
    const [, most] = drawLine($('pace-line'), values, paceSeconds, map.colors.track);
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

  draw(page, place, now, isGone) {
    const { colors } = map, position = this.#position;
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
    const { px, py } = map, size = Math.max(15, Math.min(20, fleet.size() * 1.4));
    const driver = fleet.driver(this.id);
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
    const { colors } = map, dots = new Path2D(), refused = new Path2D(), whiskers = new Path2D();
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

// MARK: - The hub's figures

const room = 600, together = 6;     // seconds
const sum = counts => Object.values(counts ?? {}).reduce((total, value) => total + value, 0);
const percent = (s, before) => (s.cpuSeconds - before.cpuSeconds) / (s.timestamp - before.timestamp) * 1e5;
const ms = seconds => Number.isFinite(seconds) ? seconds * 1000 : NaN;

/** Name, unit, colour, the value of a second, what it means, and what stands beside it. */
const readings = [
  ['Fixes in', '/s', 'available', s => s.fixes, 'Positions that drivers sent.'],
  ['Deliveries', '/s', 'on_trip', s => s.deliveries, 'Positions and events that riders and maps got.'],
  ['Latency p50', 'ms', 'on_trip', s => ms(s.p50), 'From a fix to its delivery: half of all took less.'],
  ['Latency p99', 'ms', 'unavailable', s => ms(s.p99), 'From a fix to its delivery: 99 of 100 took less.'],
  ['Sessions', '', 'background', s => sum(s.sessions), 'Who is connected now'],
  ['Memory', 'MB', 'background', s => s.residentBytes / 1e6, 'Of the hub; 100 % CPU is one core.',
    (s, before) => before ? `CPU ${figure(percent(s, before))} %` : ''],
  ['Drops and errors', '/s', 'raw', s => sum(s.drops) + sum(s.errors), 'In ten minutes'],
];
const each = counts => Object.entries(counts).map(([name, value]) => `${count(value)} ${name.replaceAll('_', ' ')}`)
  .join(', ') || 'none';
/** The last second's sessions by role, and all seconds' drops and errors by reason. */
const detailOf = (index, history) => {
  if (index === 4) return `: ${each(history.at(-1)?.sessions ?? {})}.`;
  if (index !== 6) return '';
  const all = {};
  for (const { drops, errors } of history) {
    for (const [name, value] of Object.entries({ ...drops, ...errors })) all[name] = (all[name] ?? 0) + value;
  }
  return `: ${each(all)}.`;
};

/** In a tile a second is a third of a pixel: some are one point together. */
function means(values) {
  const groups = [];
  for (let end = values.length; end > 0; end -= together) {
    const known = values.slice(Math.max(0, end - together), end).filter(Number.isFinite);
    groups.unshift(known.length ? known.reduce((total, value) => total + value, 0) / known.length : NaN);
  }
  return groups;
}

class Tiles {
  #history = []; #nodes; #open = -1;

  constructor() {
    this.#nodes = readings.map(([name, unit, , , meaning], index) => {
      const value = element('span', { textContent: '–' }), beside = element('i'), line = element('canvas');
      const button = element('button', { type: 'button', className: 'tile', title: meaning },
        element('span', { textContent: name }), beside,
        element('b', {}, value, element('small', { textContent: unit })), line);
      button.addEventListener('click', () => this.#enlarge(this.#open === index ? -1 : index));
      return { button, value, beside, line };
    });
    $('tiles').replaceChildren(...this.#nodes.map(({ button }) => button));
    $('chart-end').addEventListener('click', () => this.#enlarge(-1));
    const feed = hub.stats();
    feed.on('snapshot', ({ history = [] }) => {
      this.#history = history.slice(-room);
      this.draw();
    });
    feed.on('stats', second => {
      this.#history.push(second);
      if (this.#history.length > room) this.#history.shift();
      if (document.visibilityState === 'visible') this.draw();
    });
  }

  /** Whether there was one to be closed. */
  close() {
    const isOpen = this.#open >= 0;
    this.#enlarge(-1);
    return isOpen;
  }

  #enlarge(index) {
    if (index < 0 && this.#open >= 0) this.#nodes[this.#open].button.focus();
    this.#open = index;
    $('chart').hidden = index < 0;
    if (index >= 0) setText($('chart-title'), readings[index][0]);
    this.draw();
  }

  draw() {
    const history = this.#history, last = history.at(-1), before = history.at(-2);
    readings.forEach(([, unit, color, valueOf, meaning, besideOf], index) => {
      const { value, beside, line } = this.#nodes[index];
      const text = last ? figure(valueOf(last)) : '–';
      setText(value, text);
      if (last && besideOf) setText(beside, besideOf(last, before));
      const values = history.map(valueOf), ink = map.colors[color];
      drawLine(line, means(values), room / together, ink, { top: 10 });
      if (index !== this.#open) return;
      const [low, high] = drawLine($('chart-line'), values, room, ink);
      setText($('chart-value'), `${text} ${unit}`);
      setText($('chart-meaning'), meaning + detailOf(index, history));
      setText($('chart-range'), `${count(values.length)} s: ${figure(low)} to ${figure(high)} ${unit}`);
    });
  }
}

// MARK: - The page

const fencesMs = 15_000, panPx = 120;
const layers = { track: true, raw: false, accuracy: true, fences: true, cells: false, labels: true };
const layerNames = { track: 'Filtered track', raw: 'Raw fixes', accuracy: 'Accuracy circle', fences: 'Fences',
  cells: 'Cells', labels: 'Labels' };
const tokenKey = 'token';

let fleet, follow, isDirty = true, shownFences = [], loadedFences = -Infinity;

// MARK: The token

let token = takeToken(sessionStorage, tokenKey), given;
const whys = { connect: 'This hub wants to know who looks.', refused: 'The hub did not take the token.',
  expiring: 'The token ends soon.' };

/** Asks for a token in a field; what is there is tried first. */
function tokenFor({ reason, signal }) {
  if (reason === 'connect' && token) return token;
  setText($('token-why'), whys[reason]);
  $('token').hidden = false;
  if (reason !== 'expiring') $('token-text').focus();
  return new Promise((resolve, reject) => {
    given = resolve;
    signal.addEventListener('abort', () => reject(new Error('not needed any more')));
  });
}
$('token').addEventListener('submit', event => {
  event.preventDefault();
  token = $('token-text').value.trim();
  if (!token) return;
  sessionStorage.setItem(tokenKey, token);
  $('token-text').value = '';
  $('token').hidden = true;
  given?.(token);
  if (hub.state.is === 'closed') hub.connect();
});

// MARK: The map

const map = new LiveMap($('still'), $('moving'), {
  moved(byHand) {
    isDirty = true;
    if (byHand && follow?.camera) {
      follow.camera = false;
      follow.card();
    }
    fleet?.look();
    showScale();
  },
  picked(px, py) {
    const id = fleet?.at(px, py);
    if (id !== undefined) pick(id);
  },
});

let scaleShown;
function showScale() {
  const [width, text] = map.scaleBar();
  if (scaleShown === text + Math.round(width)) return;
  scaleShown = text + Math.round(width);
  $('scale').style.width = `${Math.round(width)}px`;
  setText($('scale-text'), text);
}

/** What the cards cover. */
function cover() {
  const card = $('follow').hidden ? $('fleet') : $('follow');
  map.cover = isPhone() ? { left: 0, right: 0, top: 70, bottom: card.offsetHeight }
    : { left: 310, right: $('follow').hidden ? 50 : 336, top: 0, bottom: 112 };
  isDirty = true;
}
const swapTheme = theme($('theme'), () => {
  map.colors = colorsOf(document.documentElement);
  map.redraw();
  isDirty = true;
});

async function showAll() {
  const box = await fleet.bounds().catch(() => undefined) ?? about.map?.box;
  if (follow.camera) {
    follow.camera = false;
    follow.card();
  }
  if (box) map.fit(box);
}

function pick(id, seen) {
  follow.begin(id, seen);
  if (isPhone()) $('list').blur();
}

// MARK: Layers

function makeSwitches(node, names) {
  node.replaceChildren(...names.map(name => {
    const input = element('input', { type: 'checkbox', checked: layers[name] });
    input.setAttribute('role', 'switch');
    input.dataset.layer = name;
    input.addEventListener('change', () => setLayer(name, input.checked));
    return element('label', { className: `switch key-${name}` },
      element('i', { className: name === 'raw' ? 'dot' : '' }), layerNames[name], input);
  }));
}
function setLayer(name, isOn) {
  layers[name] = isOn;
  for (const input of document.querySelectorAll(`[data-layer=${name}]`)) input.checked = isOn;
  follow?.layersChanged(name);
  isDirty = true;
}
makeSwitches($('switches'), ['track', 'raw', 'accuracy', 'fences']);
makeSwitches($('layers'), ['fences', 'cells', 'labels']);

function toggleLayers(isOn = $('layers').hidden) {
  const was = !$('layers').hidden;
  $('layers').hidden = !isOn;
  $('layers-button').setAttribute('aria-expanded', isOn);
  return was;
}

async function loadFences() {
  if (performance.now() - loadedFences < fencesMs || !layers.fences || document.visibilityState === 'hidden') return;
  loadedFences = performance.now();
  const all = [];
  let cursor;
  try {
    do {
      const page = await hub.fences({ shape: 'full', limit: 500, ...(cursor && { cursor }) });
      all.push(...page.fences.map(outlined));
      cursor = page.next;
    } while (cursor && all.length < 5000);
    shownFences = all;
  } catch (error) {
    if (hub.state.is === 'live') say(`Fences: ${error.message}`);
  }
}
/** Rings of [latitude, longitude]. */
function outlined(fence) {
  const geometry = fence.polygon?.geometry ?? fence.polygon ?? {}, { corridor } = fence;
  const polygons = geometry.type === 'MultiPolygon' ? geometry.coordinates
    : geometry.type ? [geometry.coordinates] : [];
  const rings = polygons.flat().map(ring => ring.map(([longitude, latitude]) => [latitude, longitude]));
  const route = !corridor ? [] : typeof corridor.route === 'string' ? decode(corridor.route)
    : corridor.route.map(place => [place.latitude, place.longitude]);
  return { ...fence, rings, route };
}

/** Gives what has to be written above all else. */
function drawFences(page) {
  const { colors } = map, names = [];
  for (const { circle, corridor, rings, route, title, fenceId, inside } of shownFences) {
    let top;
    const lift = () => { if (!top || map.py < top[1]) top = [map.px, map.py]; };
    page.beginPath();
    page.setLineDash([5, 4]);
    page.fillStyle = page.strokeStyle = colors.fence;
    page.lineWidth = 1.4;
    if (circle) {
      map.project(circle.latitude, circle.longitude);
      const radius = circle.radius * map.pixels(circle.latitude);
      page.arc(map.px, map.py, radius, 0, 2 * Math.PI);
      top = [map.px, map.py - radius];
    }
    for (const ring of rings) {
      ring.forEach(([latitude, longitude], index) => {
        map.project(latitude, longitude);
        page[index ? 'lineTo' : 'moveTo'](map.px, map.py);
        lift();
      });
    }
    if (route.length) {
      route.forEach(([latitude, longitude], index) => {
        map.project(latitude, longitude);
        page[index ? 'lineTo' : 'moveTo'](map.px, map.py);
        lift();
      });
      page.setLineDash([]);
      page.lineCap = page.lineJoin = 'round';
      page.lineWidth = corridor.width * map.pixels(route[0][0]);
      page.globalAlpha = 0.16;
      page.stroke();
    } else {
      page.globalAlpha = 0.13;
      page.fill('evenodd');
      page.globalAlpha = 0.9;
      page.stroke();
    }
    page.globalAlpha = 1;
    page.setLineDash([]);
    if (top) names.push([`${title ?? fenceId}  ${inside ?? ''}`, top[0], top[1] - 13]);
  }
  return names;
}

// MARK: The connection

function showState() {
  const { is, retryAt, reason } = hub.state, left = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
  const isRefused = reason?.code === 401 || reason?.code === 4401;
  const words = { idle: 'not connected', connecting: 'connecting', live: 'live',
    waiting: `reconnecting in ${left} s`, closed: isRefused ? 'token refused' : 'closed' };
  setText($('state'), !$('token').hidden && is !== 'live' ? 'no token' : words[is]);
  $('pill').className = `pill ${is}`;
  $('pill').title = reason ? reason.message : '';
}
function stateChanged(state) {
  const { is, reason } = state;
  if (is === 'waiting' && reason?.code === 1001) say('The hub is stopping.');
  if (is === 'live') {
    followRelease(about);
    $('token').hidden = true;
    loadedFences = -Infinity;
    loadFences();
  }
  if (is === 'closed' && reason?.cause !== 'us') {
    setText($('token-why'), `${whys.refused} ${reason?.message ?? ''}`);
    $('token').hidden = false;
  }
  isDirty = true;
  showState();
}

// MARK: Drawing

function draw() {
  requestAnimationFrame(draw);
  const isGone = hub.state.is !== 'live';
  if (!isDirty && reducedMotion.matches) return;
  isDirty = false;
  const now = hub.now(), place = follow.aim(now), page = map.begin();
  const names = layers.fences ? drawFences(page) : [];
  fleet.draw(page, now, place && follow.id, isGone);
  for (const [name, px, py] of names) map.text(name, px, py, map.colors.fence, '700 11px', map.colors.plate);
  follow.draw(page, place, now, isGone);
}

function tick() {
  if (document.visibilityState === 'hidden') return;
  fleet.tick(hub.now());
  follow.card();
  showState();
  loadFences();
  isDirty = true;
}

// MARK: Keys

const keys = {
  ArrowLeft: () => map.pan(-panPx, 0), ArrowRight: () => map.pan(panPx, 0),
  ArrowUp: () => map.pan(0, -panPx), ArrowDown: () => map.pan(0, panPx),
  '+': () => map.zoomBy(0.5), '=': () => map.zoomBy(0.5), '-': () => map.zoomBy(-0.5), 0: showAll,
  '/': () => $('query').focus(), d: swapTheme, l: () => toggleLayers(),
};
addEventListener('keydown', event => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === 'Escape') {
    if (target === $('query')) {
      $('query').value = '';
      $('query').dispatchEvent(new Event('input'));
      return $('query').blur();
    }
    return tiles.close() || toggleLayers(false) || follow.end();
  }
  if (target.matches('input:not([type=checkbox])')) return;
  const act = keys[key.length === 1 ? key.toLowerCase() : key];
  if (!act) return;
  event.preventDefault();
  act();
});

// MARK: The beginning

const about = await askAbout();
const isDev = !token && about.devAuth;
$('dev').hidden = !isDev;
const id = `map-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
const hub = new Hub(hubURL(), isDev ? { dev: { role: 'ops', id } } : { token: tokenFor });
hub.on('state', stateChanged);
hub.on('error', ({ code, message }) => {
  say(code === 'forbidden' ? 'This token is not one of a control room.' : message);
});

fleet = new Fleet(pick, about.map?.box);
follow = new Follow(isPlace => {
  isDirty = true;
  if (isPlace) return;
  follow.card();
  cover();
});
const tiles = new Tiles();
setText($('attribution'), about.map?.attribution ?? '');
$('attribution').hidden = !about.map?.attribution;
$('in').addEventListener('click', () => map.zoomBy(1));
$('out').addEventListener('click', () => map.zoomBy(-1));
$('all').addEventListener('click', showAll);
$('layers-button').addEventListener('click', () => toggleLayers());
$('recentre').addEventListener('click', () => follow.recentre());
$('end').addEventListener('click', () => follow.end());
sheet($('fleet'), $('grip'), [0.14, 0.46, 0.86], cover);
sheet($('follow'), $('follow-grip'), [0.24, 0.56, 0.92], cover);
addEventListener('resize', cover);
cover();
map.load(about.map);
if (about.map?.box) map.fit(about.map.box); else hub.find({ limit: 1 }).then(showAll, () => {});
hub.connect();
setInterval(tick, 1000);
draw();
