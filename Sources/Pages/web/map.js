// A map on two canvases: one for what stands (streets or tiles), drawn anew when the view has changed, one above it for
// what moves, drawn in each frame. Web Mercator (EPSG:3857). Places are x and y from 0 to 1 over the whole world; a
// view is its middle and its zoom, where the world is 256 × 2^zoom pixels wide. Below it what else the live map and the
// rider's page share: words for figures, colours, lines, sheets. Nothing from the wire becomes markup: texts are set as
// texts. It is one file, because two are 0.6 KB more to load.

const tile = 256, margin = 160;           // px; the standing canvas is larger by the margin on each side
const nearest = 19, farthest = 2;         // zoom
const streetZoom = 14, unit = 2 ** 20;    // streets are cut into these tiles, and kept in 1/2^20 of the world
const keptTiles = 256, batch = 200;
const earth = 40_075_016.686;             // m, round the equator
const clickPx = 6, doubleMs = 300;

export const xOf = longitude => (longitude + 180) / 360;
export const yOf = latitude => {
  const sine = Math.sin(Math.max(-85.05, Math.min(85.05, latitude)) * Math.PI / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
};
export const longitudeOf = x => (((x % 1) + 1) % 1) * 360 - 180;
export const latitudeOf = y => Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180 / Math.PI;
const shortWay = x => x - Math.round(x);

/** An encoded polyline of 5 decimals as [latitude, longitude] pairs. */
export function decode(text) {
  const places = [], sum = [0, 0];
  for (let at = 0; at < text.length;) {
    for (let axis = 0; axis < 2; axis++) {
      let value = 0, shift = 0, byte;
      do {
        byte = text.charCodeAt(at++) - 63;
        value += (byte & 31) * 2 ** shift;
        shift += 5;
      } while (byte >= 32 && at < text.length);
      sum[axis] += value % 2 ? -(value + 1) / 2 : value / 2;
    }
    places.push([sum[0] / 1e5, sum[1] / 1e5]);
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

/** Ways by tiles, each a path for each class, relative to the tile's corner. */
class Streets {
  tiles = new Map();

  add({ ways }) {
    for (const { c, p } of ways) {
      const places = decode(p).map(([latitude, longitude]) => [xOf(longitude), yOf(latitude)]);
      if (!places.length) continue;
      const [x, y] = places[0].map(value => Math.floor(value * 2 ** streetZoom)), key = `${x}/${y}`;
      if (!this.tiles.has(key)) {
        const corner = [x, y].map(value => value / 2 ** streetZoom);
        this.tiles.set(key, { corner, paths: [0, 1, 2].map(() => new Path2D()), low: [1, 1], high: [0, 0] });
      }
      const { corner, paths, low, high } = this.tiles.get(key);
      places.forEach((place, index) => {
        for (const axis of [0, 1]) {
          low[axis] = Math.min(low[axis], place[axis]);
          high[axis] = Math.max(high[axis], place[axis]);
        }
        const [px, py] = place.map((value, axis) => (value - corner[axis]) * unit);
        paths[c][index ? 'lineTo' : 'moveTo'](px, py);
      });
    }
  }
}

export class LiveMap {
  x = 0.5; y = 0.5; zoom = farthest;
  width = 0; height = 0; scale = tile;
  /** What cards cover at the edges, px: the middle of what is left is the map's. */
  cover = { left: 0, top: 0, right: 0, bottom: 0 };
  colors = {};
  attribution = '';
  #still; #moving; #page; #streets = new Streets(); #street; #asked = new Set(); #tiles; #images = new Map();
  #drawn = { scale: 0 }; #pointers = new Map(); #moved = 0; #pressed = 0; #pinch = 0; #ratio = 1; #on;

  /**
   * `on`: `moved(byHand)` after each change of the view, `picked(x, y)` a click on the map. Listens to the upper canvas
   * for pan, pinch and wheel.
   */
  constructor(still, moving, on) {
    [this.#still, this.#moving, this.#on] = [still, moving, on];
    this.#page = moving.getContext('2d');
    this.#measure();
    new ResizeObserver(() => {
      this.#measure();
      this.#on.moved(false);
    }).observe(moving);
    this.#listen();
  }

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
    this.#on.moved(byHand);
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
    canvas.addEventListener('pointerdown', event => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      if (pointers.size === 1) this.#moved = 0; else this.#pinch = 0;
    });
    canvas.addEventListener('pointermove', event => {
      const before = pointers.get(event.pointerId), [x, y] = at(event);
      if (!before) return;
      pointers.set(event.pointerId, [x, y]);
      this.#moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
      if (pointers.size === 2) return this.#pinched();
      if (this.#moved > clickPx) this.pan(before[0] - x, before[1] - y);
    });
    const lifted = event => {
      if (!pointers.delete(event.pointerId) || pointers.size) return;
      if (event.type !== 'pointerup' || this.#moved > clickPx) return;
      const isDouble = event.timeStamp - this.#pressed < doubleMs;
      this.#pressed = isDouble ? 0 : event.timeStamp;
      if (isDouble) this.zoomBy(1, ...at(event)); else this.#on.picked?.(...at(event));
    };
    for (const type of ['pointerup', 'pointercancel']) canvas.addEventListener(type, lifted);
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
  async load({ streets, tiles, attribution = '' } = {}) {
    [this.#street, this.#tiles, this.attribution] = [streets, tiles, attribution];
    if (streets && !streets.includes('{x}')) await this.#fetch(streets);
    this.redraw();
  }
  async #fetch(path) {
    this.#asked.add(path);
    const answer = await fetch(path).catch(() => ({}));
    if (answer.ok) this.#streets.add(await answer.json()); else this.#asked.delete(path);
    this.redraw();
  }
  redraw() { this.#drawn.scale = 0; }

  /** Draws what stands where the view has changed so far that it must be, and moves it else. */
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
    const page = this.#still.getContext('2d'), { colors, width, height } = this, ratio = this.#ratio;
    page.setTransform(ratio, 0, 0, ratio, margin * ratio, margin * ratio);
    page.fillStyle = colors.ground;
    page.fillRect(-margin, -margin, width + 2 * margin, height + 2 * margin);
    if (this.#tiles) this.#drawTiles(page); else this.#drawGround(page);
    if (this.#street && !this.#tiles) this.#drawStreets(page);
  }

  #drawGround(page) {
    const all = [...this.#streets.tiles.values()];
    page.fillStyle = this.colors.land;
    if (!all.length || this.#street?.includes('{x}')) {
      page.fillRect(-margin, -margin, this.width + 2 * margin, this.height + 2 * margin);
      return this.#street || this.#drawGrid(page);
    }
    const edge = (side, axis, pick) => pick(...all.map(part => part[side][axis]));
    this.place(edge('low', 0, Math.min), edge('low', 1, Math.min));
    const { px, py } = this, pad = 10;
    this.place(edge('high', 0, Math.max), edge('high', 1, Math.max));
    page.beginPath();
    page.roundRect(px - pad, py - pad, this.px - px + 2 * pad, this.py - py + 2 * pad, 18);
    page.fill();
  }

  #drawGrid(page) {
    const step = 2 ** -(Math.floor(this.zoom) + 1);
    page.strokeStyle = this.colors.street1;
    page.lineWidth = 1;
    page.beginPath();
    for (let x = Math.floor(this.xAt(-margin) / step) * step; x < this.xAt(this.width + margin); x += step) {
      const px = Math.round((x - this.x) * this.scale + this.centerX) + 0.5;
      page.moveTo(px, -margin);
      page.lineTo(px, this.height + margin);
    }
    for (let y = Math.floor(this.yAt(-margin) / step) * step; y < this.yAt(this.height + margin); y += step) {
      const py = Math.round((y - this.y) * this.scale + this.centerY) + 0.5;
      page.moveTo(-margin, py);
      page.lineTo(this.width + margin, py);
    }
    page.stroke();
  }

  /** In metres, like the streets themselves, but neither thinner nor wider than reads well. */
  #widthOf(kind) {
    const meters = [7, 11, 17][kind] * 2 ** this.zoom / 2 ** 17 * 1.1;
    return Math.max([0.55, 0.9, 1.5][kind], Math.min([16, 24, 34][kind], meters));
  }

  #drawStreets(page) {
    this.#askTiles();
    const [low, high] = [-margin, margin], ratio = this.#ratio, grow = this.scale / unit;
    const seen = [...this.#streets.tiles.values()].filter(({ low: [west, north], high: [east, south] }) => {
      this.place(west, north);
      if (this.px > this.width + high || this.py > this.height + high) return false;
      this.place(east, south);
      return this.px > low && this.py > low;
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
    const size = 2 ** streetZoom, [east, south] = [this.xAt(this.width + margin), this.yAt(this.height + margin)];
    for (let x = Math.floor(this.xAt(-margin) * size); x <= east * size; x++) {
      for (let y = Math.floor(this.yAt(-margin) * size); y <= south * size; y++) {
        const path = this.#street.replace('{x}', ((x % size) + size) % size).replace('{y}', y);
        if (!this.#asked.has(path) && this.#asked.size < 4096) this.#fetch(path);
      }
    }
  }

  #drawTiles(page) {
    const level = Math.max(0, Math.min(19, Math.round(this.zoom))), size = 2 ** level, wide = this.scale / size;
    const [east, south] = [this.xAt(this.width + margin) * size, this.yAt(this.height + margin) * size];
    for (let x = Math.floor(this.xAt(-margin) * size); x <= east; x++) {
      for (let y = Math.max(0, Math.floor(this.yAt(-margin) * size)); y <= Math.min(south, size - 1); y++) {
        const image = this.#image(this.#tiles.replace('{z}', level).replace('{x}', ((x % size) + size) % size)
          .replace('{y}', y));
        if (!image.naturalWidth) continue;
        const [left, top] = [(x / size - this.x) * this.scale + this.centerX,
          (y / size - this.y) * this.scale + this.centerY];
        page.drawImage(image, Math.floor(left), Math.floor(top), Math.ceil(wide) + 1, Math.ceil(wide) + 1);
      }
    }
    page.globalAlpha = this.colors.dim;
    page.fillStyle = this.colors.ground;
    page.fillRect(-margin, -margin, this.width + 2 * margin, this.height + 2 * margin);
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

  /** A line through [latitude, longitude] pairs; `dash` as of a canvas. */
  line(places, color, width, dash = []) {
    const page = this.#page;
    if (places.length < 2) return;
    page.beginPath();
    places.forEach(([latitude, longitude], index) => {
      this.project(latitude, longitude);
      page[index ? 'lineTo' : 'moveTo'](this.px, this.py);
    });
    page.setLineDash(dash);
    page.lineCap = page.lineJoin = 'round';
    page.strokeStyle = color;
    page.lineWidth = width;
    page.stroke();
    page.setLineDash([]);
  }

  circle(px, py, radius, fill, stroke, width = 1.2) {
    const page = this.#page;
    page.beginPath();
    page.arc(px, py, radius, 0, 2 * Math.PI);
    if (fill) { page.fillStyle = fill; page.fill(); }
    if (stroke) { page.strokeStyle = stroke; page.lineWidth = width; page.stroke(); }
  }

  /** A pin with a letter, its point at the place. */
  pin({ latitude, longitude }, letter, color) {
    this.project(latitude, longitude);
    const page = this.#page, { px, py } = this;
    page.beginPath();
    page.arc(px, py - 20, 11, 0.8 * Math.PI, 2.2 * Math.PI);
    page.quadraticCurveTo(px + 3, py - 7, px, py);
    page.quadraticCurveTo(px - 3, py - 7, px - 11 * Math.cos(0.2 * Math.PI), py - 20 + 11 * Math.sin(0.2 * Math.PI));
    page.closePath();
    page.fillStyle = color;
    page.fill();
    page.lineWidth = 2;
    page.strokeStyle = this.colors.edge;
    page.stroke();
    this.text(letter, px, py - 20, this.colors.onAccent, 'bold 12px');
  }

  /** The rest of a route, or a dotted line to a target. */
  way([latitude, longitude], route, target) {
    if (route) {
      const across = Math.cos(latitude * Math.PI / 180);
      const from = route.map(([north, east]) => Math.hypot(north - latitude, (east - longitude) * across));
      const nearest = from.indexOf(Math.min(...from));
      this.#page.globalAlpha = 0.5;
      this.line([[latitude, longitude], ...route.slice(nearest + 1)], this.colors.track, 4, [0.1, 8]);
    } else if (target) {
      this.#page.globalAlpha = 0.7;
      this.line([[latitude, longitude], [target.latitude, target.longitude]], this.colors.muted, 3, [0.1, 7]);
    }
    this.#page.globalAlpha = 1;
  }

  /** A growing ring round the followed one. */
  pulse(px, py, size, color) {
    const beat = (performance.now() % 2000) / 2000;
    this.#page.globalAlpha = 0.5 * (1 - beat);
    this.circle(px, py, size + 4 + beat * 20, '', color, 2.5);
    this.#page.globalAlpha = 1;
  }

  /** Text with a plate below it, or without. */
  text(text, px, py, color, font = '600 11px', plate = '') {
    const page = this.#page;
    page.font = `${font} system-ui, sans-serif`;
    page.textAlign = 'center';
    page.textBaseline = 'middle';
    if (plate) {
      const wide = page.measureText(text).width + 12;
      page.beginPath();
      page.roundRect(px - wide / 2, py - 9, wide, 18, 9);
      page.fillStyle = plate;
      page.fill();
    }
    page.fillStyle = color;
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

// MARK: Arrows

/** Outlines by kind: x to the right and y forwards, in sizes; a second one is a hole. */
const arrow = [[0, 1.1], [0.78, -0.85], [0, -0.45], [-0.78, -0.85]];
const hole = [[0, 0.62], [-0.46, -0.46], [0, -0.22], [0.46, -0.46]];
const slim = [[0, 1.15], [0.52, -0.2], [0, -0.85], [-0.52, -0.2]];
const outlines = { available: [arrow], on_trip: [arrow], unavailable: [arrow, hole], background: [slim] };

/** Many arrows in few fills: add each, then draw. A group is all of one kind, colour and strength. */
export class Arrows {
  #groups = new Map();

  clear() {
    for (const tones of this.#groups.values()) for (const group of tones) if (group) group.count = 0;
  }

  /** `kind`: a driver's status, or `offline`; `tone`: 0 fresh, 1 faded, 2 grey; `heading` NaN where none is known. */
  add(kind, tone, px, py, heading) {
    const tones = this.#groups.get(kind) ?? [];
    if (!tones.length) this.#groups.set(kind, tones);
    const group = tones[tone] ??= { kind, tone, count: 0, data: new Float32Array(4 * batch) };
    if (4 * group.count === group.data.length) {
      const larger = new Float32Array(2 * group.data.length);
      larger.set(group.data);
      group.data = larger;
    }
    const angle = heading * Math.PI / 180, at = 4 * group.count++;
    group.data[at] = px;
    group.data[at + 1] = py;
    group.data[at + 2] = Math.sin(angle);
    group.data[at + 3] = Math.cos(angle);
  }

  /** `strengths` by tone, all times `strength`. The edge is a larger fill below: a stroke costs three times as much. */
  draw(page, colors, size, strengths = [1, 1, 1], strength = 1) {
    for (const tones of this.#groups.values()) {
      for (const group of tones) {
        if (!group?.count) continue;
        page.globalAlpha = strengths[group.tone] * strength;
        this.#fill(page, group, colors.edge, size, size < 6 ? 1.2 : 1.6);
        this.#fill(page, group, group.tone === 2 ? colors.offline : colors[group.kind] ?? colors.offline, size, 0);
        if (group.kind === 'on_trip' && size >= 6) this.#dots(page, group, colors.edge, size * 0.2);
      }
    }
    page.globalAlpha = 1;
  }

  #fill(page, { kind, data, count }, color, size, edge) {
    const isDot = size < 6, rings = outlines[kind], grown = 1 + 1.9 * edge / size;
    page.fillStyle = color;
    for (let first = 0; first < count; first += batch) {
      page.beginPath();
      for (let at = 4 * first; at < 4 * Math.min(first + batch, count); at += 4) {
        const [px, py, sine, cosine] = [data[at], data[at + 1], data[at + 2], data[at + 3]];
        if (isDot || !rings || sine !== sine) {
          const radius = (isDot ? size * 0.75 : size * 0.6) + edge;
          page.moveTo(px + radius, py);
          page.arc(px, py, radius, 0, 2 * Math.PI);
          const isHollow = !edge && size >= 4 && (!rings || rings[1]);
          if (isHollow) {
            page.moveTo(px + radius * 0.5, py);
            page.arc(px, py, radius * 0.5, 0, 2 * Math.PI, true);
          }
          continue;
        }
        for (const ring of edge ? rings.slice(0, 1) : rings) {
          for (let corner = 0; corner < 4; corner++) {
            const x = ring[corner][0] * size * grown, y = (ring[corner][1] + 0.1) * size * grown - 0.1 * size;
            const toX = px + x * cosine + y * sine, toY = py + x * sine - y * cosine;
            if (corner) page.lineTo(toX, toY); else page.moveTo(toX, toY);
          }
          page.closePath();
        }
      }
      page.fill();
    }
  }

  #dots(page, { data, count }, color, radius) {
    page.fillStyle = color;
    for (let first = 0; first < count; first += batch) {
      page.beginPath();
      for (let at = 4 * first; at < 4 * Math.min(first + batch, count); at += 4) {
        page.moveTo(data[at] + radius, data[at + 1]);
        page.arc(data[at], data[at + 1], radius, 0, 2 * Math.PI);
      }
      page.fill();
    }
  }
}

/** The map's colours, as the style sheet has them. */
export function colorsOf(element) {
  const style = getComputedStyle(element);
  const names = 'ground land street0 street1 street2 casing edge text plate accent on-accent track track-edge raw '
    + 'fence dim muted available on-trip unavailable background offline';
  const colors = names.split(' ').map(name => [name, style.getPropertyValue(`--${name}`).trim()]);
  const { 'on-accent': onAccent, 'track-edge': trackEdge, 'on-trip': on_trip, ...others } = Object.fromEntries(colors);
  return { ...others, onAccent, trackEdge, on_trip };
}

// MARK: - Elements

export const $ = id => document.getElementById(id);
export const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
export const isPhone = () => innerWidth <= 640;

export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}
export function setText(node, text) { if (node.textContent !== text) node.textContent = text; }
export function icon(kind) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.append(document.createElementNS('http://www.w3.org/2000/svg', 'use'));
  svg.firstChild.setAttribute('href', `#${kind}`);
  return svg;
}

let said;
/** Says something for some seconds. */
export function say(text, seconds = 6) {
  clearTimeout(said);
  setText($('toast'), text);
  $('toast').hidden = !text;
  said = setTimeout(() => { $('toast').hidden = true; }, seconds * 1000);
}

// MARK: Words

const wholeNumber = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
export const figure = value => value === undefined || value === null || Number.isNaN(value) ? '–'
  : value >= 100 || Number.isInteger(value) ? wholeNumber.format(value) : value.toFixed(value >= 10 ? 1 : 2);
export const count = value => wholeNumber.format(value);
export const clock = time => new Date(time).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
export function ago(seconds) {
  if (!(seconds < Infinity)) return '–';
  if (seconds < 2.5) return 'now';
  return seconds < 100 ? `${Math.round(seconds)} s ago`
    : seconds < 5400 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}
export const far = meters => meters < 995 ? `${Math.round(meters / 10) * 10} m` : `${(meters / 1000).toFixed(1)} km`;
export const minutes = (arrival, now) => {
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
const steps = ['requested', 'accepted', 'driver_en_route', 'arrived_pickup', 'trip_started', 'arrived_destination'];
export const isOver = trip => !trip || trip.status === 'completed' || trip.status === 'cancelled';
/** Where a trip's driver goes now. */
export const targetOf = trip => isOver(trip) ? undefined
  : steps.indexOf(trip.status) < 3 ? trip.pickup : trip.status === 'arrived_destination' ? undefined : trip.dropoff;

export function showSteps(list, status) {
  if (!list.children.length) list.append(...steps.map(step => element('li', { title: moves[step] })));
  const at = status === 'completed' ? steps.length : steps.indexOf(status);
  [...list.children].forEach((item, index) => {
    item.className = index <= at ? 'done' : index === at + 1 && at >= 0 ? 'now' : '';
    if (index === at) item.setAttribute('aria-current', 'step'); else item.removeAttribute('aria-current');
  });
}

export function showEta(eta, now) {
  setText($('eta-time'), minutes(eta.arrivalTime, now));
  setText($('eta-target'), `to ${eta.target} at ${clock(eta.arrivalTime)}`);
  setText($('eta-basis'), `${far(eta.distance)} · ${eta.basis === 'route' ? 'by road' : 'direct'}`);
}

// MARK: Dark and light

const dark = matchMedia('(prefers-color-scheme: dark)');
/** Follows the system until the button is used; `changed` is called at once, too. */
export function theme(button, changed) {
  const show = () => {
    const chosen = localStorage.getItem('theme');
    document.documentElement.classList.toggle('dark', chosen ? chosen === 'dark' : dark.matches);
    changed();
  };
  const swap = () => {
    localStorage.setItem('theme', document.documentElement.classList.contains('dark') ? 'light' : 'dark');
    show();
  };
  button.addEventListener('click', swap);
  dark.addEventListener('change', show);
  show();
  return swap;
}

// MARK: Lines of figures

/** Draws values, oldest first, of which `room` fill the width; undefined leaves a gap. Gives least and greatest. */
export function drawLine(canvas, values, room, color, { least = 0, top = 4 } = {}) {
  const { clientWidth: width, clientHeight: height } = canvas, ratio = Math.min(devicePixelRatio || 1, 2);
  if (!width) return [0, 0];
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const page = canvas.getContext('2d'), known = values.filter(Number.isFinite);
  const low = Math.min(least, ...known), high = Math.max(...known, low + 1e-9);
  page.setTransform(ratio, 0, 0, ratio, 0, 0);
  page.clearRect(0, 0, width, height);
  const x = index => width * (1 - (values.length - 1 - index) / Math.max(1, room - 1));
  const y = value => height - 1 - (value - low) / (high - low) * (height - top - 1);
  const path = new Path2D(), below = new Path2D();
  let from = NaN, last = NaN;
  const close = () => {
    if (from === from) below.lineTo(x(last), height), below.lineTo(x(from), height);
    from = NaN;
  };
  values.forEach((value, index) => {
    if (!Number.isFinite(value)) return close();
    if (from !== from) {
      from = index;
      path.moveTo(x(index), y(value));
      below.moveTo(x(index), y(value));
    } else {
      path.lineTo(x(index), y(value));
      below.lineTo(x(index), y(value));
    }
    last = index;
  });
  close();
  page.fillStyle = page.strokeStyle = color;
  page.globalAlpha = 0.16;
  page.fill(below);
  page.globalAlpha = 1;
  page.lineWidth = 1.4;
  page.lineJoin = 'round';
  page.stroke(path);
  return [known.length ? Math.min(...known) : NaN, known.length ? Math.max(...known) : NaN];
}

// MARK: Sheets on a phone

/** A card's grip: dragged, or pressed, between three heights (parts of the window). */
export function sheet(card, grip, heights, changed) {
  let from = NaN, start = 0, moved = 0;
  const set = part => {
    card.style.setProperty('--sheet', `${Math.round(part * innerHeight)}px`);
    changed();
  };
  grip.addEventListener('pointerdown', event => {
    grip.setPointerCapture(event.pointerId);
    [from, start, moved] = [event.clientY + card.offsetHeight, event.clientY, 0];
    card.classList.add('dragging');
  });
  grip.addEventListener('pointermove', event => {
    if (from !== from) return;
    moved = Math.max(moved, Math.abs(event.clientY - start));
    set(Math.max(heights[0], Math.min(heights.at(-1), (from - event.clientY) / innerHeight)));
  });
  const nearest = part => heights.reduce((best, height) =>
    Math.abs(height - part) < Math.abs(best - part) ? height : best);
  const next = () => {
    const at = heights.indexOf(nearest(card.offsetHeight / innerHeight));
    set(heights[(at + 1) % heights.length]);
  };
  const end = ({ type }) => {
    card.classList.remove('dragging');
    if (from === from && moved > 4) set(nearest(card.offsetHeight / innerHeight));
    else if (from === from && type === 'pointerup') next();
    from = NaN;
  };
  grip.addEventListener('pointerup', end);
  grip.addEventListener('pointercancel', end);
  grip.addEventListener('click', ({ detail }) => detail || next());   // by a key
}

/** The token of `#token=…`, which is taken out of the address at once; kept in the given storage. */
export function takeToken(storage, name) {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (location.hash) history.replaceState(null, '', location.pathname + location.search);
  if (given) storage.setItem(name, given);
  return given ?? storage.getItem(name) ?? '';
}
export const hubURL = () => `${location.origin.replace('http', 'ws')}/v1/ws`;

export const askAbout = () => fetch('/v1/about').then(answer => answer.json()).catch(() => ({}));
/** With each connection: a hub of another release has another page, which takes the place of this one. */
export async function followRelease({ release: before }) {
  const { release } = await askAbout();
  if (!before || !release || release === before) return;
  say(`The hub is now ${release}: its page is loaded.`, 9);
  setTimeout(() => location.reload(), 2000 + 4000 * Math.random());   // not all pages at once
}
