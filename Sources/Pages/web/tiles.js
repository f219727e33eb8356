// The hub's own figures: seven tiles, each a figure over ten minutes as a line, larger by a click.

import { $, count, drawLine, element, figure, setText } from './ui.js';

const room = 600, together = 6;     // seconds
const sum = counts => Object.values(counts ?? {}).reduce((total, value) => total + value, 0);
const percent = (s, before) => (s.cpuSeconds - before.cpuSeconds) / (s.timestamp - before.timestamp) * 1e5;
const ms = seconds => Number.isFinite(seconds) ? seconds * 1000 : NaN;

/** Name, unit, colour, the value of a second (and of the one before), and what stands beside it. */
const kinds = [
  ['Fixes in', '/s', 'available', s => s.fixes],
  ['Deliveries', '/s', 'on_trip', s => s.deliveries],
  ['Latency p50', 'ms', 'on_trip', s => ms(s.p50)],
  ['Latency p99', 'ms', 'unavailable', s => ms(s.p99)],
  ['Sessions', '', 'background', s => sum(s.sessions)],
  ['Memory', 'MB', 'background', s => s.residentBytes / 1e6,
    (s, before) => before ? `CPU ${figure(percent(s, before))} %` : ''],
  ['Drops and errors', '/s', 'raw', s => sum(s.drops) + sum(s.errors)],
];

/** In a tile a second is a third of a pixel: some are one point together. */
function means(values) {
  const groups = [];
  for (let end = values.length; end > 0; end -= together) {
    const known = values.slice(Math.max(0, end - together), end).filter(Number.isFinite);
    groups.unshift(known.length ? known.reduce((total, value) => total + value, 0) / known.length : NaN);
  }
  return groups;
}

export class Tiles {
  #history = []; #nodes; #open = -1; #map;

  constructor(hub, map) {
    this.#map = map;
    this.#nodes = kinds.map(([name, unit], index) => {
      const value = element('span', { textContent: '–' }), beside = element('i'), line = element('canvas');
      const button = element('button', { type: 'button', className: 'tile' }, element('span', { textContent: name }),
        beside, element('b', {}, value, element('small', { textContent: unit })), line);
      button.addEventListener('click', () => this.#enlarge(this.#open === index ? -1 : index));
      return { button, value, beside, line };
    });
    $('tiles').replaceChildren(...this.#nodes.map(({ button }) => button));
    $('chart-end').addEventListener('click', () => this.#enlarge(-1));
    const feed = hub.stats();
    feed.on('snapshot', ({ history = [] }) => {
      this.#history = history.slice(-room);
      this.draw();
    });
    feed.on('stats', second => {
      this.#history.push(second);
      if (this.#history.length > room) this.#history.shift();
      if (document.visibilityState === 'visible') this.draw();
    });
  }

  /** Whether there was one to be closed. */
  close() {
    const isOpen = this.#open >= 0;
    this.#enlarge(-1);
    return isOpen;
  }

  #enlarge(index) {
    if (index < 0 && this.#open >= 0) this.#nodes[this.#open].button.focus();
    this.#open = index;
    $('chart').hidden = index < 0;
    if (index >= 0) setText($('chart-title'), kinds[index][0]);
    this.draw();
  }

  draw() {
    const history = this.#history, last = history.at(-1), before = history.at(-2);
    kinds.forEach(([, unit, color, valueOf, besideOf], index) => {
      const { value, beside, line } = this.#nodes[index];
      const text = last ? figure(valueOf(last)) : '–';
      setText(value, text);
      if (last && besideOf) setText(beside, besideOf(last, before));
      const values = history.map(valueOf), ink = this.#map.colors[color];
      drawLine(line, means(values), room / together, ink, { top: 10 });
      if (index !== this.#open) return;
      const [low, high] = drawLine($('chart-line'), values, room, ink);
      setText($('chart-value'), `${text} ${unit}`);
      setText($('chart-range'), `${count(values.length)} s: ${figure(low)} to ${figure(high)} ${unit}`);
    });
  }
}
