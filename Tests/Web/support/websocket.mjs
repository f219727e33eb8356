// WebSockets (RFC 6455) by node:net alone: the client that Node below 22 lacks, and a server that may do wrong on
// purpose.
import { createHash, randomBytes } from 'node:crypto';
import net from 'node:net';

const CONNECTING = 0, OPEN = 1, CLOSING = 2, CLOSED = 3;
const acceptFor = key => createHash('sha1').update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');

/** One frame; a client masks (§5.3). */
export function frame(opcode, payload, { mask = false, fin = true } = {}) {
  const bytes = Buffer.from(payload);
  const length = bytes.length < 126 ? [bytes.length]
    : bytes.length < 65536 ? [126, bytes.length >> 8, bytes.length & 255]
      : [127, ...new Array(4).fill(0), ...[24, 16, 8, 0].map(shift => bytes.length >>> shift & 255)];
  if (mask) length[0] |= 128;
  const head = Buffer.from([(fin ? 128 : 0) | opcode, ...length]);
  if (!mask) return Buffer.concat([head, bytes]);
  const key = randomBytes(4);
  return Buffer.concat([head, key, bytes.map((byte, index) => byte ^ key[index & 3])]);
}

/** Takes bytes, gives messages (fragments put together) and control frames. */
function frames(onFrame) {
  let input = Buffer.alloc(0), parts = [], kind = 0;
  return bytes => {
    input = Buffer.concat([input, bytes]);
    for (;;) {
      if (input.length < 2) return;
      const [first, second] = input;
      let length = second & 127, at = 2;
      if (length === 126) {
        if (input.length < 4) return;
        [length, at] = [input.readUInt16BE(2), 4];
      } else if (length === 127) {
        if (input.length < 10) return;
        [length, at] = [Number(input.readBigUInt64BE(2)), 10];
      }
      const key = second & 128 ? input.subarray(at, at += 4) : null;
      if (input.length < at + length) return;
      const payload = Buffer.from(input.subarray(at, at + length));
      if (key) payload.forEach((byte, index) => { payload[index] = byte ^ key[index & 3]; });
      input = input.subarray(at + length);
      const opcode = first & 15;
      if (opcode >= 8) {
        onFrame(opcode, payload);
        continue;
      }
      if (opcode) [parts, kind] = [[], opcode];
      parts.push(payload);
      if (first & 128) onFrame(kind, Buffer.concat(parts));
    }
  };
}

/** As a browser's WebSocket, for `ws:`; its error event has the `status` and `retryAfter` of a refused upgrade. */
export class WebSocketByNet {
  readyState = CONNECTING;
  protocol = '';
  binaryType = 'arraybuffer';
  #tcp;
  #code;
  #reason = '';

  constructor(url, protocols = []) {
    const { hostname, port, pathname, search, host } = new URL(url);
    const key = randomBytes(16).toString('base64');
    let head = Buffer.alloc(0);
    const read = frames((opcode, payload) => this.#frame(opcode, payload));
    const tcp = this.#tcp = net.connect(Number(port), hostname.replace(/[[\]]/g, ''), () => tcp.write([
      `GET ${pathname}${search} HTTP/1.1`, `Host: ${host}`, 'Upgrade: websocket', 'Connection: Upgrade',
      'Sec-WebSocket-Version: 13', `Sec-WebSocket-Key: ${key}`, `Sec-WebSocket-Protocol: ${protocols.join(', ')}`, '',
        '',
    ].join('\r\n')));
    tcp.setNoDelay(true);
    tcp.on('error', () => {});
    tcp.on('close', () => this.#closed());
    tcp.on('data', bytes => {
      if (this.readyState !== CONNECTING) return read(bytes);
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      const lines = head.subarray(0, end).toString().split('\r\n');
      const fields = Object.fromEntries(lines.slice(1).map(line => [line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim()]));
      if (fields['sec-websocket-accept'] !== acceptFor(key)) {
        this.onerror?.({ status: Number(lines[0].split(' ')[1]),
          retryAfter: Number(fields['retry-after']) || undefined });
        return tcp.destroy();
      }
      this.protocol = fields['sec-websocket-protocol'] ?? '';
      this.readyState = OPEN;
      this.onopen?.({});
      read(head.subarray(end + 4));
    });
  }

  #frame(opcode, payload) {
    if (opcode === 1) this.onmessage?.({ data: payload.toString() });
    if (opcode === 2) {
      this.onmessage?.({ data: payload.buffer.slice(payload.byteOffset, payload.byteOffset + payload.length) });
    }
    if (opcode === 9) this.#tcp.write(frame(10, payload, { mask: true }));
    if (opcode !== 8) return;
    this.#code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
    this.#reason = payload.subarray(2).toString();
    if (this.readyState === OPEN) this.#tcp.write(frame(8, payload.subarray(0, 2), { mask: true }));
    this.readyState = CLOSING;
    this.#tcp.end();
  }

  #closed() {
    if (this.readyState === CLOSED) return;
    if (this.readyState === CONNECTING) this.onerror?.({});
    this.readyState = CLOSED;
    this.onclose?.({ code: this.#code ?? 1006, reason: this.#reason });
  }

  send(data) {
    if (this.readyState !== OPEN) return;
    this.#tcp.write(frame(typeof data === 'string' ? 1 : 2, data, { mask: true }));
  }

  close(code = 1000) {
    if (this.readyState === CONNECTING) return this.#tcp.destroy();
    if (this.readyState !== OPEN) return;
    this.readyState = CLOSING;
    this.#tcp.write(frame(8, [code >> 8, code & 255], { mask: true }));
  }
}

/**
 * A server on loopback. `onSession` gets each WebSocket: `say(text)`, `raw(bytes)`, `cut()`, `heard` (messages so far),
 * `onmessage`, and the target of its request. `close` ends it with all its sessions.
 */
export async function serve(onSession) {
  const open = new Set();
  const server = net.createServer(tcp => {
    open.add(tcp);
    tcp.on('close', () => open.delete(tcp));
    tcp.on('error', () => {});
    tcp.once('data', bytes => {
      const request = bytes.toString();
      const key = /sec-websocket-key: (.*)\r/i.exec(request)?.[1];
      if (!key) return tcp.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
      tcp.write(['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade',
        `Sec-WebSocket-Accept: ${acceptFor(key)}`, 'Sec-WebSocket-Protocol: locationhub.v1.json', '', ''].join('\r\n'));
      const session = {
        target: request.split(' ')[1], heard: [],
        say: message => tcp.write(frame(1, typeof message === 'string' ? message : JSON.stringify(message))),
        raw: bytes => tcp.write(bytes),
        cut: () => tcp.destroy(),
      };
      tcp.on('data', frames((opcode, payload) => {
        if (opcode === 8) return tcp.end(frame(8, payload));
        if (opcode !== 1) return;
        const message = JSON.parse(payload);
        session.heard.push(message);
        session.onmessage?.(message);
      }));
      onSession(session);
    });
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `ws://127.0.0.1:${server.address().port}/v1/ws`,
    async close() {
      for (const tcp of open) tcp.destroy();
      await new Promise(resolve => { server.close(resolve); });
    },
  };
}
