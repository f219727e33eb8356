// Chromium, driven over --remote-debugging-pipe: messages of JSON, each ended by NUL, on two descriptors. No driver
// package, no port. Everything that must not happen on a page is noted: console messages, exceptions, requests to
// others than its own hub, reports of its content security policy.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './hub-process.mjs';

const names = ['chromium', 'chromium-browser', 'google-chrome'];
/** The executable: CHROMIUM, or what is there; undefined where there is none. */
export const chromium = [process.env.CHROMIUM, ...names.map(name => `/usr/bin/${name}`)]
  .find(path => path && existsSync(path));
const works = chromium && spawnSync(chromium, ['--version']).status === 0;
export const skip = works ? false : 'there is no Chromium: install it, or set CHROMIUM';

/** Runs on each page before its own scripts: notes where texts are written on canvases, and counts frames. */
const notes = `{
  const { fillText } = CanvasRenderingContext2D.prototype, { requestAnimationFrame } = window;
  window.written = new Map();
  window.frameCount = 0;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (!written.has(text)) written.set(text, []);
    const places = written.get(text);
    places.push([performance.now(), x, y]);
    if (places.length > 500) places.shift();
    return fillText.call(this, text, x, y);
  };
  window.requestAnimationFrame = f => requestAnimationFrame(time => { window.frameCount++; f(time); });
}`;

/** Where screenshots go: SCREENSHOTS, else nowhere. */
const pictures = process.env.SCREENSHOTS;

export async function openBrowser() {
  const folder = mkdtempSync(join(tmpdir(), 'chromium-'));
  const child = spawn(chromium, [
    '--headless=new', '--remote-debugging-pipe', '--disable-gpu', '--no-first-run', '--disable-extensions',
    '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-default-apps',
    '--disable-dev-shm-usage', '--mute-audio', '--hide-scrollbars', '--force-color-profile=srgb', '--lang=en-US',
    '--disable-background-timer-throttling', '--disable-renderer-backgrounding',
    '--disable-features=LocalNetworkAccessChecks',   // what `rewrite` changed counts as from elsewhere
    `--user-data-dir=${folder}`,
    ...process.getuid() === 0 ? ['--no-sandbox'] : [], 'about:blank',
  ], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const [, , , to, from] = child.stdio, waiting = new Map(), pages = new Map();
  let number = 0, rest = '';
  const ended = new Promise(resolve => child.on('close', resolve));
  from.setEncoding('utf8');
  from.on('data', text => {
    const messages = (rest + text).split('\0');
    rest = messages.pop();
    for (const { id, result, error, method, params, sessionId } of messages.map(part => JSON.parse(part))) {
      if (!id) {
        pages.get(sessionId)?.happened(method, params);
        continue;
      }
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (error) reject(new Error(error.message)); else resolve(result);
    }
  });
  to.on('error', () => {});
  function send(method, params = {}, sessionId = undefined) {
    return new Promise((resolve, reject) => {
      waiting.set(++number, { resolve, reject });
      to.write(`${JSON.stringify({ id: number, method, params, sessionId })}\0`);
    });
  }
  process.on('exit', () => child.kill('SIGKILL'));
  return {
    /** A page in a profile of its own; `look` is how it is opened: width, height, scale, touch, dark, still. */
    async open(url, look = {}) {
      const { browserContextId } = await send('Target.createBrowserContext');
      const { targetId } = await send('Target.createTarget', { url: 'about:blank', browserContextId });
      const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
      const { windowId } = await send('Browser.getWindowForTarget', { targetId });
      const page = new Page((method, params) => send(method, params, sessionId), new URL(url).origin);
      /** Hidden as a window is that was minimized. */
      page.hide = isHidden => send('Browser.setWindowBounds',
        { windowId, bounds: { windowState: isHidden ? 'minimized' : 'normal' } });
      pages.set(sessionId, page);
      page.close = () => send('Target.disposeBrowserContext', { browserContextId });
      await page.begin(url, look);
      return page;
    },
    async close() {
      send('Browser.close').catch(() => {});
      await ended;
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

class Page {
  /** What must stay empty. */
  faults = [];
  sockets = 0;
  /** Bytes of messages that came by sockets; those of binary ones as base64 has them. */
  received = 0;
  /** Messages that went by sockets. */
  sent = [];
  #send; #origin; #awaited = []; #files = new Map(); #changes = new Map();

  constructor(send, origin) {
    this.#send = send;
    this.#origin = origin;
  }

  async begin(url, { width = 1440, height = 900, scale = 1, touch = false, dark = true, still = false }) {
    this.touch = touch;
    for (const domain of ['Page', 'Runtime', 'Network', 'Log', 'Performance', 'Audits']) {
      await this.#send(`${domain}.enable`);
    }
    await this.#send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: scale, mobile: touch });
    await this.#send('Emulation.setTouchEmulationEnabled', { enabled: touch });
    await this.#send('Page.addScriptToEvaluateOnNewDocument', { source: notes });
    await this.prefer({ dark, still });
    // What stands in the tree, without a build.
    if (process.env.PAGES) for (const name of readdirSync(process.env.PAGES)) {
      const path = name === 'index.html' ? '/' : name === 'track.html' ? '/track/*' : `/${name}`;
      this.#files.set(path, readFileSync(join(process.env.PAGES, name), 'utf8'));
    }
    if (this.#files.size) await this.#watch();
    await this.go(url);
  }
  /** From the next `go` on a script runs before the page's own. */
  async before(source) { await this.#send('Page.addScriptToEvaluateOnNewDocument', { source }); }
  async prefer({ dark, still }) {
    await this.#send('Emulation.setEmulatedMedia', { features: [
      { name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' },
      { name: 'prefers-reduced-motion', value: still ? 'reduce' : 'no-preference' },
    ] });
  }
  async go(url) {
    this.began = Date.now();
    const loaded = this.event('Page.loadEventFired');
    await this.#send('Page.navigate', { url });
    await loaded;
  }

  /** What the hub answers for a path goes through `change` (of texts, at once or later) before the page has it. */
  async rewrite(path, change) {
    this.#changes.set(path, change);
    await this.#send('Network.setCacheDisabled', { cacheDisabled: true });   // it would have what was there before
    await this.#watch();
  }
  /** While a path is in this set, its answer is lost on the way. */
  lost = new Set();
  async lose(path) {
    this.lost.add(path);
    await this.rewrite(path, text => text);
  }
  async #watch() {
    const patterns = [...this.#files.keys(), ...this.#changes.keys()]
      .flatMap(path => [`*${path}`, `*${path}\\?*`]).map(urlPattern => ({ urlPattern, requestStage: 'Response' }));
    await this.#send('Fetch.enable', { patterns });
  }
  async #change({ requestId, request, responseStatusCode, responseHeaders }) {
    const { pathname: path } = new URL(request.url), responseCode = 200;
    if (this.lost.has(path)) return this.#send('Fetch.failRequest', { requestId, errorReason: 'ConnectionReset' });
    const name = /^\/track\//.test(path) ? '/track/*' : path, file = this.#files.get(name);
    const change = this.#changes.get(name) ?? (text => text);
    // A file of the tree that the executable does not have yet.
    const isNew = file && responseStatusCode === 404 && path.endsWith('.js');
    if (isNew) responseHeaders = [{ name: 'Content-Type', value: 'text/javascript' }];
    else if (responseStatusCode !== 200) return this.#send('Fetch.continueRequest', { requestId });
    const { body, base64Encoded } = await this.#send('Fetch.getResponseBody', { requestId });
    const text = file ?? Buffer.from(body, base64Encoded ? 'base64' : 'utf8').toString();
    const changed = Buffer.from(await change(text)).toString('base64');
    await this.#send('Fetch.fulfillRequest', { requestId, responseCode, body: changed,
      responseHeaders: responseHeaders.filter(({ name }) => !/^content-(length|encoding)$/i.test(name)) });
  }

  event(method) { return new Promise(resolve => this.#awaited.push({ method, resolve })); }
  happened(method, params) {
    for (const entry of this.#awaited.filter(entry => entry.method === method)) {
      this.#awaited.splice(this.#awaited.indexOf(entry), 1);
      entry.resolve(params);
    }
    if (method === 'Runtime.consoleAPICalled') {
      this.faults.push(`console: ${params.args.map(({ value, description }) => value ?? description)}`);
    }
    if (method === 'Runtime.exceptionThrown') {
      this.faults.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    }
    if (method === 'Log.entryAdded') this.faults.push(`log: ${params.entry.text} ${params.entry.url ?? ''}`);
    if (method === 'Audits.issueAdded' && params.issue.code === 'ContentSecurityPolicyIssue') {
      this.faults.push(`policy: ${JSON.stringify(params.issue.details.contentSecurityPolicyIssueDetails)}`);
    }
    if (method === 'Network.webSocketCreated') this.sockets++;
    if (method === 'Network.webSocketFrameSent') this.sent.push(params.response.payloadData);
    if (method === 'Network.webSocketFrameReceived') this.received += params.response.payloadData.length;
    if (method === 'Fetch.requestPaused') this.#change(params).catch(error => this.faults.push(`rewrite: ${error}`));
    const { Referer, referer = Referer } = params.headers ?? {};
    if (method === 'Network.requestWillBeSentExtraInfo' && referer) this.faults.push(`referer: ${referer}`);
    const url = method === 'Network.requestWillBeSent' ? params.request.url
      : method === 'Network.webSocketCreated' ? params.url.replace(/^ws/, 'http') : '';
    if (url && !url.startsWith('data:') && new URL(url).origin !== this.#origin) this.faults.push(`request: ${url}`);
  }

  /** The value of an expression on the page, promises too. */
  async value(expression) {
    const { result, exceptionDetails } = await this.#send('Runtime.evaluate',
      { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  text(id) { return this.value(`document.getElementById('${id}').innerText`); }
  shown(id) { return this.value(`document.getElementById('${id}').checkVisibility()`); }
  until(expression, seconds) { return until(expression, () => this.value(expression), seconds); }

  async key(key, { text = key.length === 1 ? key : key === 'Enter' ? '\r' : undefined, shift = false } = {}) {
    const codes = { Enter: 13, Escape: 27, Tab: 9, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 };
    const windowsVirtualKeyCode = codes[key] ?? key.toUpperCase().charCodeAt(0);
    const event = { key, text, modifiers: shift ? 8 : 0, windowsVirtualKeyCode };
    await this.#send('Input.dispatchKeyEvent', { type: text ? 'keyDown' : 'rawKeyDown', ...event });
    await this.#send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
  }
  async type(text) { for (const letter of text) await this.key(letter); }
  async mouse(type, x, y, more = {}) {
    await this.#send('Input.dispatchMouseEvent', { type, x, y, ...more });
  }
  async press(x, y) {
    if (this.touch) {
      await this.fingers('touchStart', [x, y]);
      return this.fingers('touchEnd');
    }
    const button = { button: 'left', clickCount: 1 };
    await this.mouse('mouseMoved', x, y);
    await this.mouse('mousePressed', x, y, button);
    await this.mouse('mouseReleased', x, y, button);
  }
  async fingers(type, ...points) {
    await this.#send('Input.dispatchTouchEvent', { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
  }
  /** Presses the middle of an element. */
  async click(selector) {
    const [x, y] = await this.value(`(() => {
      const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
      return [box.left + box.width / 2, box.top + box.height / 2];
    })()`);
    await this.press(x, y);
  }
  async drag([x, y], [toX, toY], steps = 6) {
    const button = { button: 'left', buttons: 1, clickCount: 1 };
    const at = step => [x + (toX - x) * step / steps, y + (toY - y) * step / steps];
    if (this.touch) await this.fingers('touchStart', [x, y]); else await this.mouse('mousePressed', x, y, button);
    for (let step = 1; step <= steps; step++) {
      if (this.touch) await this.fingers('touchMove', at(step));
      else await this.mouse('mouseMoved', ...at(step), button);
    }
    if (this.touch) await this.fingers('touchEnd'); else await this.mouse('mouseReleased', toX, toY, button);
  }

  /** Time of scripts so far, s; bytes of the heap after collection; elements. */
  async measures() {
    await this.#send('HeapProfiler.collectGarbage');
    const { metrics } = await this.#send('Performance.getMetrics');
    const of = name => metrics.find(metric => metric.name === name).value;
    return { script: of('ScriptDuration'), heap: of('JSHeapUsedSize'), nodes: of('Nodes') };
  }
  async network({ latency, bytesPerSecond }) {
    await this.#send('Network.emulateNetworkConditions', { offline: false, latency,
      downloadThroughput: bytesPerSecond, uploadThroughput: bytesPerSecond });
  }
  async freeze(isFrozen) {
    await this.#send('Page.setWebLifecycleState', { state: isFrozen ? 'frozen' : 'active' });
  }

  async screenshot(name, path = pictures) {
    if (!path) return;
    const { data } = await this.#send('Page.captureScreenshot', { format: 'png' });
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, `${name}.png`), Buffer.from(data, 'base64'));
  }
}
