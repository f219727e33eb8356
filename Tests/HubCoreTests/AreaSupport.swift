// What a watcher of live areas sees, kept as a loop and a client keep it, and what it should see.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

/// What one watcher's map shows, by the protocol's rules.
struct WatchedMap {
  var drivers: [Identifier: (cell: GeohashCell, driver: AreaUpdate.Driver)] = [:]
  var cells: Set<GeohashCell> = []

  mutating func apply(_ update: AreaUpdate) {
    if update.isFull {
      let named = Set(update.drivers.map(\.driverID))
      for (id, entry) in drivers where entry.cell == update.cell && !named.contains(id) { drivers[id] = nil }
    }
    for driver in update.drivers { drivers[driver.driverID] = (update.cell, driver) }
    for id in update.left where drivers[id]?.cell == update.cell { drivers[id] = nil }
  }
}

/// One watcher on the bench, with its loop's part: it asks for snapshots of cells, and gets a tick's updates when all
/// are there, then the snapshots that came in between.
final class AreaWatcher {
  let session: SessionRef
  let role: Role
  var map = WatchedMap()
  var handles: [ChannelHandle: GeohashCell] = [:]
  var updates: [AreaUpdate] = []
  var refusals: [ErrorReply] = []
  /// Cells that it gets the changes of.
  private var current: Set<ChannelHandle> = []
  private var pending: [(channel: ChannelHandle, update: AreaUpdate)] = []
  private var waiting: [(channel: ChannelHandle, updates: [AreaUpdate])] = []

  init(_ role: Role, slot: UInt32) {
    self.role = role
    session = SessionRef(outlet: 0, slot: slot, generation: 1)
  }

  func ask(_ channel: Channel, view: String? = nil, precision: Int? = nil) -> HubInput {
    .subscribe(
      SubscribeInput(
        session: session, actor: Actor(role: role, id: id("w")), messageID: message("ask"),
        request: Subscribe(channel: channel, viewID: view.map { InlineText($0)! }, precision: precision),
        grant: .granted))
  }

  /// It has not read what was sent: some cells are asked for anew.
  func fallBehind() -> HubInput {
    current = []
    return .areaSnapshots(session, Array(handles.keys))
  }

  /// Takes in what came, and gives what a loop would ask for.
  func look(at turn: Turn) -> [HubInput] {
    var inputs: [HubInput] = []
    for output in turn.all {
      switch output {
      case .watching(session, let answer, let cells): inputs += watch(cells, answer.cells!)
      case .areaSnapshot(session, let handle, let parts):
        let updates = parts.compactMap { if case .areaUpdate(let update) = $0.body { update } else { nil } }
        if pending.isEmpty { take(whole: updates, handle) } else { waiting.append((handle, updates)) }
      case .areaUpdate(let handle, let publication):
        guard case .areaUpdate(let update) = publication.body else { continue }
        #expect(
          !pending.contains { $0.channel == handle && $0.update.drivers.count < AreaUpdate.maximumDrivers },
          "a tick sends a cell once, unless it is large")
        #expect(Set(update.drivers.map(\.driverID)).count == update.drivers.count, "and once of a driver")
        pending.append((handle, update))
      case .areaTickEnded: endTick()
      case .subscriptionRefused(session, let error): refusals.append(error)
      default: break
      }
    }
    return inputs
  }

  private func watch(_ cells: [ChannelHandle], _ names: [GeohashCell]) -> [HubInput] {
    var inputs: [HubInput] = []
    let asked = Dictionary(uniqueKeysWithValues: zip(cells, names))
    let new = cells.filter { handles[$0] == nil }
    for cell in cells where handles[cell] != nil { inputs.append(.released(outlet: 0, cell)) }
    for (handle, cell) in handles where asked[handle] == nil {
      inputs.append(.released(outlet: 0, handle))
      for (id, entry) in map.drivers where entry.cell == cell { map.drivers[id] = nil }
      current.remove(handle)
    }
    handles = asked
    map.cells = Set(asked.values)
    inputs.append(.areaSnapshots(session, new))
    return inputs
  }

  private func take(whole parts: [AreaUpdate], _ handle: ChannelHandle) {
    guard handles[handle] == parts.first?.cell, current.insert(handle).inserted else { return }
    for update in parts {
      updates.append(update)
      map.apply(update)
    }
  }

  private func endTick() {
    #expect(Set(pending.map(\.update.tick)).count <= 1, "one tick at a time")
    for (handle, update) in pending where handles[handle] == update.cell && current.contains(handle) {
      updates.append(update)
      map.apply(update)
    }
    pending = []
    let held = waiting
    waiting = []
    for (handle, updates) in held { take(whole: updates, handle) }
  }
}

extension SplitMix64 {
  /// 0 ..< 1.
  mutating func fraction() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }
}

extension HubBench {
  /// Gives the hub turns until it has nothing more to do at this moment.
  func settle(_ watchers: [AreaWatcher], _ inputs: [HubInput] = []) {
    var inputs = inputs
    repeat {
      let turn = turn(inputs)
      inputs = watchers.flatMap { $0.look(at: turn) }
    } while hub.hasMoreDue || !inputs.isEmpty
  }

  /// Settles where only so much comes in each turn: between the slices of a tick there is always something.
  func trickle(_ watchers: [AreaWatcher], _ inputs: [HubInput], perTurn: Int) {
    var (rest, asked) = (inputs[...], [HubInput]())
    repeat {
      let turn = turn(Array(rest.prefix(perTurn)) + asked)
      rest = rest.dropFirst(perTurn)
      asked = watchers.flatMap { $0.look(at: turn) }
    } while hub.hasMoreDue || !rest.isEmpty || !asked.isEmpty
  }

  /// What a watcher's map should show, by brute force over all drivers.
  private func truth(_ watcher: AreaWatcher) -> [Identifier: Coordinate] {
    var shown: [Identifier: Coordinate] = [:]
    for driver in 0..<hub.drivers.endIndex {
      guard hub.drivers.find(hub.drivers[driver].id) == driver, let place = hub.drivers[driver].position?.coordinate
      else { continue }
      let isOps = watcher.role == .ops
      let isOnline = !hub.drivers[driver].isStale
      guard isOps || isOnline && hub.drivers[driver].status == .available else { continue }
      guard isOnline || uptime < hub.drivers[driver].lastFix + 3_600_000_000_000 else { continue }
      let seen = isOps ? place : PublicGrid.snapped(place)
      guard watcher.map.cells.contains(where: { $0.contains(seen) }) else { continue }
      let name = isOps ? hub.drivers[driver].id : PublicAudience.name(hub.areas.area(of: UInt32(driver)).pseudonym)
      shown[name] = seen
    }
    return shown
  }

  func check(_ watchers: [AreaWatcher], _ context: String) {
    for watcher in watchers {
      let expected = truth(watcher)
      let seen = watcher.map.drivers.mapValues(\.driver.coordinate)
      #expect(seen == expected, "\(context), \(watcher.role.name)")
    }
  }

  /// Somebody who watches an area.
  func map(_ role: Role, _ channel: Channel, slot: UInt32 = 100) -> AreaWatcher {
    let watcher = AreaWatcher(role, slot: slot)
    settle([watcher], [watcher.ask(channel, view: "map")])
    return watcher
  }
}
