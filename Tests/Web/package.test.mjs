// What is served and installed: one size, names that agree, code that needs nothing else.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

const npm = spawnSync('npm', ['--version']).status === 0;
test('npm install of the folder gives what can be imported by its name', { skip: !npm && 'there is no npm' }, t => {
  const there = mkdtempSync(join(tmpdir(), 'npm-'));
  t.after(() => rmSync(there, { recursive: true, force: true }));
  const run = (...words) => {
    const { status, stdout, stderr } = spawnSync(words[0], words.slice(1), { cwd: there, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    return stdout.trim();
  };
  run('npm', 'install', '--offline', '--no-audit', '--no-fund', '--install-links', folder.pathname);
  // The codec and the questions over HTTP are loaded from beside it.
  const code = `import { Hub, HubError } from 'location-hub-client';
    class Mute { close() {} }
    const hub = new Hub('ws://127.0.0.1:1', { WebSocket: Mute, codec: 'binary', dev: { role: 'ops', id: 'a' } });
    hub.connect();
    const error = await hub.find().catch(error => error);
    console.log(error instanceof HubError && error.code, hub.state.is);
    process.exit();`;
  assert.equal(run('node', '--input-type=module', '-e', code), 'unreachable connecting');
});

const tsc = spawnSync('tsc', ['--version']).status === 0;
test('hub.d.ts is TypeScript, and examples are by its types', { skip: !tsc && 'there is no tsc' }, t => {
  const there = mkdtempSync(join(tmpdir(), 'types-'));
  t.after(() => rmSync(there, { recursive: true, force: true }));
  for (const name of ['hub.js', 'hub.d.ts']) copyFileSync(new URL(`web/${name}`, folder), join(there, name));
  const document = readFileSync(new URL('../../protocol/javascript.md', import.meta.url), 'utf8');
  const examples = [...document.matchAll(/```js\n([^]*?)```/g)].map(([, code]) => code.replace("'/hub", "'./hub"));
  assert.ok(examples.length >= 2, 'a rider and a driver');
  const files = examples.map((code, index) => {
    const around = ['banner', 'eta', 'car', 'hub'].filter(name => !code.includes(`const ${name}`));
    const declared = around.map(name => `declare const ${name}: any;\n`).join('');
    writeFileSync(join(there, `${index}.ts`), `${declared}${code}\nexport {};`);
    return `${index}.ts`;
  });
  const { status, stdout } = spawnSync('tsc', ['--noEmit', '--strict', '--target', 'es2022', '--module', 'es2022',
    '--moduleResolution', 'node', '--lib', 'es2022,dom', 'hub.d.ts', ...files], { cwd: there, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});

test('each method and member that hub.d.ts has is there, and none besides', () => {
  const block = /export class Hub \{([^]*?)\n\}/.exec(text('web/hub.d.ts'))[1];
  const declared = [...block.matchAll(/^ {2}(?:readonly )?(\w+)\??[(:<]/gm)].map(([, name]) => name);
  const { Hub } = library;
  const hub = new Hub('ws://127.0.0.1', { WebSocket: Object });
  const there = [...Object.getOwnPropertyNames(Hub.prototype), ...Object.keys(hub)];
  assert.deepEqual([...new Set(declared)].sort(), [...new Set(there)].sort());
});

/** How much lighter one colour is than another (WCAG 2.2, contrast ratio), `#rgb` or `#rrggbb`. */
function contrast(one, other) {
  const [low, high] = [one, other].map(color => {
    const [red, green, blue] = color.replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3').match(/\w\w/g).map(part => {
      const value = parseInt(part, 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
/** What the style sheet lets shine through would be lighter than its colour: only what has no text may. */
test('no text is see-through', () => {
  const rules = [...text('web/style.css').matchAll(/^ *([^{}/]+?) ?\{[^{}]*opacity: /gm)].map(([, rule]) => rule);
  assert.deepEqual(rules, []);
});
test('texts have a contrast of 4.5 and more, dark and light', () => {
  const [light, dark] = ['root', 'root\\.dark'].map(name => {
    const [, block] = new RegExp(`:${name} \\{([^}]*)\\}`).exec(text('web/style.css'));
    return Object.fromEntries([...block.matchAll(/--([\w-]+): (#\w{3,6})\b/g)].map(([, key, value]) => [key, value]));
  });
  for (const colors of [light, dark]) {
    for (const pair of ['text panel', 'text panel-2', 'muted panel', 'muted panel-2', 'text band', 'text band-2',
      'muted band-2', 'accent panel', 'onAccent accent', 'bad panel', 'muted ground', 'muted land']) {
      const [front, back] = pair.split(' ');
      assert.ok(contrast(colors[front], colors[back]) >= 4.5, `${pair}: ${contrast(colors[front], colors[back])}`);
    }
  }
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
