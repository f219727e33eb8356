// The drivers: those in view, on the map and in the list; counts by status; which trips they drive.

import { Markers } from './hub.js';
import { disc, xOf, yOf } from './map.js';
import { $, Arrows, ago, boxOf, count, element, icon, isOver, moves, reducedMotion, setText, statuses, targetOf } from
  './page.js';
import { all, hub, layers, map } from './app.js';

const crowded = 3000, roomy = 2500;        // drivers in view: from one to the other it stays as it is
const widest = 300;                        // square degrees: a view has 256 cells at most, of 2 and more
const moveMs = 500, fadedAge = 12, greyAge = 60;
const rowHeight = 50, labelled = 60, labelHeight = 18, linesFrom = 13.4, labelsFrom = 14.6;
const strengths = [1, 0.5, 0.75];          // fresh, faded, grey
const underWay = 'requested,accepted,driver_en_route,arrived_pickup,trip_started,arrived_destination';
const kinds = Object.keys(statuses);
const world = [-180, -85, 179.999999, 85];

export const kindOf = driver => driver.online === false ? 'offline' : driver.status;
const sumOf = cells => {
  const sum = Object.fromEntries(kinds.map(kind => [kind, 0]));
  for (const cell of cells.values()) for (const kind of kinds) sum[kind] += cell[kind] ?? 0;
  return { ...sum, all: kinds.reduce((total, kind) => total + sum[kind], 0) };
};

/** An arrow beside words. */
export function turn(svg, kind, heading = 0) {
  svg.firstElementChild.setAttribute('href', `#${kind}`);
  svg.style.transform = `rotate(${kind === 'offline' ? 0 : Math.round(heading)}deg)`;
}
/** How fresh what is drawn is: 0, 1 faded, 2 grey; `isGone`: there is no connection. */
export const toneOf = (age, isGone) => isGone || age > greyAge ? 2 : age > fadedAge ? 1 : 0;

export class Fleet {
  trips = new Map();
  chosen = new Set();                      // statuses; none is all
  #pick;
  #markers = new Markers(); #arrows = new Arrows(); #known = new Set();
  #view; #shown; #whole; #cells; #moved = 0; #later; #isCrowded = false; #visible = 0; #found = []; #asked = '';
  #order = []; #ids = []; #rows = []; #active = -1; #chips = {}; #collator = new Intl.Collator('en', { numeric: true });

  constructor(pick, box = world) {
    this.#pick = pick;
    this.#makeChips();
    this.#makeList();
    const [west, south, east, north] = box;
    this.#whole = hub.counts({ west, south, east, north });
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
    const before = this.trips, began = this.trips = new Map();   // what is said while they come is newer
    // The connection may go meanwhile: the next snapshot asks again.
    const found = await all('getTrips', 'trips', { status: underWay }).catch(() => [...before.values()]);
    for (const trip of found) if (!began.has(trip.tripId)) began.set(trip.tripId, trip);
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
    this.#cells?.move(this.#shown.box);
    this.#view?.move(this.#shown.box);
    this.#crowd();
  }

  /** Where so many are in view, or so much, they are shown as counts by cell. */
  #crowd() {
    if (!this.#shown) return;
    const { box } = this.#shown, { north, south, east, west } = box;
    const isWide = (north - south) * ((east - west + 360) % 360) > widest, all = sumOf(this.#whole.cells).all;
    if (!this.#cells && (isWide || all > crowded)) this.#cells = hub.counts(box);
    if (this.#cells && !isWide && all <= roomy) {
      this.#cells.close();
      this.#cells = undefined;
    }
    const inView = this.#cells ? sumOf(this.#cells.cells).all : all;
    this.#isCrowded = isWide || inView > (this.#isCrowded ? roomy : crowded);
    if (this.#isCrowded) {
      this.#view?.close();
      this.#view = undefined;
    } else if (!this.#view) {
      this.#view = hub.view(box);
      this.#view.on('update', update => {
        for (const driver of update.drivers) {
          this.#markers.push(driver.driverId, driver);
          this.#known.add(driver.driverId);
        }
      });
    }
  }

  // MARK: Each second

  tick(now) {
    const { drivers } = this;
    for (const id of this.#known) {
      if (drivers.has(id)) continue;
      this.#known.delete(id);
      this.#markers.drop(id);
    }
    this.#crowd();
    this.#count();
    this.#list(now);
  }

  #makeChips() {
    $('chips').replaceChildren(...kinds.map(kind => {
      const figure = element('b', { textContent: '–' });
      const chip = element('button', { type: 'button', className: kind, ariaPressed: false }, icon(kind),
        statuses[kind], figure);
      chip.onclick = () => {
        if (!this.chosen.delete(kind)) this.chosen.add(kind);
        chip.ariaPressed = this.chosen.has(kind);
        this.#list(hub.now());
      };
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
    const list = $('list'), query = $('query');
    list.onscroll = () => this.#paint();
    list.onkeydown = event => {
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
    };
    $('rows').onclick = ({ target }) => this.#choose(target.closest('.row')?.dataset.index);
    query.oninput = () => {
      list.scrollTop = 0;
      this.#active = -1;
      this.#search();
    };
    query.onkeydown = ({ key }) => {
      if (key === 'Enter') this.#choose(0);
      if (key === 'ArrowDown') list.focus();
    };
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
    const elsewhere = this.#found.filter(({ driverId }) => !drivers.has(driverId));
    this.#ids = [...new Map([...byTrip, ...all.filter(fits), ...elsewhere].map(driver => [driver.driverId, driver]))
      .values()];
    const more = this.#view?.more ?? 0, inView = drivers.size + more;
    const words = this.#isCrowded ? `${count(sumOf(this.#cells.cells).all)} in view, counted by cell: zoom in`
      : text ? this.#ids.length ? `${count(this.#ids.length)} found` : 'No driver in view, no id and no trip fits'
      : chosen.size ? `${count(this.#ids.length)} of ${count(inView)}`
        : more ? `${count(drivers.size)} of ${count(inView)}: zoom in for all` : `${count(inView)} in view`;
    setText('shown', words);
    this.#paint(now);
  }

  /** Only rows that can be seen exist. */
  #paint(now = hub.now()) {
    const list = $('list'), first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 2);
    const room = Math.min(this.#ids.length - first, Math.ceil(list.clientHeight / rowHeight) + 4);
    $('rows').style.height = `${this.#ids.length * rowHeight}px`;
    while (this.#rows.length < room) {
      const node = $('row').content.cloneNode(true).firstChild, [svg, words, figures] = node.children;
      const [[name, what], [speed, age]] = [words.children, figures.children];
      this.#rows.push({ node, svg, name, what, speed, age });
      $('rows').append(node);
    }
    this.#rows.forEach((row, at) => {
      row.node.hidden = at >= room;
      if (at < room) this.#fill(row, first + at, now);
    });
    list.setAttribute('aria-activedescendant', this.#rows[this.#active - first]?.node.id ?? '');
  }

  #fill(row, index, now) {
    const driver = this.#ids[index], kind = kindOf(driver), trip = this.tripOf(driver);
    const age = (now - driver.timestamp) / 1000, isStopped = !(driver.speed >= 0.8) || kind === 'offline';
    const { node } = row;
    node.dataset.index = index;
    Object.assign(node, { id: `row-${index}`, ariaSelected: driver.driverId === this.followed,
      ariaSetSize: this.#ids.length, ariaPosInSet: index + 1, className: `row ${kind} ${
        index === this.#active ? 'active' : ''} ${isStopped ? 'stopped' : ''} ${age > greyAge ? 'old' : ''}` });
    node.style.transform = `translateY(${index * rowHeight}px)`;
    turn(row.svg, driver.heading >= 0 ? kind : 'offline', driver.heading);
    setText(row.name, driver.driverId);
    setText(row.what, kind === 'on_trip' && trip ? moves[trip.status] : statuses[kind] ?? kind);
    setText(row.speed, isStopped ? kind === 'offline' ? '' : 'stopped' : `${Math.round(driver.speed * 3.6)} km/h`);
    setText(row.age, age > greyAge ? `last seen ${ago(age)}` : ago(age));
  }

  // MARK: The map

  /** Draws all but the followed one; `isGone`: there is no connection. */
  draw(page, now, followed, isGone) {
    const { drivers, chosen } = this, arrows = this.#arrows;
    this.#markers.snap = reducedMotion.matches;
    if (this.#isCrowded) return this.#drawCounts();
    if (layers.cells) this.#drawCells();
    if (map.zoom >= linesFrom) this.#drawLines(followed);
    const size = this.size(), names = [];
    let visible = 0;
    arrows.clear();
    this.#markers.each(now, (id, latitude, longitude, heading, age) => {
      const driver = drivers.get(id);
      if (!driver || id === followed) return;
      const kind = kindOf(driver);
      if (chosen.size && !chosen.has(kind)) return;
      map.project(latitude, longitude);
      const { px, py } = map;
      if (!map.sees(px, py)) return;
      visible++;
      arrows.add(kind, toneOf(age, isGone), px, py, heading);
      if (names.length <= labelled) names.push([id, px, py + size + 12]);
    });
    this.#visible = visible;
    arrows.draw(page, map.colors, size, strengths, followed === undefined ? 1 : 0.6);
    if (layers.labels && map.zoom >= labelsFrom && visible <= labelled) {
      const taken = [];
      for (const [id, px, py] of names) {
        const half = id.length * 3.5 + 7;   // none covers another one
        if (taken.some(([x, y, other]) => Math.abs(px - x) < half + other && Math.abs(py - y) < labelHeight)) continue;
        taken.push([px, py, half]);
        map.text(id, px, py, map.colors.text, '600 11px', map.colors.plate);
      }
    }
  }

  /** By the zoom, but so that they do not cover each other. */
  size() {
    const { zoom, width, height } = map;
    const wish = Math.max(4, Math.min(15, 7 + (zoom - 12) * 1.8));
    return Math.max(3.2, Math.min(wish, 0.16 * Math.sqrt(width * height / Math.max(1, this.#visible))));
  }

  #drawLines(followed) {
    const path = new Path2D();
    for (const driver of this.drivers.values()) {
      const target = driver.driverId !== followed && targetOf(this.tripOf(driver));
      if (target) path.addPath(map.path([driver, target]));
    }
    map.stroke(path, map.colors.on_trip, 1.2, 0.25, [1, 6]);
  }

  #corners(geohash) {
    const [west, south, east, north] = boxOf(geohash);
    map.project(north, west);
    const { px, py } = map, wide = (xOf(east) - xOf(west)) * map.scale, high = (yOf(south) - yOf(north)) * map.scale;
    return [px, py, wide, high];
  }

  #drawCells() {
    const { muted } = map.colors, path = new Path2D();
    for (const cell of new Set([...this.drivers.values()].map(({ cell }) => cell))) {
      const [px, py, wide, high] = this.#corners(cell);
      path.rect(px, py, wide, high);
      map.text(cell, px + wide / 2, py + 12, muted);
    }
    map.stroke(path, muted, 1);
  }

  #drawCounts() {
    const { colors } = map, shown = kinds.filter(kind => !this.chosen.size || this.chosen.has(kind));
    const sums = [...this.#cells.cells.values()].map(cell => [cell, shown.reduce((sum, kind) => sum + cell[kind], 0)]);
    const most = Math.max(...sums.map(([, sum]) => sum));
    for (const [cell, sum] of sums) {
      const [left, top, wide, high] = this.#corners(cell.cell), px = left + wide / 2, py = top + high / 2;
      if (!sum || !map.sees(px, py)) continue;
      const radius = Math.max(11, Math.min(wide, high, 88) * 0.46 * Math.sqrt(0.25 + 0.75 * sum / most));
      map.fill(disc(px, py, radius), colors.plate);
      let from = -Math.PI / 2;
      for (const kind of shown.filter(kind => cell[kind])) {
        const path = new Path2D();
        path.arc(px, py, radius, from, from += cell[kind] / sum * 2 * Math.PI);
        map.stroke(path, colors[kind], Math.max(2.5, radius * 0.16), 1, [], 'butt');
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
    const places = (await all('find', 'drivers', { limit: 1000 })).filter(({ latitude }) => latitude !== undefined);
    const edge = (pick, axis) => pick(...places.map(place => place[axis]));
    return places.length && [edge(Math.min, 'longitude'), edge(Math.min, 'latitude'), edge(Math.max, 'longitude'),
      edge(Math.max, 'latitude')];
  }
}
