// Questions over HTTP, with the connection's credential: hub.js loads this with the first of them.

import { HubError } from './hub.js';

/** Waits until `asked` gives address and credential, and gives the answer's body; one with a body is a POST. */
export async function request(hub, asked, question = {}, body = undefined) {
  while (!asked()) {
    if (hub.state.is === 'closed') throw new HubError('closed', 'the hub is closed');
    await new Promise(resolve => { const off = hub.on('state', () => resolve(off())); });
  }
  const [url, options] = asked();
  for (const name in question) if (question[name] !== undefined) url.searchParams.set(name, question[name]);
  const post = body && { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(url, { ...options, ...post }).catch(error => {
    throw new HubError('unreachable', error.message);
  });
  const { error = {}, ...answer } = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const { code = 'internal', message = `HTTP ${response.status}` } = error;
  throw new HubError(code, message, +response.headers.get('Retry-After') || undefined);
}
