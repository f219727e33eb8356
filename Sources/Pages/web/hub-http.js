// Questions over HTTP, with the connection's credential: hub.js loads this with the first of them.

import { HubError } from './hub.js';

/** Waits until there is a credential, and gives the answer's body. Throws a HubError. */
export async function request(hub, { url, dev, token }, question = {}, method = 'GET', body = undefined) {
  while (!token() && !dev) {
    if (hub.state.is === 'closed') throw new HubError('closed', 'the hub is closed');
    await new Promise(resolve => { const off = hub.on('state', () => resolve(off())); });
  }
  const members = { ...(!token() && dev), ...question };
  for (const name in members) if (members[name] !== undefined) url.searchParams.set(name, members[name]);
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  const options = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  const response = await fetch(url, options).catch(error => { throw new HubError('unreachable', error.message); });
  const { error = {}, ...answer } = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const { code = 'internal', message = `HTTP ${response.status}` } = error;
  throw new HubError(code, message, +response.headers.get('Retry-After') || undefined);
}
