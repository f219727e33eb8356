// A real hub as a process of its own, with a journal and a folder that is removed at the end.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const top = new URL('../../../', import.meta.url).pathname;

/** The executable: HUB_BINARY, or what was built last; undefined where there is none. */
export const binary = process.env.HUB_BINARY ?? ['release', 'debug'].map(kind => `${top}.build/${kind}/locationhub`)
  .filter(existsSync).sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];

const given = new Set();
/**
 * A port that is free now, and that the system gives to nobody else: it takes those from 32,768 on
 * (`net.ipv4.ip_local_port_range`). So it is still free when a hub that was killed starts again. None is given twice;
 * each process takes from a hundred by its id, above those of the foreign tests, so that two side by side seldom share.
 */
async function freePort() {
  for (;;) {
    const port = 26000 + process.pid % 60 * 100 + Math.floor(Math.random() * 100);
    if (given.size === 100) throw new Error('no port is left');
    if (given.has(port)) continue;
    const server = net.createServer();
    const isFree = await new Promise(resolve => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (!isFree) continue;
    given.add(port);
    return port;
  }
}

/** Waits until a condition holds, which may be a promise, and fails with what was waited for. */
export async function until(what, condition, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${seconds} s for ${what}`);
    await new Promise(resolve => { setTimeout(resolve, 10); });
  }
}

/** Output of a run of the executable. */
export function run(...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, args);
    let text = '';
    child.stdout.on('data', bytes => { text += bytes; });
    child.stderr.on('data', bytes => { text += bytes; });
    child.on('close', code => code ? reject(new Error(text)) : resolve(text.trim()));
  });
}

/** Starts a hub; `start` again after `kill` has the same port and journal. */
export async function startHub(...options) {
  const folder = mkdtempSync(join(tmpdir(), 'hub-'));
  const port = await freePort();
  let child, log = '';
  const hub = {
    folder, url: `ws://127.0.0.1:${port}/v1/ws`, http: `http://127.0.0.1:${port}`,
    log: () => log,
    async start() {
      child = spawn(binary, ['serve', '--port', String(port), '--data', join(folder, 'data'), ...options]);
      child.stderr.on('data', bytes => { log += bytes; });
      child.stdout.on('data', bytes => { log += bytes; });
      const isReady = () => fetch(`${hub.http}/readyz`).then(answer => answer.ok, () => false);
      await until('the hub', async () => {
        if (child.exitCode !== null) throw new Error(log);
        return isReady();
      });
    },
    /** kill -9, or another signal. */
    async kill(signal = 'SIGKILL') {
      if (child.exitCode !== null || child.signalCode) return;
      const ended = new Promise(resolve => child.on('close', resolve));
      child.kill(signal);
      await ended;
    },
    async remove() {
      await hub.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  // A test that ends early must not leave it behind.
  process.on('exit', () => child.kill('SIGKILL'));
  await hub.start();
  return hub;
}
