// The live map: who is connected, what is shown, keys, and the loop that draws. The drivers are in fleet.js, the
// followed one in follow.js, the hub's figures in tiles.js; all talk to the hub by hub.js and nothing else.

import { Hub } from './hub.js';
import { LiveMap, colorsOf, decode } from './map.js';
import { Fleet } from './fleet.js';
import { Follow } from './follow.js';
import { Tiles } from './tiles.js';
import { $, element, hubURL, isPhone, reducedMotion, say, setText, sheet, takeToken, theme } from './ui.js';

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
  if (target.matches('input')) return;
  const act = keys[key.length === 1 ? key.toLowerCase() : key];
  if (!act) return;
  event.preventDefault();
  act();
});

// MARK: The beginning

const about = await fetch('/v1/about').then(answer => answer.json()).catch(() => ({}));
const isDev = !token && about.devAuth;
$('dev').hidden = !isDev;
const id = `map-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
const hub = new Hub(hubURL(), isDev ? { dev: { role: 'ops', id } } : { token: tokenFor });
hub.on('state', stateChanged);
hub.on('error', ({ code, message }) => {
  say(code === 'forbidden' ? 'This token is not one of a control room.' : message);
});

fleet = new Fleet(hub, map, layers, pick, about.map?.box);
follow = new Follow(hub, map, fleet, layers, isPlace => {
  isDirty = true;
  if (isPlace) return;
  cover();
  follow.card();
});
const tiles = new Tiles(hub, map);
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
