// Tokens: asked for at each attempt, renewed before they end, once at a time, and never believed too late.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hub } from '../../Sources/Pages/web/hub.js';
import { byHand, settled } from './support/by-hand.mjs';

/** A token that ends at a time (ms); its signature is nobody's. */
const tokenUntil = (time, name = 'x') =>
  `e30.${Buffer.from(JSON.stringify({ sub: name, exp: time / 1000 })).toString('base64url')}.c2ln`;

/** A token function that a test answers: `asked` has its calls, each with `give` and `fail`. */
function tokenFunction() {
  const asked = [];
  const token = need => new Promise((give, fail) => {
    asked.push({ ...need, give, fail });
    need.signal.addEventListener('abort', () => { asked.aborted = (asked.aborted ?? 0) + 1; });
  });
  return { asked, token };
}
const withFunction = () => {
  const { asked, token } = tokenFunction();
  return { asked, world: byHand({ token, dev: undefined }) };
};
const give = async (question, token) => {
  question.give(token);
  await settled();
};
const tokenOf = socket => {
  const [, offered] = socket.protocols;
  assert.equal(socket.url.search, '', 'a proxy logs what is in the address');
  return offered.replace('access_token.', '');
};

test('a token goes along with each attempt; one that is given once is not renewed', async () => {
  const world = byHand({ token: tokenUntil(0), dev: undefined });
  const socket = await world.live({ heartbeatInterval: 10_000 });
  assert.equal(tokenOf(socket), tokenUntil(0));
  await world.clock.pass(100_000);
  assert.equal(socket.of('refresh').length, 0);
  await socket.end(4401);
  assert.deepEqual([world.hub.state.is, world.hub.state.reason.code], ['closed', 4401]);
});

test('the function is called for each attempt, with why', async () => {
  const { asked, world } = withFunction();
  world.hub.connect();
  await settled();
  assert.equal(asked[0].reason, 'connect');
  await give(asked[0], 'one.e30.x');
  await (await world.live()).end(1006);
  await world.clock.pass(2500);
  assert.equal(asked[1].reason, 'connect');
  await give(asked[1], 'two.e30.x');
  assert.equal(tokenOf(world.socket), 'two.e30.x');
  await (await world.live()).end(4401);
  await world.clock.pass(2300);
  assert.equal(asked[2].reason, 'refused');
  await give(asked[2], 'three.e30.x');
  await world.socket.refuse(401);
  await world.clock.pass(10_000);
  assert.equal(asked[3].reason, 'refused');
  await give(asked[3], 'four.e30.x');
  await world.live();
  assert.equal(asked.length, 4);
});

for (const [seconds, early] of [[3600, 69], [100, 23]]) {
  test(`of a token for ${seconds} s a new one is asked for ${early} s before its end, and swapped in place`,
    async () => {
    const { asked, world } = withFunction();
    world.hub.connect();
    await settled();
    const first = tokenUntil(world.clock.now() + seconds * 1000);
    await give(asked[0], first);
    const socket = await world.live({ heartbeatInterval: 10_000 });
    await world.clock.pass((seconds - early) * 1000 - 1);
    assert.equal(asked.length, 1);
    await world.clock.pass(1);
    assert.equal(asked[1].reason, 'expiring');
    const second = tokenUntil(world.clock.now() + seconds * 1000, 'y');
    await give(asked[1], second);
    assert.deepEqual(socket.last('refresh').payload, { token: second });
    await socket.ack(socket.last('refresh'));
    await world.clock.pass((seconds - early) * 1000);
    assert.equal(asked.length, 3, 'and so on');
  });
}

test('of a token for longer than a timer runs no new one is asked for early', async () => {
  const { asked, world } = withFunction();
  world.hub.connect();
  await settled();
  await give(asked[0], tokenUntil(world.clock.now() + 90 * 86_400_000));
  await world.live({ heartbeatInterval: 1e7 });
  await world.clock.pass(26 * 86_400_000);
  assert.deepEqual(asked.map(({ reason }) => reason), ['connect']);
  assert.equal(world.hub.state.is, 'live');
});

test("a token's end is by the hub's clock", async () => {
  const { asked, world } = withFunction();
  world.hub.connect();
  await settled();
  await give(asked[0], tokenUntil(world.clock.now() + 3_600_000 + 3_600_000));
  await settled();
  const socket = world.socket;
  socket.readyState = 1;
  socket.protocol = 'locationhub.v1.json';
  await socket.say('connected', {
    sessionId: 's', role: 'rider', id: 'r', heartbeatInterval: 10_000, serverTime: 0,
    limits: { maxMessageBytes: 262144, maxBatch: 500, rate: 10 },
  }, world.clock.now() + 3_600_000);
  await world.clock.pass(3_531_000);
  assert.equal(asked.length, 2);
});

test('where there is no new token, or the same, or the hub refuses it, it is asked for again after 10 s', async () => {
  const { asked, world } = withFunction();
  world.hub.connect();
  await settled();
  const first = tokenUntil(world.clock.now() + 3_600_000);
  await give(asked[0], first);
  const socket = await world.live({ heartbeatInterval: 10_000 });
  await world.clock.pass(3_531_000);
  asked[1].fail(new Error('the back end is down'));
  await world.clock.pass(10_000);
  await give(asked[2], first);
  await world.clock.pass(10_000);
  await give(asked[3], tokenUntil(0, 'bad'));
  await socket.say('error', { code: 'unauthorized', message: 'no', replyTo: socket.last('refresh').messageId });
  assert.equal(world.hub.state.is, 'live', 'the session continues with the one that it has');
  await world.clock.pass(10_000);
  assert.equal(asked.length, 5);
  assert.equal(world.errors.length, 0);
});

test('tokens that have ended when they come are asked for every 10 s, and no faster', async () => {
  const { asked, world } = withFunction();
  world.hub.connect();
  await settled();
  await give(asked[0], tokenUntil(world.clock.now() - 5000));
  const socket = await world.live({ heartbeatInterval: 10_000 });
  for (let renewal = 1; renewal < 4; renewal++) {
    await world.clock.pass(9_999);
    assert.equal(asked.length, renewal);
    await world.clock.pass(1);
    await give(asked[renewal], tokenUntil(world.clock.now() - 5000, `y${renewal}`));
    await socket.ack(socket.last('refresh'));
  }
});

test('a late answer belongs to no newer connection, and no two questions are open at once', async () => {
  const { asked, world } = withFunction();
  world.hub.connect();
  await settled();
  await give(asked[0], tokenUntil(world.clock.now() + 100_000));
  await world.live({ heartbeatInterval: 10_000 });
  await world.clock.pass(77_000);
  assert.equal(asked.length, 2);
  await world.socket.end(1006);
  assert.equal(asked.aborted, 1, 'the question is called off');
  await world.clock.pass(5000);
  assert.equal(asked.length, 2, 'its function has not come back yet');
  assert.equal(world.hub.state.is, 'connecting');
  await give(asked[1], 'late.e30.x');
  assert.equal(world.sockets.length, 1, 'its answer is dropped');
  assert.equal(asked[2].reason, 'connect');
  await give(asked[2], 'new.e30.x');
  assert.equal(tokenOf(world.socket), 'new.e30.x');
});

test('a function that fails, gives nothing, or never answers costs an attempt, not the hub', async () => {
  const { asked, world } = withFunction();
  world.hub.connect();
  await settled();
  asked[0].fail(new Error('no network'));
  await settled();
  assert.deepEqual([world.hub.state.is, world.hub.state.reason],
    ['waiting', { cause: 'token', message: 'no network' }]);
  await world.clock.pass(1150);
  await give(asked[1], undefined);
  assert.equal(world.hub.state.reason.cause, 'token');
  await world.clock.pass(2300);
  assert.equal(asked.length, 3);
  await world.clock.pass(30_000);
  assert.deepEqual([world.hub.state.is, world.hub.state.reason.cause], ['waiting', 'token']);
  assert.equal(asked[2].signal.aborted, true, 'it is called off');
  await world.clock.pass(4600);
  assert.equal(asked.length, 4, 'one that never comes back is not waited for twice');
  await give(asked[3], 'a.e30.x');
  assert.equal(world.sockets.length, 1);
});

test('a token that cannot be sent counts as refused', async () => {
  class Strict {   // as in a browser
    constructor(url, [, offered]) { if (offered.includes(' ')) throw new SyntaxError(`'${offered}' is invalid`); }
    close() {}
  }
  const { asked, token } = tokenFunction(), { clock, hub } = byHand({ token, dev: undefined, WebSocket: Strict });
  hub.connect();
  await settled();
  await give(asked[0], 'a b');
  assert.deepEqual([hub.state.is, hub.state.reason.cause], ['waiting', 'token']);
  await clock.pass(1150);
  assert.equal(asked[1].reason, 'refused');
  await give(asked[1], 'a.e30.x');
  assert.equal(hub.state.is, 'connecting');

  const once = byHand({ token: 'a b', dev: undefined, WebSocket: Strict }).hub.connect();
  await settled();
  assert.deepEqual([once.state.is, once.state.reason.cause], ['closed', 'token'], 'there will be no other');
});

test('`close` forgets the token, and drops one that comes later', async () => {
  const { asked, world } = withFunction();
  world.hub.connect();
  await settled();
  await world.hub.close();
  assert.equal(asked[0].signal.aborted, true);
  await give(asked[0], 'late.e30.x');
  assert.equal(world.sockets.length, 0);
  world.hub.connect();
  await settled();
  assert.equal(asked.length, 2);
  await give(asked[1], 'new.e30.x');
  await world.live();
  world.socket.readyState = 3;
  await world.hub.close();
  world.hub.connect();
  await settled();
  assert.equal(asked.length, 3, 'it is asked for anew');
});

test('where a browser does not say why a socket did not open, HTTP does', async () => {
  const answers = [];
  globalThis.fetch = async (url, { headers }) => {
    answers.push(String(url), headers.Authorization);
    return { status: 401, headers: new Headers() };
  };
  const once = byHand({ token: 'a.e30.x', dev: undefined });
  once.hub.connect();
  await settled();
  await once.socket.end(1006);
  assert.deepEqual([once.hub.state.is, once.hub.state.reason.code], ['closed', 401]);
  assert.deepEqual(answers, ['https://hub.example/v1/trips/-', 'Bearer a.e30.x']);

  const { asked, world } = withFunction();
  world.hub.connect();
  await settled();
  await give(asked[0], 'a.e30.x');
  await world.socket.end(1006);
  await world.clock.pass(2500);
  assert.equal(asked[1].reason, 'refused');

  globalThis.fetch = async () => ({ status: 503, headers: new Headers({ 'Retry-After': '20' }) });
  await give(asked[1], 'b.e30.x');
  await world.socket.end(1006);
  assert.equal(world.hub.state.retryAt - world.clock.now(), 23_000);
});

test('questions over HTTP wait for a connection, carry its token, and say what is wrong', async () => {
  const asked = [];
  let answer;
  globalThis.fetch = async (url, { headers } = {}) => {
    asked.push([String(url), headers.Authorization]);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const { asked: questions, world } = withFunction();
  answer = Response.json({ trips: [], next: 't2s' });
  const trips = world.hub.getTrips({ status: 'accepted', limit: 2 });
  world.hub.connect();
  await settled();
  assert.equal(asked.length, 0);
  await give(questions[0], 'a.e30.x');
  await world.live();
  assert.deepEqual(await trips, { trips: [], next: 't2s' });
  assert.deepEqual(asked, [['https://hub.example/v1/trips?status=accepted&limit=2', 'Bearer a.e30.x']]);
  answer = Response.json({ drivers: [{ driverId: 'D1', age: 3 }, { driverId: 'D2' }] });
  const now = world.hub.now(), dated = { published: now, received: now };
  assert.deepEqual((await world.hub.find({ search: 'D' })).drivers, [{ driverId: 'D1', age: 3, ...dated },
    { driverId: 'D2' }], 'ages are of now, by the clock of the hub');
  asked.splice(1);
  answer = Response.json({ error: { code: 'storage_full', message: 'no room' } },
    { status: 503, headers: { 'Retry-After': '7' } });
  await assert.rejects(world.hub.track('T/../1'), { code: 'storage_full', message: 'no room', retry: 'later',
    retryAfter: 7 });
  assert.equal(asked[1][0], 'https://hub.example/v1/trips/T%2F..%2F1/track.geojson');
  answer = new Response('<h1>Bad gateway</h1>', { status: 502 });
  await assert.rejects(world.hub.fences(), { code: 'internal', message: 'HTTP 502', retry: 'later' });
  answer = new TypeError('fetch failed');
  await assert.rejects(world.hub.getFence('f'), { code: 'unreachable', retry: 'later' });
  const never = byHand({ token: 'a.e30.x', dev: undefined }).hub;
  const waiting = never.fences();
  never.close();
  await assert.rejects(waiting, { code: 'closed' });
});

test('questions over HTTP wait for no token where none is to come', async () => {
  const asked = [];
  globalThis.fetch = async (url, { headers } = {}) => {
    asked.push([String(url), headers?.Authorization]);
    return Response.json({ trips: [] });
  };
  const byCertificate = byHand({ dev: undefined });
  await byCertificate.live();
  assert.deepEqual(await byCertificate.hub.getTrips(), { trips: [] });
  const inAddress = new Hub('wss://hub.example/v1/ws?access_token=a.e30.x', { WebSocket: Object });
  assert.deepEqual(await inAddress.getTrips({ limit: 1 }), { trips: [] });
  assert.deepEqual(asked, [['https://hub.example/v1/trips', undefined],
    ['https://hub.example/v1/trips?access_token=a.e30.x&limit=1', undefined]]);
});
