// The live map: fleet and followed driver on it, the hub's figures, who is connected, keys, and the loop that draws. It
// talks to the hub by hub.js and nothing else. What its parts share, they import from here, and use once it is there.

import { Fleet } from './fleet.js';
import { Follow } from './follow.js';
import { Hub } from './hub.js';
import { LiveMap, disc } from './map.js';
import { $, askAbout, count, decode, drawLine, element, figure, followRelease, hubURL, isPhone, mapKeys, reducedMotion,
  say, setText, sheet, takeToken, theme } from './page.js';

const fencesMs = 15_000, tokenKey = 'token', most = 5000;
const layerNames = { track: 'Track', raw: 'Raw fixes', accuracy: 'Accuracy', fences: 'Fences', cells: 'Cells',
  labels: 'Labels' };

// MARK: What the parts share

export const layers = { track: true, raw: false, accuracy: true, fences: true, cells: false, labels: true };
export const map = new LiveMap();
export const about = await askAbout();

let token = takeToken(sessionStorage, tokenKey), given;
const isDev = !token && about.devAuth;
$('dev').hidden = !isDev;
const whys = { connect: 'This hub wants to know who looks.', refused: 'The hub did not take the token.',
  expiring: 'The token ends soon.' };

function askToken(why) {
  setText('token-why', why);
  $('token').hidden = false;
}
/** Asks for a token in a field; what is there is tried first. */
function tokenFor({ reason, signal }) {
  if (reason === 'connect' && token) return token;
  askToken(whys[reason]);
  if (reason !== 'expiring') $('token-text').focus();
  return new Promise((resolve, reject) => {
    given = resolve;
    signal.addEventListener('abort', () => reject(new Error('not needed any more')));
  });
}
$('token').onsubmit = event => {
  event.preventDefault();
  token = $('token-text').value.trim();
  if (!token) return;
  sessionStorage.setItem(tokenKey, token);
  $('token-text').value = '';
  $('token').hidden = true;
  given?.(token);
  hub.connect();
};

const id = `map-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
export const hub = new Hub(hubURL(), isDev ? { dev: { role: 'ops', id } } : { token: tokenFor });

/** All pages of a list of the hub's, or so many that it is enough. */
export async function all(ask, name, question) {
  const found = [];
  let cursor;
  do {
    const page = await hub[ask]({ ...question, cursor });
    found.push(...page[name]);
    cursor = page.next;
  } while (cursor && found.length < most);
  return found;
}

// MARK: The hub's figures

const room = 600;     // seconds
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
const details = {
  Sessions: history => `: ${each(history.at(-1)?.sessions ?? {})}.`,
  'Drops and errors'(history) {
    const all = {};
    for (const { drops, errors } of history) {
      for (const [name, value] of Object.entries({ ...drops, ...errors })) all[name] = (all[name] ?? 0) + value;
    }
    return `: ${each(all)}.`;
  },
};

class Tiles {
  #history = []; #nodes; #open = -1;

  constructor() {
    this.#nodes = readings.map(([name, unit, , , meaning], index) => {
      const value = element('span', { textContent: '–' }), beside = element('i'), line = element('canvas');
      const button = element('button', { type: 'button', className: 'tile', title: meaning }, element('span', {}, name),
        beside, element('b', {}, value, element('small', {}, unit)), line);
      button.onclick = () => this.#enlarge(this.#open === index ? -1 : index);
      $('tiles').append(button);
      return { button, value, beside, line };
    });
    $('chart-end').onclick = () => this.close();
    const feed = hub.stats();
    feed.on('snapshot', ({ history = [] }) => this.#take(history));
    feed.on('stats', second => this.#take([...this.#history, second]));
  }
  #take(history) {
    this.#history = history.slice(-room);
    if (document.visibilityState === 'visible') this.draw();
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
    this.draw();
  }

  draw() {
    const history = this.#history, last = history.at(-1), before = history.at(-2);
    readings.forEach(([name, unit, color, valueOf, meaning, besideOf], index) => {
      const { value, beside, line } = this.#nodes[index];
      const text = last ? figure(valueOf(last)) : '–';
      setText(value, text);
      if (last && besideOf) setText(beside, besideOf(last, before));
      const values = history.map(valueOf), ink = map.colors[color];
      drawLine(line, values, room, ink, { top: 10 });
      if (index !== this.#open) return;
      const [low, high] = drawLine($('chart-line'), values, room, ink);
      setText('chart-value', `${text} ${unit}`);
      setText('chart-title', name);
      setText('chart-meaning', meaning + (details[name]?.(history) ?? ''));
      setText('chart-range', `${count(values.length)} s: ${figure(low)} to ${figure(high)} ${unit}`);
    });
  }
}

let isDirty = true, shownFences = [], loadedFences = -Infinity;
const fleet = new Fleet(pick, about.map?.box), tiles = new Tiles();
const follow = new Follow(fleet, isPlace => {
  isDirty = true;
  if (isPlace) return;
  follow.card();
  cover();
});

// MARK: The map

map.moved = byHand => {
  isDirty = true;
  if (byHand) follow.letGo();
  fleet.look();
  showScale();
};
map.picked = (px, py) => {
  const id = fleet.at(px, py);
  if (id !== undefined) pick(id);
};

function showScale() {
  const [width, text] = map.scaleBar();
  $('scale').style.width = `${Math.round(width)}px`;
  setText('scale', text);
}

/** What the cards cover. */
function cover() {
  const card = $('follow').hidden ? $('fleet') : $('follow');
  map.cover = isPhone() ? { left: 0, right: 0, top: 70, bottom: card.offsetHeight }
    : { left: 310, right: $('follow').hidden ? 50 : 336, top: 0, bottom: 112 };
  isDirty = true;
}

async function showAll() {
  const box = await fleet.bounds().catch(() => 0) || about.map?.box;
  follow.letGo();
  if (box) map.fit(box);
}

function pick(id, seen) {
  follow.begin(id, seen);
  if (isPhone()) $('list').blur();
}

// MARK: Layers

for (const name in layers) {
  const input = element('input', { type: 'checkbox', role: 'switch', id: name, checked: layers[name] });
  input.onchange = () => {
    layers[name] = input.checked;
    if (name === 'raw') follow.rawChanged();
    isDirty = true;
  };
  $('switches').append(element('label', { className: `switch ${name}` }, layerNames[name], input));
}

async function loadFences() {
  if (performance.now() - loadedFences < fencesMs || !layers.fences || document.visibilityState === 'hidden') return;
  loadedFences = performance.now();
  try {
    shownFences = (await all('fences', 'fences', { shape: 'full', limit: 500 })).map(outlined);
  } catch (error) {
    if (hub.state.is === 'live') say(`Fences: ${error.message}`);
  }
}
/** Rings, and a corridor's way, of [latitude, longitude]. */
function outlined(fence) {
  const { type, coordinates = [] } = fence.polygon?.geometry ?? fence.polygon ?? {}, { route } = fence.corridor ?? {};
  const rings = [coordinates].flat(type === 'MultiPolygon' ? 2 : 1)
    .map(ring => ring.map(([longitude, latitude]) => [latitude, longitude]));
  return { ...fence, rings, way: typeof route === 'string' ? decode(route) : route };
}

/** Gives what has to be written above all else. */
function drawFences() {
  const { fence: color } = map.colors;
  return shownFences.map(({ circle, corridor, rings, way, title, fenceId, inside }) => {
    let top = [0, Infinity], path = new Path2D();
    const lift = y => { if (y < top[1]) top = [map.px, y]; };
    if (circle) {
      map.project(circle.latitude, circle.longitude);
      const radius = circle.radius * map.pixels(circle.latitude);
      path = disc(map.px, map.py, radius);
      lift(map.py - radius);
    }
    for (const ring of way ? [way] : rings) path.addPath(map.path(ring, lift));
    if (way) map.stroke(path, color, corridor.width * map.pixels(map.latitude), 0.16);
    else {
      map.fill(path, color, 0.13, 'evenodd');
      map.stroke(path, color, 1.4, 0.9, [5, 4]);
    }
    return [`${title ?? fenceId}  ${inside ?? ''}`, top[0], top[1] - 13];
  });
}

// MARK: The connection

function showState() {
  const { is, retryAt, reason } = hub.state, left = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
  const words = { waiting: `reconnecting in ${left} s`, closed: 'token refused' };
  setText('state', !$('token').hidden && is !== 'live' ? 'no token' : words[is] ?? is);
  $('pill').className = `pill ${is}`;
  $('pill').title = reason?.message ?? '';
}
hub.on('state', ({ is, reason }) => {
  if (is === 'waiting' && reason?.code === 1001) say('The hub is stopping.');
  if (is === 'live') {
    followRelease(about);
    $('token').hidden = true;
    loadedFences = -Infinity;
    loadFences();
  }
  if (is === 'closed') askToken(`${whys.refused} ${reason.message}`);
  isDirty = true;
  showState();
});
hub.on('error', ({ code, message }) => {
  say(code === 'forbidden' ? 'This token is not one of a control room.' : message);
});

// MARK: Drawing

function draw() {
  requestAnimationFrame(draw);
  const isGone = hub.state.is !== 'live';
  if (!isDirty && reducedMotion.matches) return;
  isDirty = false;
  const now = hub.now(), place = follow.aim(now), page = map.begin();
  const names = layers.fences ? drawFences() : [];
  fleet.draw(page, now, place && follow.id, isGone);
  for (const [name, px, py] of names) map.text(name, px, py, map.colors.fence, '700 11px', map.colors.plate);
  follow.draw(page, place, isGone);
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

const keys = { ...mapKeys(map), 0: showAll, d: theme(map), '/': () => $('query').focus() };
for (const [key, name] of [['f', 'fences'], ['c', 'cells'], ['l', 'labels']]) keys[key] = () => $(name).click();
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

// MARK: The beginning

setText('attribution', about.map?.attribution ?? '');
$('in').onclick = () => map.zoomBy(1);
$('out').onclick = () => map.zoomBy(-1);
$('all').onclick = showAll;
$('recentre').onclick = () => follow.recentre();
$('end').onclick = () => follow.end();
sheet($('fleet'), $('grip'), [0.14, 0.46, 0.86], cover);
sheet($('follow'), $('follow-grip'), [0.24, 0.56, 0.92], cover);
onresize = cover;
cover();
map.load(about.map);
if (about.map?.box) map.fit(about.map.box); else hub.find({ limit: 1 }).then(showAll, () => {});
hub.connect();
setInterval(tick, 1000);
draw();
