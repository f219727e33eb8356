// A map on two canvases: one for what stands (streets or tiles), drawn when the view has changed, one above it for what
// moves, drawn in each frame. Web Mercator (EPSG:3857). Places are x and y from 0 to 1 over the world; a view is its
// middle and its zoom, where the world is 256 × 2^zoom pixels wide.

import { $, decode } from './page.js';

const tile = 256, margin = 160;           // px; the standing canvas is larger by the margin on each side
const nearest = 19, farthest = 2;         // zoom
const streetZoom = 14, unit = 2 ** 20;    // streets are cut into these tiles, and kept in 1/2^20 of the world
const keptTiles = 256, askedTiles = 4096;
const earth = 40_075_016.686;             // m, round the equator
const clickPx = 6;

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
  /** Ways by tiles, each a path for each class, relative to the tile's corner. */
  #streets = new Map();
  #still = $('still'); #moving = $('moving'); #page = this.#moving.getContext('2d'); #street; #asked = new Set();
  #tiles; #images = new Map(); #drawn = {}; #pointers = new Map(); #moved = 0; #pinch = 0; #ratio = 1;

  constructor() {
    this.#measure();
    new ResizeObserver(() => this.#measure()).observe(this.#moving);
    this.#listen();
  }

  /** For the page to set: the view has changed; there was a click on the map. */
  moved(_byHand) {}
  picked(_px, _py) {}

  #measure() {
    const { clientWidth, clientHeight } = this.#moving, ratio = Math.min(devicePixelRatio || 1, 2);
    Object.assign(this, { width: clientWidth, height: clientHeight });
    this.#ratio = ratio;
    const set = (canvas, extra) => {
      canvas.width = (clientWidth + extra) * ratio;
      canvas.height = (clientHeight + extra) * ratio;
    };
    set(this.#moving, 0);
    set(this.#still, 2 * margin);
    this.redraw();
  }

  // MARK: The view

  /** The pixel of a place, into `px` and `py`: no garbage. */
  project(latitude, longitude) { this.place(xOf(longitude), yOf(latitude)); }
  place(x, y) {
    this.px = shortWay(x - this.x) * this.scale + this.centerX;
    this.py = (y - this.y) * this.scale + this.centerY;
  }
  get centerX() { return (this.width + this.cover.left - this.cover.right) / 2; }
  get centerY() { return (this.height + this.cover.top - this.cover.bottom) / 2; }
  xAt(px) { return this.x + (px - this.centerX) / this.scale; }
  yAt(py) { return this.y + (py - this.centerY) / this.scale; }
  /** Pixels of a metre, at a latitude. */
  pixels(latitude) { return this.scale / (earth * Math.cos(latitude * Math.PI / 180)); }

  /** What is shown, and `part` of it more on each side. */
  box(part = 0) {
    const [dx, dy] = [this.width * part, this.height * part];
    const [west, east] = this.width + 2 * dx < this.scale ? [this.xAt(-dx), this.xAt(this.width + dx)] : [0, 1 - 1e-9];
    const [north, south] = [this.yAt(-dy), this.yAt(this.height + dy)].map(latitudeOf);
    return { west: longitudeOf(west), south, east: longitudeOf(east), north };
  }

  show(x, y, zoom = this.zoom, byHand = false) {
    this.x = ((x % 1) + 1) % 1;
    this.y = Math.max(0, Math.min(1, y));
    this.zoom = Math.max(farthest, Math.min(nearest, zoom));
    this.scale = tile * 2 ** this.zoom;
    this.moved(byHand);
  }
  pan(dx, dy) { this.show(this.x + dx / this.scale, this.y + dy / this.scale, this.zoom, true); }
  /** Zooms by so much; the place under the pixel stays there. */
  zoomBy(delta, px = this.centerX, py = this.centerY) {
    const [x, y] = [this.xAt(px), this.yAt(py)];
    const zoom = Math.max(farthest, Math.min(nearest, this.zoom + delta)), scale = tile * 2 ** zoom;
    this.show(x - (px - this.centerX) / scale, y - (py - this.centerY) / scale, zoom);
  }
  /** Shows all of a box, [west, south, east, north]. */
  fit([west, south, east, north]) {
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
      const before = pointers.get(event.pointerId), [x, y] = at(event);
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
    const wide = Math.hypot(x1 - x2, y1 - y2), middle = [(x1 + x2) / 2, (y1 + y2) / 2];
    if (this.#pinch) this.zoomBy(Math.log2(wide / this.#pinch), ...middle);
    this.#pinch = wide;
    this.#moved = Infinity;
  }

  // MARK: What stands

  /** `about.map` of a hub: where its streets and tiles are. */
  async load({ streets, tiles } = {}) {
    [this.#street, this.#tiles] = [streets, tiles];
    if (streets && !streets.includes('{x}')) await this.#fetch(streets);
    this.redraw();
  }
  async #fetch(path) {
    this.#asked.add(path);
    const answer = await fetch(path).catch(() => ({}));
    if (answer.ok) this.#add(await answer.json()); else this.#asked.delete(path);
    this.redraw();
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
    this.moved(false);
  }

  /** Draws what stands anew where it must be, and moves it else. */
  #stand() {
    const drawn = this.#drawn;
    let [dx, dy] = [shortWay(drawn.x - this.x) * this.scale, (drawn.y - this.y) * this.scale];
    dx += this.centerX - drawn.centerX;
    dy += this.centerY - drawn.centerY;
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
    if (this.#tiles) this.#drawTiles(page); else if (this.#street) this.#drawStreets(page); else this.#drawGrid(page);
  }
  #cover(page, color) {
    page.fillStyle = color;
    page.fillRect(-margin, -margin, this.width + 2 * margin, this.height + 2 * margin);
  }

  /** The tiles of a level, of which `size` are in a row, that can be seen: x, y, and the pixel of the corner. */
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

  /** In metres, but neither thinner nor wider than reads well. */
  #widthOf(kind) {
    const meters = [7, 11, 17][kind] * 2 ** this.zoom / 2 ** 17 * 1.1;
    return Math.max([0.55, 0.9, 1.5][kind], Math.min([16, 24, 34][kind], meters));
  }

  #drawStreets(page) {
    this.#askTiles();
    // A way belongs to the tile in which it begins, and may go on into the next.
    const ratio = this.#ratio, grow = this.scale / unit, far = margin + this.scale / 2 ** streetZoom;
    const seen = [...this.#streets.values()].filter(({ corner }) => {
      this.place(...corner);
      return this.sees(this.px, this.py, 2 * far);
    });
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
    const { colors } = this, kinds = this.zoom < 11 ? [2] : this.zoom < 12 ? [1, 2] : [0, 1, 2];
    if (colors.casing !== 'none' && this.zoom > 14.2) for (const kind of kinds) stroke(kind, colors.casing, 1.6);
    for (const kind of kinds) stroke(kind, colors[`street${kind}`], 0);
  }

  #askTiles() {
    if (!this.#street.includes('{x}') || this.zoom < 11.5) return;
    for (const [x, y] of this.#tilesOf(2 ** streetZoom)) {
      const path = this.#street.replace('{x}', x).replace('{y}', y);
      if (!this.#asked.has(path) && this.#asked.size < askedTiles) this.#fetch(path);
    }
  }

  #drawTiles(page) {
    const level = Math.max(0, Math.min(19, Math.round(this.zoom))), size = 2 ** level;
    const wide = Math.ceil(this.scale / size) + 1;
    for (const [x, y, px, py] of this.#tilesOf(size)) {
      const image = this.#image(this.#tiles.replace('{z}', level).replace('{x}', x).replace('{y}', y));
      if (image.naturalWidth) page.drawImage(image, Math.floor(px), Math.floor(py), wide, wide);
    }
    page.globalAlpha = this.colors.dim;
    this.#cover(page, this.colors.ground);
    page.globalAlpha = 1;
  }

  #image(url) {
    let image = this.#images.get(url);
    if (!image) {
      image = new Image();
      image.onload = () => this.redraw();
      image.src = url;
    }
    this.#images.delete(url);
    this.#images.set(url, image);
    if (this.#images.size > keptTiles) this.#images.delete(this.#images.keys().next().value);
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

  /** Both say all of a style each time, so that none is left over. */
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

  /** Through [latitude, longitude] pairs, or places of the hub's; `seen` gets each y. */
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
    const { edge, onAccent, available, on_trip } = this.colors;
    for (const [place, letter, color] of [[pickup, 'A', available], [dropoff, 'B', on_trip]]) {
      if (!place) continue;
      this.project(place.latitude, place.longitude);
      const path = new Path2D(), { px, py } = this, below = 0.2 * Math.PI;
      path.arc(px, py - 20, 11, Math.PI - below, below);
      path.quadraticCurveTo(px + 3, py - 7, px, py);
      path.quadraticCurveTo(px - 3, py - 7, px - 11 * Math.cos(below), py - 20 + 11 * Math.sin(below));
      this.fill(path, color);
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

  /** A growing ring round the followed one. */
  pulse(px, py, size, color) {
    const beat = performance.now() % 2000 / 2000;
    this.stroke(disc(px, py, size + 4 + beat * 20), color, 2.5, 0.5 * (1 - beat));
  }

  /** Text with a plate below it, or without. */
  text(text, px, py, color, font = '600 11px', plate = '') {
    const page = this.#page;
    Object.assign(page, { font: `${font} system-ui, sans-serif`, textAlign: 'center', textBaseline: 'middle' });
    if (plate) {
      const wide = page.measureText(text).width + 12, path = new Path2D();
      path.roundRect(px - wide / 2, py - 9, wide, 18, 9);
      this.fill(path, plate);
    }
    Object.assign(page, { fillStyle: color, globalAlpha: 1 });
    page.fillText(text, px, py + 0.5);
  }

  /** How long the scale's bar is (px), and what it says. */
  scaleBar() {
    const pixels = this.pixels(latitudeOf(this.y));
    let meters = 10 ** Math.floor(Math.log10(90 / pixels));
    meters *= [5, 2, 1].find(factor => factor * meters * pixels <= 90) ?? 1;
    return [meters * pixels, meters < 1000 ? `${meters} m` : `${meters / 1000} km`];
  }
}
