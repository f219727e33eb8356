// The live map: fleet, followed driver, the hub's figures.

import { Hub, Marker, Markers } from './hub.js';
import { $, Arrows, LiveMap, ago, askAbout, boxOf, clock, controls, count, decode, disc, drawLine, element, figure,
  followRelease, hubURL, isOver, isPhone, moves, outlines, reducedMotion, say, setText, sheet, showEta, showSteps,
  statuses, steps, takeToken, targetOf, xOf, yOf } from './map.js';

const fencesMs = 5000, unseenSeconds = 60, offlineSeconds = 3600, tokenKey = 'token', most = 5000;

// MARK: Shared

const layers = { track: true, raw: false, accuracy: true, fences: true, cells: false, labels: true };
const map = new LiveMap();
let token = takeToken(sessionStorage, tokenKey), given;
const about = await askAbout();
const isDev = !token && about.devAuth;
$('dev').hidden = !isDev;
const whys = { connect: 'This hub wants to know who looks.', refused: 'The hub did not take the token.',
  expiring: 'The token ends soon.' };

function askToken(why) {
  setText('token-why', why);
  $('token').hidden = false;
}
/** One that is there is tried first. */
function tokenFor({ reason, signal }) {
  if (reason === 'connect' && token) return token;
  askToken(whys[reason]);
  if (reason !== 'expiring') $('token-text').focus();
  return new Promise((resolve, reject) => {
    given = resolve;
    signal.onabort = () => {
      given = undefined;
      reject(new Error('called off'));
    };
  });
}
$('token').onsubmit = event => {
  event.preventDefault();
  token = $('token-text').value.trim();
  if (!token) return;
  sessionStorage.setItem(tokenKey, token);
  $('token-text').value = '';
  $('token').hidden = true;
  if (!given) return location.reload();    // nobody waits for it
  given(token);
  given = undefined;
};

const id = `map-${Math.random()}`;
const hub = new Hub(hubURL(), isDev ? { dev: { role: 'ops', id } } : { token: tokenFor });

/** A list's pages, up to `most`. */
async function all(ask, name, question) {
  const found = [];
  let cursor;
  do {
    const page = await hub[ask]({ ...question, cursor });
    found.push(...page[name]);
    cursor = page.next;
  } while (cursor && found.length < most);
  return found;
}

const crowded = 3000, roomy = 2500;        // drivers in view, and back
const widest = 300;                        // square degrees, as 256 cells
const moveMs = 500, searchMs = 5000, fadedAge = 12, greyAge = 60;
const rowHeight = 50, labelled = 60, labelHeight = 18, linesFrom = 13.4, labelsFrom = 14.6;
const strengths = [1, 0.5, 0.75];
const kinds = Object.keys(statuses);

const isGone = () => hub.state.is !== 'live';
const ageOf = ({ age, published }, now) => age + (now - published) / 1000;
const kindOf = driver => driver.online === false ? 'offline' : driver.status;
const sumOf = cells => {
  const sum = { all: 0 };
  for (const kind of kinds) {
    sum[kind] = 0;
    for (const cell of cells.values()) sum[kind] += cell[kind];
    sum.all += sum[kind];
  }
  return sum;
};

const isInView = ({ latitude, longitude }) => {
  map.project(latitude, longitude);
  return map.sees(map.px, map.py, 0);
};
const circle = radius => `M${radius} 0a${radius} ${radius} 0 1 0 0 .01z`;
function turn(svg, kind, heading) {
  const rings = heading >= 0 && outlines[kind], dot = kind === 'on_trip' ? circle(2) : '';
  svg.firstElementChild.setAttribute('d', rings
    ? rings.map(ring => `M${ring.map(([x, y]) => [9 * x, -9 * y])}z`).join('') + dot : circle(6) + circle(3));
  Object.assign(svg.style, { color: `var(--${kind})`, transform: `rotate(${rings ? Math.round(heading) : 0}deg)` });
}
/** How fresh: 0, 1 faded, 2 grey. */
const toneOf = age => isGone() || age > greyAge ? 2 : age > fadedAge ? 1 : 0;

class Fleet {
  trips = new Map();
  chosen = new Set();                      // statuses; none is all
  #pick;
  #markers = new Markers(); #arrows = new Arrows(); #known = new Set();
  #sum; #view; #shown; #whole; #cells; #moved = 0; #later; #isCrowded = false; #visible = 0; #found = []; #asking;
  #asked = 0; #order = []; #ids = []; #rows = []; #active = -1; #chips = {};
  #ended; #collator = new Intl.Collator('en', { numeric: true });

  constructor(pick) {
    this.#pick = pick;
    this.#makeChips();
    this.#makeList();
    this.#whole = hub.counts({ west: -180, south: -90, east: 179.999999, north: 90 });
    this.#whole.on('update', () => {
      this.#sum = sumOf(this.#whole.cells);
      this.#count();
    });
    const trips = hub.trips();
    trips.on('update', trip => this.#trip(trip));
    trips.on('snapshot', () => this.#loadTrips());
  }

  #shows(driver) { return !this.chosen.size || this.chosen.has(kindOf(driver)); }
  get drivers() { return this.#view?.drivers ?? new Map(); }
  driver(id) { return this.drivers.get(id); }
  tripOf(driver) { return driver?.tripId && this.trips.get(driver.tripId); }

  // MARK: Trips

  #trip(trip) {
    const { tripId } = trip;
    if (!isOver(trip)) return this.trips.set(tripId, { ...this.trips.get(tripId), ...trip });
    this.trips.delete(tripId);
    this.#ended?.add(tripId);
  }
  async #loadTrips() {
    const before = this.trips, began = this.trips = new Map(), ended = this.#ended = new Set();   // meanwhile
    const found = await all('getTrips', 'trips', { status: `${steps}` }).catch(() => {
      setTimeout(() => this.#loadTrips(), searchMs);
      return [...before.values()];
    });
    for (const trip of found) if (!began.has(trip.tripId) && !ended.has(trip.tripId)) began.set(trip.tripId, trip);
    if (ended === this.#ended) this.#ended = undefined;
  }

  // MARK: Views

  /** Follows the map, at most twice a second. */
  look() {
    const wait = this.#moved + moveMs - performance.now();
    clearTimeout(this.#later);
    if (wait > 0) this.#later = setTimeout(() => this.look(), wait); else this.#look();
  }

  #look() {
    const box = map.box(), shown = this.#shown;
    const inside = shown && map.zoom < shown.zoom + 1.5 && box.west >= shown.west && box.east <= shown.east
      && box.south >= shown.south && box.north <= shown.north;
    if (inside || !map.width) return;
    this.#moved = performance.now();
    const wider = this.#shown = { zoom: map.zoom, ...map.box(0.2) };
    wider.area = (wider.north - wider.south) * ((wider.east - wider.west + 360) % 360);
    wider.precision = Math.max(3, Math.floor(Math.log2(2e6 / wider.area) / 5));   // up to 31 cells fill it
    this.#cells?.move(wider);
    this.#view?.move(wider, wider);
    this.#crowd();
  }

  /** Too many, or too wide: counted by cell. */
  #crowd() {
    const box = this.#shown, isWide = box.area > widest, all = this.#sum?.all;
    if (isWide || all > crowded) this.#cells ??= hub.counts(box);
    else if (all <= roomy) {
      this.#cells?.close();
      this.#cells = undefined;
    }
    this.#isCrowded = isWide || (this.#cells?.cells.size ? this.#counted : all) > (this.#isCrowded ? roomy : crowded);
    if (this.#isCrowded) {
      this.#view?.close();
      this.#view = undefined;
    } else if (!this.#view || this.#view.state.is === 'ended') {
      this.#view = hub.view(box, box);
      this.#view.on('update', update => {
        for (const driver of update.drivers) {
          this.#markers.push(driver.driverId, driver);
          this.#known.add(driver.driverId);
        }
        if (!this.#ids.length) this.#list(hub.now());
      });
    }
  }

  /** In cells that are seen. */
  get #counted() {
    return sumOf([...this.#cells.cells.values()].filter(({ cell }) => {
      const [px, py, wide, high] = map.rect(boxOf(cell));
      return map.sees(px + wide / 2, py + high / 2);
    })).all;
  }

  /** Nobody looks. */
  rest() {
    this.#cells?.close();
    this.#view?.close();
    this.#isCrowded = this.#cells = this.#view = this.#shown = undefined;
  }

  // MARK: Each second

  tick(now) {
    const { drivers } = this;
    for (const id of this.#known) {
      if (drivers.has(id)) continue;
      this.#known.delete(id);
      this.#markers.drop(id);
    }
    if (this.#shown) this.#crowd(); else this.#look();
    if (now > this.#asked + searchMs) this.#ask();
    this.#count();
    this.#list(now);
  }

  #makeChips() {
    $('chips').replaceChildren(...kinds.map(kind => {
      const figure = element('b', {}, '–');
      const svg = $('badge').cloneNode(true);
      svg.id = '';
      turn(svg, kind, 0);
      const chip = element('button', { className: kind, ariaPressed: false }, svg, statuses[kind],
        figure);
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
    for (const kind of kinds) setText(this.#chips[kind], figure(isGone() || this.#sum?.[kind]));
  }

  // MARK: The list

  #makeList() {
    const list = $('list'), query = $('query');
    list.onscroll = () => this.#paint();
    list.onkeydown = event => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
      if (step) {
        this.#active = Math.max(0, Math.min(this.#ids.length - 1, this.#active + step));
        const top = this.#active * rowHeight;
        list.scrollTop = Math.min(top, Math.max(list.scrollTop, top + rowHeight - list.clientHeight));
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
      if (key === 'Enter') this.#ask(() => this.#choose(0));
      if (key === 'ArrowDown') list.focus();
    };
  }
  #choose(index) {
    const entry = this.#ids[index];
    if (entry) this.#pick(entry.driverId, entry);
  }

  /** At once in view, else by the hub. */
  #search() {
    clearTimeout(this.#asking);
    this.#found = [];
    this.#list(hub.now());
    this.#asking = setTimeout(() => this.#ask(), 200);
  }
  async #ask(then) {
    const text = $('query').value.trim(), trip = this.trips.get(text);
    if (!text || isGone()) return;
    this.#asked = hub.now();
    const [page, driver] = await Promise.all([
      hub.find({ search: text, limit: 500 }).catch(() => 0),
      trip?.driverId && hub.getDriver(trip.driverId).catch(() => 0)]);
    if ($('query').value.trim() !== text) return;
    if (page) this.#found = [...driver ? [{ ...driver, tripId: text }] : [], ...page.drivers];
    this.#list(hub.now());
    then?.();
  }

  #list(now) {
    const text = $('query').value.trim().toLowerCase(), { drivers, chosen } = this, active = this.#ids[this.#active];
    if (this.#order.length !== drivers.size || this.#order.some(id => !drivers.has(id))) {
      this.#order = [...drivers.keys()].sort(this.#collator.compare);
    }
    const fits = driver => this.#shows(driver)
      && [driver.driverId, driver.tripId].some(id => id?.toLowerCase().includes(text));
    const known = this.#order.map(id => drivers.get(id)), all = text ? known : known.filter(isInView);
    const isIt = driver => [driver.driverId, driver.tripId].some(id => id?.toLowerCase() === text);
    const elsewhere = this.#found.filter(({ driverId }) => !drivers.has(driverId));
    this.#ids = [...new Map([...this.#found.filter(isIt), ...all.filter(isIt), ...all.filter(fits), ...elsewhere]
      .map(driver => [driver.driverId, driver])).values()];
    this.#active = this.#ids.findIndex(({ driverId }) => driverId === active?.driverId);
    const more = this.#view?.more ?? 0, inView = all.length + more;
    const rows = count(this.#ids.length);
    $('shown').ariaLive = text ? 'polite' : 'off';
    setText('shown', isGone() ? ''
      : this.#isCrowded ? `${count(this.#counted)} in view, counted by cell: zoom in`
      : text ? `${rows} found` : chosen.size ? `${rows} of ${count(inView)}`
        : more ? `${rows} of ${count(inView)}: zoom in for all` : `${rows} in view`);
    this.#paint(now);
  }

  /** Seen rows only. */
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
    const age = ageOf(driver, now), isStopped = !(driver.speed >= 0.8) || kind === 'offline';
    const { node } = row;
    node.dataset.index = index;
    Object.assign(node, { id: `row-${index}`, ariaSelected: driver.driverId === this.followed,
      ariaSetSize: this.#ids.length, ariaPosInSet: index + 1,
      className: `row ${index === this.#active ? 'active' : ''} ${isStopped ? 'stopped' : ''} ${
        toneOf(age) > 1 ? 'old' : ''}` });
    node.style.transform = `translateY(${index * rowHeight}px)`;
    turn(row.svg, kind, driver.heading);
    setText(row.name, driver.driverId);
    setText(row.what, kind === 'on_trip' && trip ? moves[trip.status] : statuses[kind] ?? kind);
    setText(row.speed, isStopped ? kind === 'offline' ? '' : 'stopped' : `${Math.round(driver.speed * 3.6)} km/h`);
    setText(row.age, age > greyAge ? `last seen ${ago(age)}` : ago(age));
  }

  // MARK: The map

  draw(page, now, followed) {
    const { drivers } = this, arrows = this.#arrows;
    this.#markers.snap = reducedMotion.matches;
    if (this.#isCrowded) return this.#drawCounts();
    if (layers.cells) this.#drawCells();
    if (map.zoom >= linesFrom) this.#drawLines(followed);
    const size = this.size(), names = [];
    let visible = 0;
    arrows.clear();
    this.#markers.each(now, (id, latitude, longitude, heading, age) => {
      const driver = drivers.get(id);
      if (!driver || id === followed || !this.#shows(driver)) return;
      map.project(latitude, longitude);
      const { px, py } = map;
      if (!map.sees(px, py)) return;
      visible++;
      arrows.add(kindOf(driver), toneOf(age), px, py, heading);
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

  /** By the zoom, but none covers another. */
  size() {
    const { zoom, width, height } = map;
    const wish = Math.max(4, Math.min(15, 7 + (zoom - 12) * 1.8));
    return Math.max(3.2, Math.min(wish, 0.16 * Math.sqrt(width * height / Math.max(1, this.#visible))));
  }

  #drawLines(followed) {
    const path = new Path2D();
    for (const driver of this.drivers.values()) {
      const target = this.#shows(driver) && targetOf(this.tripOf(driver));
      if (!target || driver.driverId === followed) continue;
      map.project(driver.latitude, driver.longitude);
      path.moveTo(map.px, map.py);
      map.project(target.latitude, target.longitude);
      path.lineTo(map.px, map.py);
    }
    map.stroke(path, map.colors.on_trip, 1.2, 0.25, [1, 6]);
  }

  #drawCells() {
    const { muted, plate } = map.colors, path = new Path2D();
    for (const cell of new Set([...this.drivers.values()].map(({ cell }) => cell))) {
      const [px, py, wide, high] = map.rect(boxOf(cell));
      path.rect(px, py, wide, high);
      map.text(cell, px + wide / 2, py + 12, muted, undefined, plate);
    }
    map.stroke(path, muted, 1);
  }

  #drawCounts() {
    const { colors } = map, shown = kinds.filter(kind => !this.chosen.size || this.chosen.has(kind));
    const sums = [...this.#cells.cells.values()].map(cell => [cell, shown.reduce((sum, kind) => sum + cell[kind], 0)]);
    const most = Math.max(...sums.map(([, sum]) => sum));
    for (const [cell, sum] of sums) {
      const [left, top, wide, high] = map.rect(boxOf(cell.cell)), px = left + wide / 2, py = top + high / 2;
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

  inside(path) {
    const ids = [];
    this.#markers.each(hub.now(), (id, latitude, longitude) => {
      map.project(latitude, longitude);
      if (isIn(path, map.px, map.py)) ids.push(id);
    });
    return ids.sort().slice(0, labelled).join(', ');
  }

  /** The driver nearest to a pixel. */
  at(px, py) {
    let best, least = 20;
    this.#markers.each(hub.now(), (id, latitude, longitude) => {
      map.project(latitude, longitude);
      const distance = Math.hypot(map.px - px, map.py - py), driver = this.driver(id);
      if (distance >= least || !driver || !this.#shows(driver)) return;
      [best, least] = [id, distance];
    });
    return best;
  }
}

const paceSeconds = 90, keptPlaces = 20_000, keptFixes = 1_000, meanOf = 60, closeZoom = 16, flightMs = 450;
const winds = 'N NE E SE S SW W NW'.split(' ');
const facts = ['Speed', 'Heading', 'Position', 'Accuracy', 'Confidence', 'Raw − shown'];

class Follow {
  id; camera = false;
  #fleet; #driverFeed; #tripFeed; #tripId; #trip; #eta; #position; #marker; #arrows = new Arrows();
  #track = []; #raw = []; #route; #facts; #flight; #changed;

  constructor(fleet, changed) {
    [this.#fleet, this.#changed] = [fleet, changed];
    this.#facts = facts.map(name => {
      const figure = element('span'), small = element('small');
      $('facts').append(element('div', {}, element('dt', {}, name), element('dd', {}, figure, small)));
      return [figure, small];
    });
    $('share').onclick = () => this.#share();
  }

  // MARK: Who

  /** `seen`: what a search knows. */
  begin(id, seen) {
    if (id !== this.id) {
      this.end();
      this.id = this.#fleet.followed = id;
      this.#marker = new Marker();
      const driver = this.#fleet.driver(id) ?? seen;
      if (driver?.latitude !== undefined) this.#place(driver);
      this.#listen();
    }
    this.recentre();
    this.card();
  }

  recentre() {
    this.camera = true;
    this.#changed();
    this.#flight = { nearer: Math.max(0, closeZoom - map.zoom), rest: 1, since: performance.now() };
  }

  /** The camera stays. */
  letGo() {
    if (!this.camera) return;
    this.camera = false;
    this.card();
  }

  end() {
    if (this.id === undefined) return false;
    this.#driverFeed.close();
    this.#follow();
    this.id = this.#fleet.followed = this.#position = undefined;
    [this.#track, this.#raw] = [[], []];
    this.camera = false;
    this.#changed();
    return true;
  }

  #listen() {
    const { id } = this, feed = this.#driverFeed = hub.driver(id, { raw: true });
    feed.on('position', position => this.#place(position));
    feed.on('snapshot', ({ position }) => position && this.#place(position));
    feed.on('raw', fix => {
      this.#raw.push(fix);
      if (this.#raw.length > keptFixes) this.#raw.shift();
    });
    feed.on('notice', ({ kind }) => {
      if (/^driver_o/.test(kind) && this.#position) this.#position.online = kind === 'driver_online';
    });
    feed.on('ended', reason => reason !== 'asked' && say(`${id}: ${reason}`));
  }

  // MARK: What comes

  #place(position) {
    const { latitude, longitude, timestamp, speed } = position, last = this.#track.at(-1)?.[2] ?? 0;
    const { status, vehicleType, online } = this.#position ?? {};
    this.#position = { status, vehicleType, ...timestamp <= last && { online }, ...position };
    this.#marker.push(position);
    if (timestamp > last) this.#track.push([latitude, longitude, timestamp, speed]);
    if (this.#track.length > keptPlaces) this.#track.splice(0, keptPlaces / 10);
    this.#follow(position.tripId);
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
      this.load();
      // Its ends and route come on asking.
      hub.getTrip(tripId).then(whole => feed === this.#tripFeed && take(whole), () => {});
    });
    feed.on('update', take);
    feed.on('eta', eta => { this.#eta = eta; });
    feed.on('ended', () => feed === this.#tripFeed && this.#forgetTrip());
  }

  /** The track so far, with what a break left out. */
  async load() {
    const { id } = this, tripId = this.#tripId;
    const past = tripId ? await hub.track(tripId).then(placesOf, () => []) : [], last = past.at(-1)?.[2] ?? 0;
    if (id !== this.id || tripId !== this.#tripId) return;
    this.#track = [...past, ...this.#track.filter(([, , time]) => time > last)];
  }

  async #share() {
    const tripId = this.#tripId;
    $('share').disabled = true;
    try {
      const { url } = await hub.share(tripId);
      if (tripId !== this.#tripId) return;
      setText('shared', url);
      $('shared').hidden = false;
      await navigator.clipboard?.writeText(url).then(() => say('The link was copied.'), () => {});
    } catch (error) {
      say(`The trip was not shared: ${error.message}`);
    } finally {
      $('share').disabled = false;
    }
  }

  // MARK: The card

  card() {
    const shown = this.id !== undefined, position = this.#position ?? {}, now = hub.now();
    $('follow').hidden = !shown;
    $('recentre').hidden = !shown || this.camera;
    if (!shown) return;
    const driver = this.#fleet.driver(this.id) ?? position, kind = kindOf(driver) ?? 'offline', trip = this.#trip;
    const age = ageOf(position, now);
    position.status = driver.status;
    setText('name', this.id);
    setText('what', [statuses[kind] ?? kind, this.#tripId, driver.vehicleType].filter(Boolean).join(' · '));
    turn($('badge'), kind, position.heading);
    $('trip').hidden = isOver(trip);
    if (trip) {
      showSteps(trip.status);
      setText('step', moves[trip.status]);
      setText('since', `since ${clock(trip.timestamp)}`);
    }
    showEta(this.#eta, trip, now, age);
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
    this.#drawPace(position.timestamp + age * 1000);
  }

  #drawPace(now) {
    const values = [];
    // The hub's track has no speeds: the middle one of five steps.
    const steps = this.#track.slice(-2 * paceSeconds).map((place, index, places) => {
      const before = places[index - 1] ?? place;
      return [place[2], place[3], metersBetween(before, place) / (place[2] - before[2]) * 1000];
    });
    steps.forEach(([time, known], index) => {
      const at = paceSeconds - 1 - Math.floor((now - time) / 1000);
      const near = steps.slice(Math.max(0, index - 2), index + 3).map(step => step[2]).sort((a, b) => a - b);
      if (at >= 0) values[Math.min(at, paceSeconds - 1)] = (known ?? near[near.length >> 1]) * 3.6;
    });
    for (let at = 1; at < values.length; at++) values[at] ??= values[at - 1];
    const [, most] = drawLine($('pace-line'), values, paceSeconds, map.colors.track);
    setText('pace-max', most >= 0 ? `max ${Math.round(most)} km/h` : '');
  }

  #meanOffset() {
    const offsets = this.#raw.slice(-meanOf).map(({ offset }) => offset).filter(Number.isFinite);
    return sum(offsets) / offsets.length;
  }

  // MARK: The map

  /** Moves the camera; gives where the driver is drawn. */
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
    const rest = (1 - part) ** 2, near = 1 - rest / flight.rest;
    map.show(map.x + (x - map.x) * near, map.y + (y - map.y) * near, map.zoom + flight.nearer * (flight.rest - rest));
    flight.rest = rest;
    if (!rest) this.#flight = undefined;
    return place;
  }

  draw(page, place) {
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
    const color = isGone() ? colors.offline : colors[kind];
    if (layers.accuracy && position.accuracy) {
      const circle = disc(px, py, Math.max(4, position.accuracy * map.pixels(place.latitude)));
      map.fill(circle, color, 0.2);
      map.stroke(circle, color, 1.2, 0.6);
    }
    if (!isGone() && !reducedMotion.matches) map.pulse(px, py, size, color);
    this.#arrows.clear();
    this.#arrows.add(kind, toneOf(place.age), px, py, place.heading);
    this.#arrows.draw(page, colors, size, [1, 0.6, 1]);
    map.text(this.id, px, py + size + 16, colors.onAccent, '700 12px', colors.accent);
  }

  /** Dots, hollow if refused, with a line to where it was shown. */
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
    for (const [reason, px, py] of reasons.slice(-8)) map.text(reason, px, py, colors.bad, '600 11px', colors.plate);
  }
}

/** For short ways. */
const metersBetween = ([latitude, longitude], [north, east]) => 111_195 * Math.hypot(latitude - north,
  (longitude - east) * Math.cos(latitude * Math.PI / 180));

/** [latitude, longitude, time] of a hub's track. */
function placesOf({ geometry, properties }) {
  let places = [geometry?.coordinates];
  while (places[0]?.[0]?.length) places = places.flat();
  return [properties.times].flat(2).map((time, at) => [places[at][1], places[at][0], time]);
}

// MARK: - The hub's figures

const room = 600;     // seconds
const sum = counts => Object.values(counts ?? {}).reduce((total, value) => total + value, 0);
const percent = (s, before) => (s.cpuSeconds - before.cpuSeconds) / (s.timestamp - before.timestamp) * 1e5;
const ms = seconds => seconds * 1000 || NaN;   // null: nothing was delivered

/** What is wrong with a hub in a second, if anything. */
const illness = ({ drops, errors, journalLag, p99 }) => errors.storage_full ? 'hub full'
  : errors.internal ? 'hub faulty'
  : journalLag > 1 ? 'disk slow' : p99 > 0.5 ? 'hub slow' : sum(drops) ? 'hub strained' : '';
const illSeconds = 10, silentMs = 4000;

/** Name, unit, colour, value, meaning, what is beside. */
const readings = [
  ['Fixes in', '/s', 'available', s => s.fixes, 'Positions that drivers sent.'],
  ['Deliveries', '/s', 'on_trip', s => s.deliveries, 'Positions and events that riders and maps got.'],
  ['Latency p50', 'ms', 'on_trip', s => ms(s.p50), 'From a fix to its delivery: half took less.'],
  ['Latency p99', 'ms', 'unavailable', s => ms(s.p99), 'From a fix to its delivery: 99 % took less.'],
  ['Sessions', '', 'background', s => sum(s.sessions), 'Who is connected now'],
  ['Memory', 'MB', 'background', s => s.residentBytes / 1e6, 'Of the hub; 100 % CPU is one core.',
    (s, before) => before ? `CPU ${figure(percent(s, before))} %` : ''],
  ['Drops, errors', '/s', 'raw', s => sum(s.drops) + sum(s.errors), 'In ten minutes',
    (s, before, health) => health],
];
const each = counts => Object.entries(counts).map(([name, value]) => `${count(value)} ${name.replaceAll('_', ' ')}`)
  .join(', ') || 'none';
const details = {
  Sessions: (faults, last) => `: ${each(last?.sessions ?? {})}.`,
  'Drops, errors'(faults) {
    const all = {};
    for (const second of faults) for (const name in second) all[name] = (all[name] ?? 0) + second[name];
    return `: ${each(all)}.`;
  },
};

class Tiles {
  /** By reading and second; by second. */
  #values = readings.map(() => []); #faults = []; #ills = []; #last; #before; #nodes; #open = -1;

  constructor() {
    this.#nodes = readings.map(([name, unit, , , meaning], index) => {
      const value = element('span', {}, '–'), beside = element('i'), line = element('canvas');
      const button = element('button', { className: 'tile', title: meaning }, element('span', {}, name),
        beside, element('b', {}, value, element('small', {}, unit)), line);
      button.onclick = () => this.#enlarge(this.#open === index ? -1 : index);
      $('tiles').append(button);
      return { button, value, beside, line };
    });
    $('chart-end').onclick = () => this.close();
    const feed = hub.stats();
    feed.on('snapshot', ({ history = [] }) => {
      for (const list of [...this.#values, this.#faults]) list.length = 0;
      this.#take(history);
    });
    feed.on('stats', second => this.#take([second]));
  }
  #take(seconds) {
    [this.#before, this.#last] = [this.#last, ...seconds].slice(-2);
    this.#ills = [...this.#ills, ...seconds.map(illness)].slice(-illSeconds);
    for (const second of seconds) {
      readings.forEach(([, , , of], index) => this.#values[index].push(of(second)));
      const faults = { ...second.drops, ...second.errors };
      this.#faults.push(sum(faults) ? faults : null);
      if (this.#faults.length > room) for (const list of [...this.#values, this.#faults]) list.shift();
    }
  }

  /** Whether one was open. */
  close() {
    const isOpen = this.#open >= 0;
    this.#enlarge(-1);
    return isOpen;
  }

  #enlarge(index) {
    if (index < 0 && this.#open >= 0) this.#nodes[this.#open].button.focus();
    this.#open = index;
    $('chart').hidden = index < 0;
    this.draw();
  }

  draw() {
    const before = this.#before, span = Math.max(60, this.#faults.length);
    const isSilent = isGone() || !(hub.now() - this.#last?.timestamp < silentMs);
    const last = !isSilent && this.#last;
    const ill = last ? this.#ills.findLast(Boolean) : this.#last ? 'hub silent' : '';
    $('tiles').classList.toggle('ill', !!ill);
    readings.forEach(([name, unit, color, valueOf, meaning, besideOf], index) => {
      const { value, beside, line } = this.#nodes[index];
      const text = last ? figure(valueOf(last)) : '–';
      setText(value, text);
      if (besideOf) setText(beside, besideOf(last || {}, before, ill ?? 'hub well'));
      const values = this.#values[index], ink = map.colors[color];
      drawLine(line, values, span, ink, 10);
      if (index !== this.#open) return;
      const [low, high] = drawLine($('chart-line'), values, span, ink);
      setText('chart-value', `${text} ${unit}`);
      setText('chart-title', name);
      setText('chart-since', ago(span));
      setText('chart-meaning', meaning + (details[name]?.(this.#faults, last) ?? ''));
      setText('chart-range', `lowest ${figure(low)}, highest ${figure(high)} ${unit}`);
    });
  }
}

// MARK: - The page

let isDirty = true, shownFences = [], loadedFences = -Infinity;
const fleet = new Fleet(pick), tiles = new Tiles();
const follow = new Follow(fleet, isPlace => {
  isDirty = true;
  if (isPlace) return;
  follow.card();
  cover();
});

// MARK: The map

map.moved = hand => {
  isDirty = true;
  if (hand === 'pan') follow.letGo();
  fleet.look();
  map.showScale();
};
map.picked = (px, py) => {
  const id = fleet.at(px, py), fence = layers.fences && shownFences.find(({ path }) => isIn(path, px, py));
  if (id !== undefined) pick(id); else if (fence) say(`${fence.name}: ${fleet.inside(fence.path) || 'none in view'}`);
};

function cover() {
  const card = $('follow').hidden ? $('fleet') : $('follow');
  map.beside(isPhone() ? { left: 0, right: 50, top: 70, bottom: card.offsetHeight }
    : { left: 310, right: $('follow').hidden ? 50 : 336, top: 0, bottom: 112 });
}

async function showAll() {
  const drivers = await all('find', 'drivers', { limit: 1000 }).catch(() => []);
  follow.letGo();
  map.fit(drivers.filter(({ latitude, online, age }) => latitude >= -90 && (online || age < offlineSeconds)),
    about.map?.box);
}

function pick(id, seen) {
  follow.begin(id, seen);
  if (isPhone()) $('list').blur();
}

for (const name in layers) {
  const input = element('input', { type: 'checkbox', role: 'switch', id: name, checked: layers[name] });
  input.onchange = () => {
    layers[name] = input.checked;
    isDirty = true;
  };
  $('switches').append(element('label', { className: `switch ${name}` }, name, input));
}

async function loadFences() {
  if (isGone() || !(performance.now() - loadedFences > fencesMs) || !layers.fences || document.hidden) return;
  loadedFences = NaN;   // until they are there
  try {
    shownFences = (await all('fences', 'fences', { shape: 'full', limit: 500 })).map(outlined);
  } catch (error) {
    if (!isGone()) say(`Fences: ${error.message}`);
  }
  loadedFences = performance.now();
}
/** Its rings and way of [latitude, longitude]. */
function outlined(fence) {
  const { type, coordinates = [] } = fence.polygon?.geometry ?? fence.polygon ?? {}, { route } = fence.corridor ?? {};
  const rings = [coordinates].flat(type === 'MultiPolygon' ? 2 : 1)
    .map(ring => ring.map(([longitude, latitude]) => [latitude, longitude]));
  const way = typeof route === 'string' ? decode(route) : route;
  return { ...fence, name: fence.title ?? fence.fenceId, rings, way };
}

const probe = element('canvas').getContext('2d');
const isIn = (path, px, py) => path && probe.isPointInPath(path, px, py, 'evenodd');

/** Gives what is written above all. */
function drawFences() {
  const { fence: color } = map.colors;
  return shownFences.map(fence => {
    const { circle, corridor, rings, way, inside } = fence;
    let top = [0, Infinity], path = new Path2D();
    const lift = y => { if (y < top[1]) top = [map.px, y]; };
    if (circle) {
      map.project(circle.latitude, circle.longitude);
      const radius = circle.radius * map.pixels(circle.latitude);
      path = disc(map.px, map.py, radius);
      lift(map.py - radius);
    }
    for (const ring of way ? [way] : rings) path.addPath(map.path(ring, lift));
    if (way) map.stroke(path, color, corridor.width * map.pixels(way[0].latitude ?? way[0][0]), 0.16);
    else {
      map.fill(path, color, 0.13, 'evenodd');
      map.stroke(path, color, 1.4, 0.9, [5, 4]);
    }
    fence.path = !way && path;
    return [`${fence.name}: ${inside ?? '–'} inside`, top[0], top[1] - 13];
  });
}

// MARK: Connection

function showState() {
  const { is, retryAt, reason } = hub.state, left = Math.ceil((retryAt - Date.now()) / 1000);
  const isAsked = isGone() && !$('token').hidden;
  setText('state', isAsked ? 'no good token' : is === 'waiting' ? 'reconnecting' : is);
  setText('left', left >= 0 && !isAsked ? `in ${left} s` : '');
  $('pill').className = `pill ${is}`;
  $('pill').title = reason?.message ?? '';
}
hub.on('state', ({ is, reason }) => {
  if (is === 'waiting' && reason?.code === 1001) say('The hub is stopping.');
  if (is === 'live') {
    followRelease(about);
    follow.load();
    $('token').hidden = true;
    loadedFences &&= -Infinity;
    loadFences();
  }
  if (is === 'closed' && reason.cause !== 'us') {
    if (/^4?401$/.test(reason.code)) askToken(whys.refused);
    else say(`Something went wrong (${reason.message}): load the page again.`, 1e6);
  }
  isDirty = true;
  showState();
});
hub.on('error', ({ code, message }) => {
  if (code !== 'forbidden' || isDev) return say(message);
  hub.close();
  askToken('This token is not one of a control room.');
});

// MARK: Drawing

function draw() {
  requestAnimationFrame(draw);
  if (!isDirty && reducedMotion.matches) return;
  isDirty = false;
  const now = hub.now(), place = follow.aim(now), page = map.begin();
  const names = layers.fences ? drawFences() : [];
  fleet.draw(page, now, place && follow.id);
  const { fence, plate } = map.colors;
  for (const [name, px, py] of names) if (map.zoom > 9) map.text(name, px, py, fence, '700 11px', plate);
  follow.draw(page, place);
}

let unseen = 0;   // seconds
function tick() {
  unseen = document.hidden ? unseen + 1 : 0;
  if (unseen) return unseen === unseenSeconds && fleet.rest();
  fleet.tick(hub.now());
  follow.card();
  tiles.draw();
  showState();
  loadFences();
  isDirty = true;
}

const keys = { ...controls(map, showAll), '/': () => $('query').focus() };
for (const name of ['fences', 'cells', 'labels']) keys[name[0]] = () => $(name).click();
onkeydown = event => {
  const { key, target, ctrlKey, metaKey, altKey } = event, query = $('query');
  if (ctrlKey || metaKey || altKey) return;
  if (key === 'Escape') {
    if (target !== query) return tiles.close() || follow.end();
    query.value = '';
    query.oninput();
    return query.blur();
  }
  if (target.matches('input:not([type=checkbox])')) return;
  const act = keys[key.toLowerCase()];
  if (!act) return;
  event.preventDefault();
  act();
};

setText('attribution', about.map?.attribution ?? '');
$('recentre').onclick = () => follow.recentre();
$('end').onclick = () => follow.end();
sheet($('fleet'), $('grip'), [0.14, 0.46, 0.86], cover);
sheet($('follow'), $('follow-grip'), [0.24, 0.56, 0.92], cover);
onresize = cover;
cover();
map.load(about.map);
if (about.map?.box) map.fit([], about.map.box); else showAll();
hub.connect();
setInterval(tick, 1000);
draw();
