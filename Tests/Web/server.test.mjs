// A server that does wrong, over real sockets: wrong JSON, wrong order, lost and doubled messages, cuts in the middle.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hub } from '../../Sources/Pages/web/hub.js';
import { until } from './support/hub-process.mjs';
import { chance } from './support/by-hand.mjs';
import { frame, serve, WebSocketByNet } from './support/websocket.mjs';

const epoch = 'e1';
const greeting = {
  type: 'connected', timestamp: Date.now(), messageId: 'r1', payload: {
    sessionId: 's', role: 'rider', id: 'r', heartbeatInterval: 30, serverTime: Date.now(),
    limits: { maxMessageBytes: 262144, maxBatch: 500, rate: 0 },
  },
};
const update = sequence => ({
  type: 'trip_update', timestamp: 1, messageId: 'p1',
  payload: { channel: 'trip:T1', tripId: 'T1', status: 'accepted', timestamp: 1, sequence },
});
/** A clock that goes a hundred times as fast, so that back-off takes a hundredth of its time. */
const begin = Date.now();
const quick = { now: () => begin + (Date.now() - begin) * 100, setTimeout: (f, ms) => setTimeout(f, ms / 100),
  clearTimeout };
const options = { dev: { role: 'rider', id: 'r' }, WebSocket: WebSocketByNet, ...quick };

/** A server and a client of it, both ended with the test. */
async function between(t, onSession) {
  const server = await serve(onSession);
  const hub = new Hub(server.url, options).connect();
  t.after(async () => {
    hub.close();
    await server.close();
  });
  return { server, hub };
}

/** Answers a subscription with all events up to `last` that are missing. */
function answers(session, last) {
  session.onmessage = ({ type, messageId, payload: { since, channel } }) => {
    if (type !== 'subscribe') return;
    const recovered = since !== undefined;
    session.say({ type: 'subscribed', timestamp: 1, messageId: 'r2',
      payload: { replyTo: messageId, channel, sequence: last(), epoch, recovered } });
    if (recovered) for (let n = since + 1; n <= last(); n++) session.say(update(n));
  };
}

test('whatever is lost, doubled, mixed up, garbled or cut, each event comes once and in order', async t => {
  const random = chance(5), seen = [];
  let last = 0, sessions = 0, now;
  const { hub } = await between(t, session => {
    sessions++;
    now = session;
    session.say(greeting);
    answers(session, () => last);
  });
  const trip = hub.trip('T1');
  trip.on('update', ({ sequence }) => seen.push(sequence));
  trip.on('lost', () => seen.push('lost'));
  await until('the subscription', () => trip.state.is === 'live');
  for (let n = 0; n < 400; n++) {
    last++;
    const what = random();
    if (what < 0.1) continue;
    if (what < 0.2) now.say('{"type":"trip_update","payload":{"channel":"trip:T1"');
    else if (what < 0.25) now.say('[]');
    else if (what < 0.3) now.say({ ...update(last + 5) });
    if (what > 0.9) now.say(update(last - 1));
    if (what > 0.95) now.raw(frame(1, JSON.stringify(update(last)).slice(0, 20), { fin: false }));
    else now.say(update(last));
    if (what > 0.95) now.cut();
    if (n % 20 === 19) await until('what there is', () => hub.state.is === 'live' && seen.length > n - 25);
  }
  await until('all of it', () => {
    if (hub.state.is === 'live' && trip.state.is === 'live') now.say({ ...update(last) });
    return seen.length >= last;
  });
  assert.deepEqual(seen, Array.from({ length: last }, (_, index) => index + 1));
  assert.ok(sessions > 5, 'there were cuts');
});

test('a server that breaks off while it answers, at each byte of it, is tried again', async t => {
  let cutAt = 0;
  const bytes = frame(1, JSON.stringify(greeting));
  const { hub } = await between(t, session => {
    if (cutAt >= bytes.length) return session.raw(bytes);
    session.raw(bytes.subarray(0, cutAt));
    cutAt += 40;
    setTimeout(() => session.cut(), 5);
  });
  await until('a whole greeting', () => hub.state.is === 'live');
});

test('messages in pieces, and many in one piece, are read', async t => {
  const seen = [];
  const { hub } = await between(t, session => {
    session.say(greeting);
    session.onmessage = ({ type, messageId, payload: { channel } }) => {
      if (type !== 'subscribe') return;
      const subscribed = { type: 'subscribed', timestamp: 1, messageId: 'r2',
        payload: { replyTo: messageId, channel, sequence: 0, epoch, recovered: false } };
      const text = JSON.stringify(update(3));
      session.raw(Buffer.concat([frame(1, JSON.stringify(subscribed)), frame(1, JSON.stringify(update(1))),
        frame(9, 'ping'),
        frame(1, JSON.stringify(update(2))), frame(1, text.slice(0, 30), { fin: false }), frame(0, text.slice(30))]));
    };
  });
  hub.trip('T1').on('update', ({ sequence }) => seen.push(sequence));
  await until('three events', () => seen.length === 3);
  assert.deepEqual(seen, [1, 2, 3]);
});

test('no WebSocket server answers, or nobody does: it keeps trying', async t => {
  const { server, hub } = await between(t, () => {});
  const states = [];
  hub.on('state', ({ is }) => states.push(is));
  await server.close();
  await until('three attempts', () => states.filter(is => is === 'waiting').length >= 3);
});
