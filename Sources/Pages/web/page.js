// What the live map and the rider's page share besides the map: arrows, words and lines of figures, colours, sheets.
// Nothing from the wire becomes markup: texts are set as texts.

const batch = 200;                         // arrows that are filled at once

// MARK: Arrows

/** Outlines by kind: x to the right and y forwards, in sizes; a second one is a hole. */
const arrow = [[0, 1.1], [0.78, -0.85], [0, -0.45], [-0.78, -0.85]];
const hole = [[0, 0.62], [-0.46, -0.46], [0, -0.22], [0.46, -0.46]];
const slim = [[0, 1.15], [0.52, -0.2], [0, -0.85], [-0.52, -0.2]];
export const outlines = { available: [arrow], on_trip: [arrow], unavailable: [arrow, hole], background: [slim] };

/** Many arrows in few fills: add each, then draw. A group is all of one kind, colour and strength. */
export class Arrows {
  #groups = new Map();

  clear() {
    for (const group of this.#groups.values()) group.count = 0;
  }

  /** `kind`: a driver's status, or `offline`; `tone`: 0 fresh, 1 faded, 2 grey; `heading` NaN where none is known. */
  add(kind, tone, px, py, heading) {
    const key = kind + tone;
    if (!this.#groups.has(key)) this.#groups.set(key, { kind, tone, count: 0, data: [] });
    const group = this.#groups.get(key), { data } = group, angle = heading * Math.PI / 180, at = 4 * group.count++;
    data[at] = px;
    data[at + 1] = py;
    data[at + 2] = Math.sin(angle);
    data[at + 3] = Math.cos(angle);
  }

  /** `strengths` by tone, all times `strength`. The edge is a larger fill below, cheaper than a stroke. */
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

  /** Outlines, `grown` so many times, or circles where there are none or no heading is known; a hole has a radius. */
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

// MARK: Elements

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
/** Says something for some seconds. */
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

// MARK: Words

export const count = new Intl.NumberFormat('en', { maximumFractionDigits: 0 }).format;
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
const steps = ['requested', 'accepted', 'driver_en_route', 'arrived_pickup', 'trip_started', 'arrived_destination'];
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

export function showEta(eta, now) {
  setText('eta-time', minutes(eta.arrivalTime, now));
  setText('eta-target', `to ${eta.target} at ${clock(eta.arrivalTime)}`);
  setText('eta-basis', `${far(eta.distance)} · ${eta.basis === 'route' ? 'by road' : 'direct'}`);
}

const panPx = 120;
export const mapKeys = map => ({
  arrowleft: () => map.pan(-panPx, 0), arrowright: () => map.pan(panPx, 0), arrowup: () => map.pan(0, -panPx),
  arrowdown: () => map.pan(0, panPx), '+': () => map.zoomBy(0.5), '=': () => map.zoomBy(0.5),
  '-': () => map.zoomBy(-0.5),
});

// MARK: Dark and light

const dark = matchMedia('(prefers-color-scheme: dark)');
/** Follows the system until the button is used; the map gets the colours of the style sheet. Gives what swaps them. */
export function theme(map) {
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
  return $('theme').onclick = () => {
    localStorage.setItem('theme', classList.contains('dark') ? 'light' : 'dark');
    show();
  };
}

// MARK: Lines of figures

/** Draws values, oldest first, of which `room` fill the width; undefined leaves a gap. Gives least and greatest. */
export function drawLine(canvas, values, room, color, { least = 0, top = 4 } = {}) {
  const { clientWidth: width, clientHeight: height } = canvas, ratio = Math.min(devicePixelRatio || 1, 2);
  if (!width) return [0, 0];
  Object.assign(canvas, { width: width * ratio, height: height * ratio });   // which clears it
  const page = canvas.getContext('2d'), known = values.filter(Number.isFinite);
  const low = Math.min(least, ...known), high = Math.max(...known, low + 1e-9), runs = [[]];
  values.forEach((value, index) => {
    if (!Number.isFinite(value)) return runs.push([]);
    runs.at(-1).push([width * (1 - (values.length - 1 - index) / Math.max(1, room - 1)),
      height - 1 - (value - low) / (high - low) * (height - top - 1)]);
  });
  page.scale(ratio, ratio);
  Object.assign(page, { fillStyle: color, strokeStyle: color, lineWidth: 1.4, lineJoin: 'round' });
  for (const run of runs.filter(({ length }) => length)) {
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

// MARK: Sheets on a phone

/** A card's grip: dragged, or pressed, between three heights (parts of the window). */
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
  const next = () => set(heights[(nearest() + 1) % heights.length]);
  grip.onpointerup = grip.onpointercancel = () => {
    card.classList.remove('dragging');
    if (moved > 4) set(heights[nearest()]); else next();
    from = NaN;
  };
  grip.onclick = ({ detail }) => detail || next();   // by a key
}

// MARK: Hub

/** The token of `#token=…`, which is taken out of the address at once; kept in the given storage. */
export function takeToken(storage, name) {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (location.hash) history.replaceState(null, '', location.pathname + location.search);
  if (given) storage.setItem(name, given);
  return given ?? storage.getItem(name) ?? '';
}
export const hubURL = () => `${location.origin.replace('http', 'ws')}/v1/ws`;

export const askAbout = () => fetch('/v1/about').then(answer => answer.json()).catch(() => ({}));
/** With each connection: another release of the hub has another page. */
export async function followRelease({ release: before }) {
  const { release } = await askAbout();
  if (!before || !release || release === before) return;
  say(`The hub is now ${release}: its page is loaded.`, 9);
  setTimeout(() => location.reload(), 2000 + 4000 * Math.random());   // not all pages at once
}
