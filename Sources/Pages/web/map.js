// What both pages share. Nothing from the wire becomes markup.

// A canvas for streets or tiles, one for what moves. Web Mercator: x and y from 0 to 1, over 256 × 2^zoom px.

const tile = 256, margin = 160;           // px; the margin is round the standing canvas
const nearest = 19, farthest = 2;         // zoom
const streetZoom = 14, unit = 2 ** 20;    // of streets' tiles; they are kept in 1/2^20 of the world
const keptTiles = 256, keptStreets = 2048, fetchedAtOnce = 6;   // a hub limits the rate of an address
const earth = 40_075_016.686;             // m, round the equator
const clickPx = 6, widest = 240;

export const xOf = longitude => (longitude + 180) / 360;
export const yOf = latitude => {
  const sine = Math.sin(Math.max(-85.05, Math.min(85.05, latitude)) * Math.PI / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
};
const longitudeOf = x => (((x % 1) + 1) % 1) * 360 - 180;
const latitudeOf = y => Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180 / Math.PI;
const shortWay = x => x - Math.round(x);

export function disc(px, py, radius) {
  const path = new Path2D();
  path.arc(px, py, radius, 0, 2 * Math.PI);
  return path;
}

export class LiveMap {
  x = 0.5; y = 0.5; zoom = farthest;
  width = 0; height = 0; scale = tile * 2 ** farthest;
  /** What cards cover at the edges, px: the middle of what is left is the map's. */
  cover = { left: 0, top: 0, right: 0, bottom: 0 };
  colors = {};
  /** By tiles: a path of each class, from the corner. */
  #streets = new Map();
  #still = $('still'); #moving = $('moving'); #page = this.#moving.getContext('2d'); #street; #asked = new Map();
  #fetching = 0; #failures = 0; #notBefore = 0;
  #tiles; #zooms; #land; #images = new Map(); #drawn = {}; #pointers = new Map(); #moved = 0; #pinch = 0; #ratio = 1;

  constructor() {
    this.#measure();
    new ResizeObserver(() => this.#measure()).observe(this.#moving);
    this.#listen();
  }

  /** Cards cover other edges now; what is shown stays where it is. */
  beside(cover) {
    const { centerX, centerY } = this;
    this.cover = cover;
    this.show(this.xAt(this.centerX * 2 - centerX), this.yAt(this.centerY * 2 - centerY));
  }

  /** For the page to set: the view changed by hand ('pan' or 'zoom'); a click. */
  moved() {}
  picked() {}

  #measure() {
    const { clientWidth: width, clientHeight: height } = this.#moving, ratio = Math.min(devicePixelRatio || 1, 2);
    Object.assign(this, { width, height });
    this.#ratio = ratio;
    const set = (canvas, extra) => {
      canvas.width = (width + extra) * ratio;
      canvas.height = (height + extra) * ratio;
    };
    set(this.#moving, 0);
    set(this.#still, 2 * margin);
    this.redraw();
  }

  // MARK: The view

  /** A place's pixel, into `px` and `py`: no garbage. */
  project(latitude, longitude) { this.place(xOf(longitude), yOf(latitude)); }
  place(x, y) {
    this.px = shortWay(x - this.x) * this.scale + this.centerX;
    this.py = (y - this.y) * this.scale + this.centerY;
  }
  /** Of [west, south, east, north]: the corner's pixel, width and height. */
  rect([west, south, east, north]) {
    this.project(north, west);
    return [this.px, this.py, (xOf(east) - xOf(west)) * this.scale, (yOf(south) - yOf(north)) * this.scale];
  }
  get centerX() { return (this.width + this.cover.left - this.cover.right) / 2; }
  get centerY() { return (this.height + this.cover.top - this.cover.bottom) / 2; }
  xAt(px) { return this.x + (px - this.centerX) / this.scale; }
  yAt(py) { return this.y + (py - this.centerY) / this.scale; }
  /** Pixels of a metre, at a latitude. */
  pixels(latitude) { return this.scale / (earth * Math.cos(latitude * Math.PI / 180)); }

  /** What is shown, and `part` of it on each side. */
  box(part = 0) {
    const dx = this.width * part, dy = this.height * part;
    const [west, east] = this.width + 2 * dx < this.scale ? [this.xAt(-dx), this.xAt(this.width + dx)] : [0, 1 - 1e-9];
    const [north, south] = [this.yAt(-dy), this.yAt(this.height + dy)].map(latitudeOf);
    return { west: longitudeOf(west), south, east: longitudeOf(east), north };
  }

  show(x, y, zoom = this.zoom, hand = '') {
    this.x = ((x % 1) + 1) % 1;
    this.y = Math.max(0, Math.min(1, y));
    this.zoom = Math.max(farthest, Math.min(nearest, zoom));
    this.scale = tile * 2 ** this.zoom;
    this.moved(hand);
  }
  pan(dx, dy) { this.show(this.x + dx / this.scale, this.y + dy / this.scale, this.zoom, 'pan'); }
  /** The place under the pixel stays there. */
  zoomBy(delta, px = this.centerX, py = this.centerY) {
    const [x, y] = [this.xAt(px), this.yAt(py)];
    const zoom = Math.max(farthest, Math.min(nearest, this.zoom + delta)), scale = tile * 2 ** zoom;
    this.show(x - (px - this.centerX) / scale, y - (py - this.centerY) / scale, zoom, 'zoom');
  }
  /** Shows all places; without any, a box: [west, south, east, north]. */
  fit(places, box) {
    const [first] = places, { max, min } = Math, norths = places.map(({ latitude }) => latitude);
    const easts = places.map(({ longitude: at }) => first.longitude + shortWay((at - first.longitude) / 360) * 360);
    if (first) box = [min(...easts), min(...norths), max(...easts), max(...norths)];
    if (!box) return;
    const [west, south, east, north] = box;
    const [left, right, top, bottom] = [xOf(west), xOf(east), yOf(north), yOf(south)];
    const { cover } = this, width = right - left + (right < left), pad = 24;
    const across = Math.max(80, this.width - cover.left - cover.right - 2 * pad) / Math.max(width, 1e-7);
    const down = Math.max(80, this.height - cover.top - cover.bottom - 2 * pad) / Math.max(bottom - top, 1e-7);
    this.show(left + width / 2, (top + bottom) / 2, Math.min(17, Math.log2(Math.min(across, down) / tile)));
  }

  // MARK: Hands

  #listen() {
    const canvas = this.#moving, pointers = this.#pointers, at = event => [event.offsetX, event.offsetY];
    canvas.onpointerdown = event => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      if (pointers.size === 1) this.#moved = 0; else this.#pinch = 0;
    };
    canvas.onpointermove = event => {
      const before = event.buttons && pointers.get(event.pointerId), [x, y] = at(event);
      if (!before) return;
      pointers.set(event.pointerId, [x, y]);
      this.#moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
      if (pointers.size === 2) return this.#pinched();
      if (this.#moved > clickPx) this.pan(before[0] - x, before[1] - y);
    };
    canvas.onpointerup = canvas.onpointercancel = event => {
      if (!pointers.delete(event.pointerId) || pointers.size) return;
      if (event.type !== 'pointerup' || this.#moved > clickPx) return;
      this.picked(...at(event));
    };
    canvas.addEventListener('wheel', event => {
      event.preventDefault();
      const lines = event.deltaMode ? 30 : 1;
      this.zoomBy(Math.max(-1, Math.min(1, -event.deltaY * lines / 300)), ...at(event));
    }, { passive: false });
  }

  #pinched() {
    const [[x1, y1], [x2, y2]] = [...this.#pointers.values()];
    const wide = Math.hypot(x1 - x2, y1 - y2);
    if (this.#pinch) this.zoomBy(Math.log2(wide / this.#pinch), (x1 + x2) / 2, (y1 + y2) / 2);
    this.#pinch = wide;
    this.#moved = Infinity;
  }

  // MARK: What stands

  /** `about.map` of a hub: where its streets and tiles are. */
  load({ streets, tiles, zooms = [farthest, nearest], box = [0, 0, 0, 0] } = {}) {
    [this.#street, this.#tiles, this.#zooms, this.#land] = [streets, tiles, zooms, box];
    this.redraw();
  }
  /** After a failure none for 1, 2, 4 … 60 s, or as long as the hub says. */
  async #fetch(path, corner) {
    this.#asked.set(path, corner);
    this.#fetching++;
    const answer = await fetch(path).catch(() => ({}));
    const streets = answer.ok && await answer.json().catch(() => {});
    this.#fetching--;
    if (streets) {
      this.#failures = 0;
      this.#add(streets);
      return this.redraw();
    }
    this.#asked.delete(path);
    const now = performance.now();
    if (now < this.#notBefore) return;   // others failed with it
    const seconds = Math.max(Math.min(2 ** this.#failures++, 60), +answer.headers?.get('Retry-After') || 0);
    this.#notBefore = now + seconds * 1000;
    setTimeout(() => this.redraw(), seconds * 1000 + 50);
  }
  #add({ ways }) {
    for (const { c, p } of ways) {
      const places = decode(p).map(([latitude, longitude]) => [xOf(longitude), yOf(latitude)]);
      if (!places.length) continue;
      const corner = places[0].map(value => Math.floor(value * 2 ** streetZoom) / 2 ** streetZoom), key = `${corner}`;
      if (!this.#streets.has(key)) this.#streets.set(key, { corner, paths: [0, 1, 2].map(() => new Path2D()) });
      const path = new Path2D();
      for (const [x, y] of places) path.lineTo((x - corner[0]) * unit, (y - corner[1]) * unit);
      this.#streets.get(key).paths[c].addPath(path);
    }
  }
  redraw() {
    this.#drawn = {};
    this.moved();
  }

  /** Draws what stands anew, or moves it. */
  #stand() {
    const drawn = this.#drawn;
    this.place(drawn.x, drawn.y);
    let dx = this.px - drawn.centerX, dy = this.py - drawn.centerY;
    if (drawn.scale !== this.scale || !(Math.abs(dx) < margin && Math.abs(dy) < margin)) {
      this.#drawn = { x: this.x, y: this.y, scale: this.scale, centerX: this.centerX, centerY: this.centerY };
      this.#draw();
      dx = dy = 0;
    }
    this.#still.style.transform = `translate(${dx}px, ${dy}px)`;
  }

  #draw() {
    const page = this.#still.getContext('2d'), ratio = this.#ratio;
    page.setTransform(ratio, 0, 0, ratio, margin * ratio, margin * ratio);
    this.#cover(page, this.colors.ground);
    if (this.#tiles && this.zoom > this.#zooms[0] - 1) this.#drawTiles(page);
    else if (this.#street && this.zoom > 9) this.#drawStreets(page);
    else this.#drawGrid(page);
  }
  #cover(page, color) {
    page.fillStyle = color;
    page.fillRect(-margin, -margin, this.width + 2 * margin, this.height + 2 * margin);
  }

  /** The tiles in view, of `size` in a row: x, y, and the pixel of the corner. */
  *#tilesOf(size) {
    const tileOf = place => Math.floor(place * size);
    const [west, north] = [this.xAt(-margin), this.yAt(-margin)].map(tileOf);
    const [east, south] = [this.xAt(this.width + margin), this.yAt(this.height + margin)].map(tileOf);
    for (let x = west; x <= east; x++) {
      for (let y = Math.max(0, north); y <= Math.min(size - 1, south); y++) {
        yield [(x % size + size) % size, y, (x / size - this.x) * this.scale + this.centerX,
          (y / size - this.y) * this.scale + this.centerY];
      }
    }
  }

  #drawGrid(page) {
    const size = 2 ** (Math.floor(this.zoom) + 1), wide = this.scale / size;
    page.strokeStyle = this.colors.street1;
    page.lineWidth = 1;
    for (const [, , px, py] of this.#tilesOf(size)) {
      page.strokeRect(Math.round(px) + 0.5, Math.round(py) + 0.5, wide, wide);
    }
  }

  #widthOf(kind) {
    const meters = [7, 11, 17][kind] * 2 ** this.zoom / 2 ** 17 * 1.1;
    return Math.max([0.55, 0.9, 1.5][kind], Math.min([16, 24, 34][kind], meters));
  }

  #drawStreets(page) {
    this.#askTiles();
    // A way belongs to the tile in which it begins, and may leave it.
    const ratio = this.#ratio, grow = this.scale / unit, far = margin + this.scale / 2 ** streetZoom;
    const seen = [...this.#streets.values()].filter(({ corner }) => {
      this.place(...corner);
      return this.sees(this.px, this.py, 2 * far);
    });
    const { colors } = this;
    page.fillStyle = colors.land;
    page.fillRect(...this.rect(this.#land));
    page.lineCap = page.lineJoin = 'round';
    const stroke = (kind, color, extra) => {
      page.strokeStyle = color;
      page.lineWidth = (this.#widthOf(kind) + extra) / grow;
      for (const { corner, paths } of seen) {
        this.place(...corner);
        page.setTransform(grow * ratio, 0, 0, grow * ratio, (this.px + margin) * ratio, (this.py + margin) * ratio);
        page.stroke(paths[kind]);
      }
    };
    const kinds = this.zoom < 11 ? [2] : this.zoom < 12 ? [1, 2] : [0, 1, 2];
    if (colors.casing !== 'none' && this.zoom > 14.2) for (const kind of kinds) stroke(kind, colors.casing, 1.6);
    for (const kind of kinds) stroke(kind, colors[`street${kind}`], 0);
  }

  #askTiles() {
    if (!this.#street || performance.now() < this.#notBefore) return;
    if (!this.#street.includes('{x}')) return this.#asked.has(this.#street) || this.#fetch(this.#street);
    if (this.zoom < 11.5) return;
    const size = 2 ** streetZoom;
    let used = keptStreets;
    for (const [x, y] of this.#tilesOf(size)) {
      const path = this.#street.replace('{x}', x).replace('{y}', y), corner = `${[x / size, y / size]}`;
      used++;
      if (this.#asked.delete(path)) this.#asked.set(path, corner);
      else if (this.#fetching < fetchedAtOnce) this.#fetch(path, corner);
    }
    for (const [path, corner] of this.#asked) {
      if (this.#asked.size > used && this.#asked.delete(path)) this.#streets.delete(corner);
    }
  }

  #drawTiles(page) {
    const [low, high] = this.#zooms, level = Math.max(low, Math.min(high, Math.round(this.zoom))), size = 2 ** level;
    const wide = Math.ceil(this.scale / size) + 1;
    let used = keptTiles;
    for (const [x, y, px, py] of this.#tilesOf(size)) {
      const image = this.#image(this.#tiles.replace('{z}', level).replace('{x}', x).replace('{y}', y));
      used++;
      if (image.naturalWidth) page.drawImage(image, Math.floor(px), Math.floor(py), wide, wide);
    }
    for (const url of this.#images.keys()) if (this.#images.size > used) this.#images.delete(url);
    page.globalAlpha = this.colors.dim;
    this.#cover(page, this.colors.ground);
    page.globalAlpha = 1;
  }

  #image(url) {
    const image = this.#images.get(url) ?? Object.assign(new Image(), { src: url,
      onload: () => this.redraw(), onerror: () => this.#images.delete(url) });
    this.#images.delete(url);
    this.#images.set(url, image);
    return image;
  }

  // MARK: What moves

  /** Clears what moves, and gives its canvas. */
  begin() {
    this.#stand();
    this.#page.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    this.#page.clearRect(0, 0, this.width, this.height);
    this.#page.globalAlpha = 1;
    return this.#page;
  }

  /** Whether a pixel is on the map, or so far beside it. */
  sees(px, py, far = 50) { return px > -far && py > -far && px < this.width + far && py < this.height + far; }

  fill(path, color, alpha = 1, rule = 'nonzero') {
    const page = this.#page;
    Object.assign(page, { fillStyle: color, globalAlpha: alpha });
    page.fill(path, rule);
  }
  stroke(path, color, width, alpha = 1, dash = [], cap = 'round') {
    const page = this.#page;
    Object.assign(page, { strokeStyle: color, lineWidth: width, globalAlpha: alpha, lineCap: cap, lineJoin: 'round' });
    page.setLineDash(dash);
    page.stroke(path);
  }

  /** Through [latitude, longitude] pairs or places; `seen` gets each y. */
  path(places, seen) {
    const path = new Path2D();
    for (const place of places) {
      const [latitude, longitude] = place.length ? place : [place.latitude, place.longitude];
      this.project(latitude, longitude);
      path.lineTo(this.px, this.py);
      seen?.(this.py);
    }
    return path;
  }

  /** Pins with letters, their points at pickup and dropoff. */
  pins({ pickup, dropoff }) {
    const { edge, onAccent, accent } = this.colors;
    for (const [place, letter] of [[pickup, 'A'], [dropoff, 'B']]) {
      if (!place) continue;
      this.project(place.latitude, place.longitude);
      const path = new Path2D(), { px, py } = this, below = 0.2 * Math.PI;
      path.arc(px, py - 20, 11, Math.PI - below, below);
      path.quadraticCurveTo(px + 3, py - 7, px, py);
      path.quadraticCurveTo(px - 3, py - 7, px - 11 * Math.cos(below), py - 20 + 11 * Math.sin(below));
      this.fill(path, accent);
      this.stroke(path, edge, 2);
      this.text(letter, px, py - 20, onAccent, 'bold 12px');
    }
  }

  /** The rest of a route, or a dotted line to a target. */
  way(here, route, target) {
    const [latitude, longitude] = here, across = Math.cos(latitude * Math.PI / 180), { track, muted } = this.colors;
    if (route) {
      const from = route.map(([north, east]) => Math.hypot(north - latitude, (east - longitude) * across));
      const rest = route.slice(from.indexOf(Math.min(...from)) + 1);
      this.stroke(this.path([here, ...rest]), track, 4, 0.5, [0.1, 8]);
    } else if (target) {
      this.stroke(this.path([here, target]), muted, 3, 0.7, [0.1, 7]);
    }
  }

  pulse(px, py, size, color) {
    const beat = performance.now() % 2000 / 2000;
    this.stroke(disc(px, py, size + 4 + beat * 20), color, 2.5, 0.5 * (1 - beat));
  }

  text(text, px, py, color, font = '600 11px', plate = '') {
    const page = this.#page;
    Object.assign(page, { font: `${font} system-ui, sans-serif`, textAlign: 'center', textBaseline: 'middle' });
    if (plate) {
      const wide = Math.min(page.measureText(text).width, widest) + 12, path = new Path2D();
      path.roundRect(px - wide / 2, py - 9, wide, 18, 9);
      this.fill(path, plate);
    }
    Object.assign(page, { fillStyle: color, globalAlpha: 1 });
    page.fillText(text, px, py + 0.5, widest);
  }

  showScale() {
    const pixels = this.pixels(latitudeOf(this.y));
    let meters = 10 ** Math.floor(Math.log10(90 / pixels));
    meters *= [5, 2, 1].find(factor => factor * meters * pixels <= 90) ?? 1;
    $('scale').style.width = `${Math.round(meters * pixels)}px`;
    setText('scale', meters < 1000 ? `${meters} m` : `${meters / 1000} km`);
  }
}

// MARK: Arrows

const batch = 200;                        // are filled at once

/** Outlines: x to the right and y forwards, in sizes; a second one is a hole. */
const arrow = [[0, 1.1], [0.78, -0.85], [0, -0.45], [-0.78, -0.85]];
const hole = [[0, 0.62], [-0.46, -0.46], [0, -0.22], [0.46, -0.46]];
const slim = [[0, 1.15], [0.52, -0.2], [0, -0.85], [-0.52, -0.2]];
export const outlines = { available: [arrow], on_trip: [arrow], unavailable: [arrow, hole], background: [slim] };

export class Arrows {
  #groups = new Map();

  clear() {
    for (const group of this.#groups.values()) group.count = 0;
  }

  /** `kind`: a status, or `offline`; `tone`: 0 fresh, 1 faded, 2 grey; `heading` NaN where none is known. */
  add(kind, tone, px, py, heading) {
    const key = kind + tone;
    if (!this.#groups.has(key)) this.#groups.set(key, { kind, tone, count: 0, data: [] });
    const group = this.#groups.get(key), { data } = group, angle = heading * Math.PI / 180, at = 4 * group.count++;
    data[at] = px;
    data[at + 1] = py;
    data[at + 2] = Math.sin(angle);
    data[at + 3] = Math.cos(angle);
  }

  /** `strengths` by tone, times `strength`. The edge is a larger fill below, cheaper than a stroke. */
  draw(page, colors, size, strengths, strength = 1) {
    const isDot = size < 6, edge = isDot ? 1.2 : 1.6, radius = size * (isDot ? 0.75 : 0.6);
    for (const group of this.#groups.values()) {
      const { kind, tone, count } = group, rings = isDot ? undefined : outlines[kind];
      if (!count) continue;
      page.globalAlpha = strengths[tone] * strength;
      this.#fill(page, group, colors.edge, rings?.slice(0, 1), size, 1 + 1.9 * edge / size, radius + edge);
      const isHollow = size >= 4 && outlines[kind]?.length !== 1;
      this.#fill(page, group, colors[tone === 2 ? 'offline' : kind] || colors.offline, rings, size, 1, radius,
        isHollow ? radius / 2 : 0);
      if (kind === 'on_trip' && !isDot) this.#fill(page, group, colors.edge, undefined, size, 1, size * 0.2);
    }
    page.globalAlpha = 1;
  }

  /** Outlines, `grown`, or circles where there are none or no heading; a hole has a radius. */
  #fill(page, { data, count }, color, rings, size, grown, radius, hole = 0) {
    page.fillStyle = color;
    for (let first = 0; first < count; first += batch) {
      page.beginPath();
      for (let at = 4 * first; at < 4 * Math.min(first + batch, count); at += 4) {
        const px = data[at], py = data[at + 1], sine = data[at + 2], cosine = data[at + 3];
        if (rings && sine === sine) {
          for (const ring of rings) {
            for (let corner = 0; corner < 4; corner++) {
              const x = ring[corner][0] * size * grown, y = (ring[corner][1] + 0.1) * size * grown - 0.1 * size;
              const toX = px + x * cosine + y * sine, toY = py + x * sine - y * cosine;
              if (corner) page.lineTo(toX, toY); else page.moveTo(toX, toY);
            }
            page.closePath();
          }
          continue;
        }
        page.moveTo(px + radius, py);
        page.arc(px, py, radius, 0, 2 * Math.PI);
        page.moveTo(px + hole, py);
        if (hole) page.arc(px, py, hole, 0, 2 * Math.PI, true);
      }
      page.fill();
    }
  }
}

export const $ = id => document.getElementById(id);
export const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
export const isPhone = () => innerWidth <= 640;

export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}
export function setText(id, text) {
  const node = id.nodeType ? id : $(id);
  if (node.textContent !== text) node.textContent = text;
}
let said;
export function say(text, seconds = 6) {
  clearTimeout(said);
  setText('toast', text);
  $('toast').hidden = !text;
  said = setTimeout(() => { $('toast').hidden = true; }, seconds * 1000);
}

// MARK: Places

/** An encoded polyline of 5 decimals as [latitude, longitude] pairs. */
export function decode(text) {
  const places = [], sum = [0, 0];
  let axis = 0, value = 0, factor = 1;
  for (const letter of text) {
    const byte = letter.charCodeAt() - 63;
    value += byte % 32 * factor;
    factor *= 32;
    if (byte >= 32) continue;
    sum[axis] += value % 2 ? -(value + 1) / 2 : value / 2;
    if (axis) places.push(sum.map(part => part / 1e5));
    axis = 1 - axis;
    [value, factor] = [0, 1];
  }
  return places;
}

const letters = '0123456789bcdefghjkmnpqrstuvwxyz';
/** The box of a geohash: [west, south, east, north]. */
export function boxOf(geohash) {
  const box = [-180, -90, 180, 90];
  let axis = 0;
  for (const letter of geohash) {
    for (let bit = 16, value = letters.indexOf(letter); bit; bit >>= 1) {
      box[axis + (value & bit ? 0 : 2)] = (box[axis] + box[axis + 2]) / 2;
      axis = 1 - axis;
    }
  }
  return box;
}

// MARK: Words

export const count = value => Math.round(value).toLocaleString('en');
export const figure = value => !Number.isFinite(value) ? '–'
  : value >= 100 || Number.isInteger(value) ? count(value) : value.toFixed(value >= 10 ? 1 : 2);
export const clock = time => new Date(time).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
export function ago(seconds) {
  if (!(seconds < Infinity)) return '–';
  return seconds < 2.5 ? 'now' : seconds < 100 ? `${Math.round(seconds)} s ago`
    : seconds < 5400 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}
const far = meters => meters < 995 ? `${Math.round(meters / 10) * 10} m` : `${(meters / 1000).toFixed(1)} km`;
const minutes = (arrival, now) => {
  const left = Math.round((arrival - now) / 60_000);
  return left < 1 ? '< 1 min' : left < 90 ? `${left} min` : `${Math.floor(left / 60)} h ${left % 60} min`;
};

export const statuses = {
  available: 'Available', on_trip: 'On trip', unavailable: 'Unavailable', background: 'Background', offline: 'Offline',
};
export const moves = {
  requested: 'Trip requested', accepted: 'To pickup', driver_en_route: 'To pickup', arrived_pickup: 'At pickup',
  trip_started: 'To dropoff', arrived_destination: 'At dropoff', completed: 'Trip ended', cancelled: 'Trip cancelled',
};
export const steps = Object.keys(moves).slice(0, 6);
export const isOver = trip => !trip || trip.status === 'completed' || trip.status === 'cancelled';
/** Where a trip's driver goes now. */
export const targetOf = trip => isOver(trip) ? undefined
  : steps.indexOf(trip.status) < 3 ? trip.pickup : trip.status === 'arrived_destination' ? undefined : trip.dropoff;

export function showSteps(status) {
  const list = $('steps'), at = steps.indexOf(status);
  if (list.dataset.status === status) return;
  list.dataset.status = status;
  list.replaceChildren(...steps.map((step, index) => {
    const item = element('li', { title: moves[step], className: index <= at ? 'done' : index === at + 1 ? 'now' : '' });
    if (index === at) item.ariaCurrent = 'step';
    return item;
  }));
}

/** The ETA to where the trip goes now, unless it is past or the position is old. */
export function showEta(eta, trip, now, age) {
  const isOld = age > 60 || now > eta?.arrivalTime + 60_000;
  if (($('eta').hidden = !eta || isOld || isOver(trip) || targetOf(trip) !== trip[eta.target])) return;
  setText('eta-time', minutes(eta.arrivalTime, now));
  setText('eta-target', `to ${eta.target} at ${clock(eta.arrivalTime)}`);
  setText('eta-basis', `${far(eta.distance)} · ${eta.basis === 'route' ? 'by road' : 'direct'}`);
}

for (const name of ['localStorage', 'sessionStorage']) try { window[name].length; } catch {   // null, or forbidden
  Object.defineProperty(window, name, { value: new Proxy({}, { get: () => () => {} }) });
}

// MARK: Theme

const dark = matchMedia('(prefers-color-scheme: dark)');
/** The system's, until it is swapped. */
function theme(map) {
  const { classList } = document.documentElement;
  const show = () => {
    const chosen = localStorage.getItem('theme');
    classList.toggle('dark', chosen ? chosen === 'dark' : dark.matches);
    const style = getComputedStyle(document.documentElement);
    map.colors = new Proxy({}, { get: (known, name) => known[name] ??= style.getPropertyValue(`--${name}`) });
    map.redraw();
  };
  dark.onchange = show;
  show();
  return () => {
    localStorage.setItem('theme', classList.contains('dark') ? 'light' : 'dark');
    show();
  };
}

const panPx = 120;
/** Sets the map's buttons; gives its keys. */
export function controls(map, all) {
  const pan = (x, y) => () => map.pan(x * panPx, y * panPx), zoom = by => () => map.zoomBy(by), d = theme(map);
  $('in').onclick = zoom(1);
  $('out').onclick = zoom(-1);
  $('all').onclick = all;
  $('theme').onclick = d;
  return { arrowleft: pan(-1, 0), arrowright: pan(1, 0), arrowup: pan(0, -1), arrowdown: pan(0, 1), '+': zoom(0.5),
    '=': zoom(0.5), '-': zoom(-0.5), 0: all, d };
}

// MARK: Lines

/** Draws values, `room` in the width; gives least and greatest. */
export function drawLine(canvas, values, room, color, top = 4) {
  const { clientWidth: width, clientHeight: height } = canvas, ratio = Math.min(devicePixelRatio || 1, 2);
  if (!width) return [0, 0];
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  const page = canvas.getContext('2d'), known = values.filter(Number.isFinite);
  const low = Math.min(0, ...known), high = Math.max(...known, low + 1e-9), runs = [[]];
  values.forEach((value, index) => {
    if (!Number.isFinite(value)) return runs.push([]);
    runs.at(-1).push([width * (1 - (values.length - 1 - index) / Math.max(1, room - 1)),
      height - 1 - (value - low) / (high - low) * (height - top - 1)]);
  });
  page.scale(ratio, ratio);
  Object.assign(page, { fillStyle: color, strokeStyle: color, lineWidth: 1.4, lineJoin: 'round' });
  for (const run of runs.filter(run => run[0])) {
    page.beginPath();
    for (const point of run) page.lineTo(...point);
    page.stroke();
    page.lineTo(run.at(-1)[0], height);
    page.lineTo(run[0][0], height);
    page.globalAlpha = 0.16;
    page.fill();
    page.globalAlpha = 1;
  }
  return [Math.min(...known), Math.max(...known)];
}

// MARK: Sheets

/** A grip moves its card between heights (parts of the window). */
export function sheet(card, grip, heights, changed) {
  let from = NaN, start = 0, moved = 0;
  const set = part => {
    card.style.setProperty('--sheet', `${Math.round(part * innerHeight)}px`);
    changed();
  };
  const nearest = () => {
    const part = card.offsetHeight / innerHeight, from = heights.map(height => Math.abs(height - part));
    return from.indexOf(Math.min(...from));
  };
  grip.onpointerdown = event => {
    grip.setPointerCapture(event.pointerId);
    [from, start, moved] = [event.clientY + card.offsetHeight, event.clientY, 0];
    card.classList.add('dragging');
  };
  grip.onpointermove = event => {
    if (from !== from) return;
    moved = Math.max(moved, Math.abs(event.clientY - start));
    set(Math.max(heights[0], Math.min(heights.at(-1), (from - event.clientY) / innerHeight)));
  };
  card.ontransitionend = changed;
  const next = () => set(heights[(nearest() + 1) % heights.length]);
  grip.onpointerup = grip.onpointercancel = () => {
    card.classList.remove('dragging');
    if (moved > 4) set(heights[nearest()]); else next();
    from = NaN;
  };
  grip.onclick = ({ detail }) => detail || next();   // by a key
}

// MARK: Hub

/** The token of `#token=…`, taken out of the address at once; kept in the storage. */
export function takeToken(storage, name) {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (location.hash) history.replaceState(null, '', location.pathname + location.search);
  if (given) storage.setItem(name, given);
  onhashchange = () => location.reload();   // another link in the same tab
  return given ?? storage.getItem(name) ?? '';
}
export const hubURL = () => `${location.origin.replace('http', 'ws')}/v1/ws`;

export const askAbout = () => fetch('/v1/about').then(answer => answer.json()).catch(() => ({}));
/** Another release has another page. A new page stays: two hubs may answer by turns. */
export async function followRelease({ release: before }) {
  const { release } = await askAbout();
  if (!before || !release || release === before || performance.now() < 6e5) return;
  say(`The hub is now ${release}: its page is loaded.`, 9);
  setTimeout(() => location.reload(), 2000 + 4000 * Math.random());   // not all at once
}
