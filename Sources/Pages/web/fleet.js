// The drivers on the map and in the list: a view of what is shown, trips, counts of the whole fleet by status, and
// counts by cell where a view has more drivers than anybody can tell apart.

import { Markers } from './hub.js';
import { Arrows, boxOf, xOf, yOf } from './map.js';
import { $, ago, count, element, icon, isOver, moves, reducedMotion, setText, statuses, targetOf } from './ui.js';

const crowded = 3000, roomy = 2500;        // drivers in view: from one to the other it stays as it is
const moveMs = 500, fadedAge = 12, greyAge = 60;
const rowHeight = 50, labelled = 120, linesFrom = 13.4, labelsFrom = 14.6;
const strengths = [1, 0.5, 0.75];          // fresh, faded, grey
const kinds = Object.keys(statuses);
const world = { west: -180, south: -85, east: 179.999999, north: 85 };

export const kindOf = driver => driver.online === false ? 'offline' : driver.status;
const sumOf = cells => {
  const sum = Object.fromEntries(kinds.map(kind => [kind, 0]));
  for (const cell of cells.values()) for (const kind of kinds) sum[kind] += cell[kind] ?? 0;
  return { ...sum, all: kinds.reduce((total, kind) => total + sum[kind], 0) };
};

export class Fleet {
  trips = new Map();
  chosen = new Set();                      // statuses; none is all
  #hub; #map; #pick; #layers;
  #markers = new Markers(); #arrows = new Arrows(); #known = new Set(); #labels = new Map();
  #view; #shown; #whole; #cells; #moved = 0; #later; #isCrowded = false; #visible = 0; #found = []; #asked = '';
  #order = []; #ids = []; #rows = []; #active = -1; #chips = {}; #collator = new Intl.Collator('en', { numeric: true });

  constructor(hub, map, layers, pick, box) {
    [this.#hub, this.#map, this.#layers, this.#pick] = [hub, map, layers, pick];
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
        const page = await this.#hub.getTrips({ status, limit: 1000, ...(cursor && { cursor }) });
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
    const map = this.#map, box = map.box(), shown = this.#shown;
    const inside = shown && map.zoom < shown.zoom + 1.5 && box.west >= shown.box.west && box.east <= shown.box.east
      && box.south >= shown.box.south && box.north <= shown.box.north;
    if (inside || !map.width) return;
    this.#moved = performance.now();
    this.#shown = { zoom: map.zoom, box: map.box(0.2) };
    if (this.#cells) this.#cells.move(this.#shown.box);
    if (this.#isCrowded) return;
    if (this.#view) return this.#view.move(this.#shown.box);
    this.#view = this.#hub.view(this.#shown.box);
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
    if (!this.#cells && all > crowded && this.#shown) this.#cells = this.#hub.counts(this.#shown.box);
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
        this.#list(this.#hub.now());
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
    this.#list(this.#hub.now());
    if (text) this.#asked = setTimeout(async () => {
      const [page, trip] = await Promise.all([
        this.#hub.find({ search: text, limit: 50 }).catch(() => ({ drivers: [] })),
        this.#hub.getTrip(text).catch(() => undefined)]);
      if ($('query').value.trim() !== text) return;
      const driver = trip?.driverId && await this.#hub.getDriver(trip.driverId).catch(() => undefined);
      this.#found = [...driver ? [{ ...driver, tripId: trip.tripId }] : [], ...page.drivers];
      this.#list(this.#hub.now());
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
      : text || chosen.size ? `${count(this.#ids.length)} of ${count(inView)}`
        : more ? `${count(drivers.size)} of ${count(inView)}: zoom in for all` : `${count(inView)} in view`;
    setText($('shown'), words);
    this.#paint(now);
  }

  /** Only rows that can be seen exist. */
  #paint(now = this.#hub.now()) {
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
    const map = this.#map, { drivers, chosen } = this, arrows = this.#arrows, { width, height } = map;
    this.#markers.snap = reducedMotion.matches;
    if (this.#isCrowded) return this.#drawCounts(page);
    if (this.#layers.cells) this.#drawCells(page);
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
    if (this.#layers.labels && map.zoom >= labelsFrom && visible <= labelled) {
      for (let at = 0; at < names.length; at += 3) {
        this.#label(page, names[at], names[at + 1], names[at + 2] + size + 12);
      }
    }
  }

  /** By the zoom, but so that they do not cover each other. */
  size() {
    const { zoom, width, height } = this.#map;
    const wish = Math.max(4, Math.min(15, 7 + (zoom - 12) * 1.8));
    return Math.max(3.2, Math.min(wish, 0.16 * Math.sqrt(width * height / Math.max(1, this.#visible))));
  }

  /** Texts are drawn once, to pictures: a hundred of them in each frame cost too much. */
  #label(page, id, px, py) {
    const { colors } = this.#map, ratio = Math.min(devicePixelRatio || 1, 2);
    let label = this.#labels.get(id);
    if (label?.color !== colors.text) {
      const canvas = element('canvas'), pen = canvas.getContext('2d'), font = '600 11px system-ui, sans-serif';
      pen.font = font;
      const wide = Math.ceil(pen.measureText(id).width) + 12;
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
    page.drawImage(label.canvas, Math.round(px - label.wide / 2), Math.round(py - 9), label.wide, 17);
  }

  #drawLines(page, followed) {
    const map = this.#map;
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
    const map = this.#map, [west, south, east, north] = boxOf(geohash);
    map.project(north, west);
    const { px, py } = map, wide = (xOf(east) - xOf(west)) * map.scale, high = (yOf(south) - yOf(north)) * map.scale;
    return [px, py, wide, high];
  }

  #drawCells(page) {
    const cells = new Set([...this.drivers.values()].map(({ cell }) => cell));
    page.strokeStyle = this.#map.colors.muted;
    page.lineWidth = 1;
    for (const cell of cells) {
      const [px, py, wide, high] = this.#corners(cell);
      page.strokeRect(px, py, wide, high);
      this.#map.text(cell, px + wide / 2, py + 12, this.#map.colors.muted);
    }
  }

  #drawCounts(page) {
    const { colors, width, height } = this.#map;
    const kindsShown = kinds.filter(kind => !this.chosen.size || this.chosen.has(kind));
    const all = [...this.#cells.cells.values()].map(cell =>
      ({ cell, sum: kindsShown.reduce((sum, kind) => sum + (cell[kind] ?? 0), 0) })).filter(({ sum }) => sum);
    const most = Math.max(...all.map(({ sum }) => sum), 1);
    for (const { cell, sum } of all) {
      const [left, top, wide, high] = this.#corners(cell.cell), px = left + wide / 2, py = top + high / 2;
      if (px < -50 || py < -50 || px > width + 50 || py > height + 50) continue;
      const radius = Math.max(11, Math.min(wide, high, 88) * 0.46 * Math.sqrt(0.25 + 0.75 * sum / most));
      this.#map.circle(px, py, radius, colors.plate);
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
      if (radius > 12) this.#map.text(count(sum), px, py, colors.text, `700 ${radius > 24 ? 14 : 11}px`);
    }
  }

  /** The driver nearest to a pixel. */
  at(px, py) {
    let best, least = 20;
    this.#markers.each(this.#hub.now(), (id, latitude, longitude) => {
      this.#map.project(latitude, longitude);
      const distance = Math.hypot(this.#map.px - px, this.#map.py - py);
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
    const places = cells.length ? [] : (await this.#hub.find({ limit: 1000 })).drivers;
    const known = places.filter(({ latitude }) => latitude !== undefined);
    const all = [...cells, ...known.map(({ latitude, longitude }) => [longitude, latitude, longitude, latitude])];
    if (!all.length) return undefined;
    const edge = (side, pick) => all.reduce((found, box) => pick(found, box[side]), all[0][side]);
    return [edge(0, Math.min), edge(1, Math.min), edge(2, Math.max), edge(3, Math.max)];
  }
}
