// Live maps (protocol/areas.md, "Rules for a client"; counts by cell): hub.js loads this with the first view.

/** `place` is a box (degrees), a circle (metres), or a geohash. */
export function channelOf(kind, place) {
  if (typeof place === 'string') return `area:${place}`;
  const { latitude, longitude, radius, west, south, east, north } = place;
  if (radius !== undefined) return `nearby:${latitude.toFixed(7)},${longitude.toFixed(7)},${radius}`;
  return `${kind}:${[west, south, east, north].map(degrees => degrees.toFixed(7))}`;
}

/** A block of counts has the cells whose names begin with its own, and are two characters longer. */
const isIn = (id, blocks) => blocks.some(block => id.startsWith(block) && id.length === block.length + 2);

/** A view has other cells. The hub sends no snapshot of a cell that another view has: it is copied from there. */
export function subscribed(view, { cells, blocks }, channels) {
  const others = [...channels.values()].filter(other => other !== view);
  if (blocks) {
    view.blocks = blocks;
    for (const id of view.counts.keys()) if (!isIn(id, blocks)) view.counts.delete(id);
    for (const { counts } of others) for (const [id, cell] of counts) if (isIn(id, blocks)) view.counts.set(id, cell);
  }
  if (!cells) return;
  view.cells = new Set(cells);
  for (const { drivers } of others) {
    for (const [id, driver] of drivers) {
      if (view.cells.has(driver.cell) && !view.drivers.has(id)) view.drivers.set(id, driver);
    }
  }
  for (const [id, { cell }] of view.drivers) if (!view.cells.has(cell)) view.drivers.delete(id);
  for (const cell of view.more.keys()) if (!view.cells.has(cell)) view.more.delete(cell);
}

/** Updates all views that show a cell, or a block of counts, and calls `changed` with each. */
export function updated(type, update, channels, changed) {
  for (const view of channels.values()) {
    if ((type === 'area_update' ? moved : counted)(view, update)) changed(view);
  }
}

/** What a cell says of a driver counts until another cell shows it. */
function moved(view, { cell, tick, full, drivers, left, more = 0 }) {
  if (!view.cells?.has(cell)) return false;
  const named = new Set(full ? drivers.map(({ driverId }) => driverId) : left);
  for (const [id, driver] of view.drivers) {
    if (driver.cell === cell && named.has(id) !== !!full) view.drivers.delete(id);
  }
  if (full) view.full = cell + tick;   // of one tick's messages the first is
  for (const driver of drivers) {
    const before = view.drivers.get(driver.driverId), took = driver.published - driver.timestamp;
    // The least that new fixes take is by how much the phone's clock is off; up to 2 s either way it is right.
    const isNew = before ? driver.timestamp > before.timestamp : view.full !== cell + tick;
    const off = isNew && (driver.timeSource || !(took > before?.off && Math.abs(took) > 2000)) ? took : before?.off;
    const age = Math.max(0, Math.abs(off) > 2000 ? took - off : took) / 1000;
    view.drivers.set(driver.driverId, Object.assign(driver, { cell, off, age }));
  }
  view.more.set(cell, more);
  return true;
}

/** Counts come by blocks of cells. */
function counted({ blocks, counts }, { channel, full, cells }) {
  const [, block] = /:(.*)\//.exec(channel);
  if (!blocks?.includes(block)) return false;
  for (const id of counts.keys()) if (full && isIn(id, [block])) counts.delete(id);
  for (const cell of cells) counts.set(cell.cell, cell);
  return true;
}
