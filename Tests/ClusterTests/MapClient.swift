// Somebody who watches a part of the map at one hub of the simulated cluster: the loop's part and the client's, by the
// rules of protocol/areas.md.
import HubBytes
import HubCore
import HubGeo
import HubMessages

final class MapClient {
  struct Shown {
    var cell: GeohashCell
    var driver: AreaUpdate.Driver
    var details: AreaUpdate.Details?
  }

  let session: SessionRef
  let role: Role
  private(set) var drivers: [Identifier: Shown] = [:]
  /// Of blocks that are counted: cells that are not empty.
  private(set) var counts: [GeohashCell: CountsUpdate.Cell] = [:]
  private(set) var more: [GeohashCell: Int] = [:]
  private(set) var refusals = 0
  /// Every change of who is shown, to find those who were gone for a tick.
  private(set) var departures: [Identifier] = []
  private var handles: [ChannelHandle: GeohashCell] = [:]
  private var current: Set<ChannelHandle> = []
  private var pending: [(channel: ChannelHandle, body: Publication.Body)] = []
  private var waiting: [(channel: ChannelHandle, bodies: [Publication.Body])] = []

  init(_ role: Role, slot: UInt32) {
    self.role = role
    session = SessionRef(outlet: 0, slot: slot, generation: 1)
  }

  var cells: Set<GeohashCell> { Set(handles.values) }

  func ask(_ channel: Channel, precision: Int? = nil) -> HubInput {
    .subscribe(
      SubscribeInput(
        session: session, actor: Actor(role: role, id: id("map")), messageID: message(2),
        request: Subscribe(channel: channel, viewID: InlineText("map"), precision: precision), grant: .granted))
  }

  /// It watches nothing any more.
  func leave() -> [HubInput] {
    defer { (handles, current, drivers, counts) = ([:], [], [:], [:]) }
    return handles.keys.map { .released(outlet: 0, $0) }
  }

  /// Takes in what came, and gives what its loop asks for.
  func take(_ output: HubOutput) -> [HubInput] {
    switch output {
    case .watching(session, let answer, let cells): return watch(cells, answer.cells ?? [])
    case .areaSnapshot(session, let handle, let parts):
      if pending.isEmpty { take(whole: parts.map(\.body), handle) } else { waiting.append((handle, parts.map(\.body))) }
    case .areaUpdate(let handle, let publication): pending.append((handle, publication.body))
    case .areaTickEnded: endTick()
    case .subscriptionRefused(session, _): refusals += 1
    case _: break
    }
    return []
  }

  private func watch(_ cells: [ChannelHandle], _ names: [GeohashCell]) -> [HubInput] {
    let asked = Dictionary(uniqueKeysWithValues: zip(cells, names))
    let new = cells.filter { handles[$0] == nil }
    var inputs: [HubInput] = cells.filter { handles[$0] != nil }.map { .released(outlet: 0, $0) }
    for (handle, cell) in handles where asked[handle] == nil {
      inputs.append(.released(outlet: 0, handle))
      drivers = drivers.filter { $0.value.cell != cell }
      counts = counts.filter { !isIn($0.key, cell) }
      current.remove(handle)
    }
    handles = asked
    return inputs + [.areaSnapshots(session, new)]
  }

  private func take(whole parts: [Publication.Body], _ handle: ChannelHandle) {
    guard handles[handle] != nil, current.insert(handle).inserted else { return }
    parts.forEach(apply)
  }

  private func endTick() {
    for (handle, body) in pending where current.contains(handle) { apply(body) }
    pending = []
    let held = waiting
    waiting = []
    for (handle, bodies) in held { take(whole: bodies, handle) }
  }

  private func apply(_ body: Publication.Body) {
    switch body {
    case .areaUpdate(let update): apply(update)
    case .countsUpdate(let update):
      if update.isFull { counts = counts.filter { !isIn($0.key, update.block) } }
      for cell in update.cells {
        counts[cell.cell] = cell == CountsUpdate.Cell(cell.cell) ? nil : cell
      }
    case .driverLocation, .etaUpdate, .tripUpdate, .notification, .offer, .rawFix, .stats: break
    }
  }

  private func apply(_ update: AreaUpdate) {
    more[update.cell] = update.more
    var gone = update.left
    if update.isFull {
      let named = Set(update.drivers.map(\.driverID))
      gone += drivers.keys.filter { drivers[$0]?.cell == update.cell && !named.contains($0) }
    }
    for (index, driver) in update.drivers.enumerated() {
      let details = update.details.isEmpty ? nil : update.details[index]
      drivers[driver.driverID] = Shown(cell: update.cell, driver: driver, details: details)
    }
    for id in gone where drivers[id]?.cell == update.cell {
      drivers[id] = nil
      departures.append(id)
    }
  }

  private func isIn(_ cell: GeohashCell, _ outer: GeohashCell) -> Bool {
    cell.bits >> UInt64(5 * (cell.precision - outer.precision)) == outer.bits
  }
}

extension ClusterWorld {
  /// Somebody who watches at a hub.
  func map(_ role: Role, _ channel: Channel, precision: Int? = nil, at name: String, slot: UInt32) -> MapClient {
    let map = MapClient(role, slot: slot)
    self[name].maps.append(map)
    self[name].inputs.append(map.ask(channel, precision: precision))
    return map
  }
}
