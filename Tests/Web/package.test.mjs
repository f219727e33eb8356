// What is served and installed: one size, names that agree, code that needs nothing else.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import * as library from '../../Sources/Pages/web/hub.js';

const folder = new URL('../../Sources/Pages/', import.meta.url);
const text = name => readFileSync(new URL(name, folder), 'utf8');

test('hub.js is at most 14 KB compressed, and it imports nothing but, on demand, its own parts', () => {
  const code = text('web/hub.js');
  const size = gzipSync(code, { level: 9 }).length;
  assert.ok(size <= 14 * 1024, `${size} bytes`);
  assert.deepEqual(code.match(/\bimport\b[^;]*;/g), ['binary', 'store', 'areas', 'http']
    .map(part => `import('./hub-${part}.js');`));
});

test('what package.json names is there, and is what the module exports', () => {
  const { exports, files, type, license } = JSON.parse(text('package.json'));
  assert.deepEqual([type, license], ['module', 'Apache-2.0']);
  for (const file of [...files, exports['.'].types, exports['.'].default]) assert.ok(text(file));
  const declared = [...text('web/hub.d.ts').matchAll(/^export class (\w+)/gm)].map(([, name]) => name);
  for (const name of declared) assert.equal(typeof library[name], 'function', name);
});

test('each method and member that hub.d.ts has is there, and none besides', () => {
  const block = /export class Hub \{([^]*?)\n\}/.exec(text('web/hub.d.ts'))[1];
  const declared = [...block.matchAll(/^ {2}(?:readonly )?(\w+)\??[(:<]/gm)].map(([, name]) => name);
  const { Hub } = library;
  const hub = new Hub('ws://127.0.0.1', { WebSocket: Object });
  const there = [...Object.getOwnPropertyNames(Hub.prototype), ...Object.keys(hub)];
  assert.deepEqual([...new Set(declared)].sort(), [...new Set(there)].sort());
});

test('lines have at most 120 columns', () => {
  for (const path of ['Sources/Pages/web/', 'Tests/Web/', 'Tests/Web/support/']) {
    const url = new URL(`../../${path}`, import.meta.url);
    for (const file of readdirSync(url).filter(name => /\.(m?js|d\.ts)$/.test(name))) {
      readFileSync(new URL(file, url), 'utf8').split('\n').forEach((line, index) => {
        assert.ok([...line].length <= 120, `${path}${file}:${index + 1}`);
      });
    }
  }
});
