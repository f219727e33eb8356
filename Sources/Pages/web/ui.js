// What the live map and the rider's page have in common: elements, words for figures, the colours' switch, lines of
// figures, sheets on a phone. Nothing from the wire becomes markup: texts are set as texts.

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

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
export const figure = value => value === undefined || value === null || Number.isNaN(value) ? '–'
  : value >= 100 || Number.isInteger(value) ? whole.format(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
export const count = value => whole.format(value);
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
