// The rider's page, /track/<trip>#token=…: the car, the way it goes, when it arrives. It knows the one trip that its
// token is for; after that it shows nothing. The token is kept for this trip, so that a bookmark works until then.

import { Hub, Marker, claimsOf } from './hub.js';
import { $, Arrows, LiveMap, ago, askAbout, clock, controls, decode, followRelease, hubURL, isOver, moves,
  reducedMotion, setText, showEta, showSteps, takeToken, targetOf } from './map.js';

const tripId = decodeURIComponent(location.pathname.split('/').filter(Boolean).at(-1)), tokenKey = `trip ${tripId}`;
const token = takeToken(localStorage, tokenKey), marker = new Marker(), arrows = new Arrows();
let trip, eta, route, position, about = {}, isByHand = false, isOffline = false, isDirty = true, cardHeight;

const map = new LiveMap(), nearEdge = 20;   // px, less than `fit` leaves
map.moved = hand => {
  isByHand ||= hand;
  map.showScale();
  isDirty = true;
};

/** Car, pickup and dropoff, whatever of them is ahead. */
function showAll() {
  map.cover = { left: 0, right: 50, top: 45, bottom: $('ride').offsetHeight + 20 };
  const places = [position, targetOf(trip) ?? trip?.dropoff].filter(Boolean);
  map.fit(places);
  isByHand &&= !places.length;
}

/** The token is kept where the same link may work again. */
function over(title, why, isKept = false) {
  $('ride').hidden = true;
  $('tools').hidden = true;
  $('over').hidden = false;
  setText('over-title', title);
  setText('over-why', why);
  if (!isKept) localStorage.removeItem(tokenKey);
  trip = eta = route = position = undefined;
  isDirty = true;
  hub.close();
}
const failed = () => over('Something went wrong', 'Load this page again.', true);
/** The hub does not send whether a link was revoked: only the token's claims are known. */
function refused() {
  const { exp, trips = [], channels = [] } = claimsOf(token), names = [...trips, ...channels];
  const fits = name => [tripId, `trip:${tripId}`].includes(name) || name.includes('*');
  if (exp * 1000 < Date.now()) over('This link has expired', 'Ask for a new one.');
  else if (names.length && !names.some(fits)) over('This link is for another trip', '');
  else over('This link has ended', 'The trip is over, or whoever shared it has taken the link back.');
}

function took(change) {
  trip = { ...trip, ...change };
  if (change.route) route = decode(change.route);
  if (trip.status === 'cancelled') return over('This trip was cancelled', '');
  if (isOver(trip)) return over('This trip has ended', 'Thank you for riding.');
  showSteps(trip.status);
  setText('step', words[trip.status] ?? trip.status);
  setText('since', `since ${clock(trip.timestamp)}`);
  if (!isByHand) showAll();
}
const words = { ...moves, requested: 'Looking for a driver', accepted: 'Your driver is on the way',
  driver_en_route: 'Your driver is on the way', arrived_pickup: 'Your driver is there', trip_started: 'On the way',
  arrived_destination: 'You have arrived' };

const hub = new Hub(hubURL(), { token });
hub.on('state', ({ is, reason }) => {
  if (is === 'closed' && reason.cause !== 'us') if (/^4?401$/.test(reason.code ?? 401)) refused(); else failed();
  if (is === 'live') followRelease(about);
});
const feed = hub.trip(tripId);
feed.on('snapshot', snapshot => {
  if (snapshot.position) located(snapshot.position);
  if (snapshot.eta) eta = snapshot.eta;
  if (snapshot.trip) took(snapshot.trip);
  // Where it begins and ends, and by which way, is said of a trip that is asked for.
  hub.getTrip(tripId).then(took, () => {});
});
feed.on('position', located);
feed.on('eta', next => { eta = next; });
feed.on('update', took);
feed.on('notice', ({ kind }) => { if (/^driver_o/.test(kind)) isOffline = kind === 'driver_offline'; });
feed.on('ended', reason => {
  if (reason === 'asked') return;
  const isUnknown = reason === 'unknown_trip';
  if (isUnknown || reason === 'trip_ended') over('This trip has ended', 'The map is empty now.', isUnknown);
  else if (reason === 'revoked') over('This link has ended', 'Whoever shared it has taken it back.');
  else if (reason === 'forbidden' || reason === 'grant_ended') refused();
  else failed();
});
function located(next) {
  const isFirst = !position;
  isOffline &&= next.timestamp <= position?.timestamp;   // the last one comes again with each connection
  position = next;
  marker.push(next);
  isDirty = true;
  map.project(next.latitude, next.longitude);
  const { px, py } = map, isSeen = map.sees(px, py, -nearEdge) && py < map.height - map.cover.bottom - nearEdge;
  if (isFirst || !isByHand && !isSeen) showAll();
}

function tick() {
  const now = hub.now(), { is, retryAt } = hub.state;
  setText('state', is === 'live' ? 'live' : is === 'waiting' ? 'reconnecting' : 'connecting');
  const left = Math.ceil((retryAt - Date.now()) / 1000);
  setText('left', left >= 0 ? `in ${left} s` : '');
  const age = position?.age + (now - position?.published) / 1000;
  setText('age', position ? `${isOffline ? 'Your driver is offline: last seen' : 'Position'} ${ago(age)}` : '');
  showEta(eta, trip, now, age);
  isDirty = true;
  // The card must not cover the car when it has become higher.
  if (cardHeight !== (cardHeight = $('ride').offsetHeight) && !isByHand) showAll();
}

function draw() {
  requestAnimationFrame(draw);
  if (!isDirty && reducedMotion.matches) return;
  isDirty = false;
  const page = map.begin(), isGone = hub.state.is !== 'live', { colors } = map;
  marker.snap = reducedMotion.matches;
  const place = marker.at(hub.now());
  if (!trip && !position) return;
  const here = [place.latitude, place.longitude], isSeen = position && here[0] === here[0];
  if (isSeen) map.way(here, trip?.status === 'trip_started' && eta?.basis === 'route' && route, targetOf(trip));
  if (trip) map.pins(trip);
  if (!isSeen) return;
  map.project(...here);
  if (!isGone && !reducedMotion.matches) map.pulse(map.px, map.py, 18, colors.on_trip);
  arrows.clear();
  arrows.add('on_trip', isGone || place.age > 60 ? 2 : place.age > 12 ? 1 : 0, map.px, map.py, place.heading ?? NaN);
  arrows.draw(page, colors, 18, [1, 0.6, 1]);
}

const keys = controls(map, showAll);
onkeydown = ({ key, ctrlKey, metaKey, altKey }) => ctrlKey || metaKey || altKey || keys[key.toLowerCase()]?.();
onresize = () => isByHand || showAll();

if (!token) over('This link does not work', 'It has no token: open the link as you got it.');
else hub.connect();
setInterval(tick, 1000);
draw();
about = await askAbout();
setText('attribution', about.map?.attribution ?? '');
if (about.map?.box && !position && !trip) map.fit([], about.map.box);
map.load(about.map);
