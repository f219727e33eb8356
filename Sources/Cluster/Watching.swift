// Parts of the map that sessions here watch, over all hubs: each hub sends its own drivers in the cells that another
// one requests, once a second what has changed, and that one shows them among its own (guests).
//
//     here                                    at each other hub
//     somebody watches a cell → watch ───────→ its hub watches the cell for peers
//     guests ←────────────────── a snapshot ←── as for a session that begins to watch
//     guests ←───────────────────── changes ←── with each of its ticks: drivers first, then departures, so that a
//                                               driver who changes cells is never missing in between
//
// A cell that nobody watches is not requested. After a gap all cells of that hub are requested again, and come as
// snapshots. A cell that does not come is requested again; the drivers of a hub that is silent for two seconds are no
// longer shown.
import HubBackplane
import HubBytes
import HubCore
import HubGeo
import HubMessages

/// The cells requested from others, and those that others request.
struct Watching {
  /// The cells that this hub watches; and of them those within no other one, which are requested from other hubs.
  private var watched: Set<GeohashCell> = []
  private(set) var asked: Set<GeohashCell> = []
  /// Cells that were requested or released since the last turn.
  var changed: Set<GeohashCell> = []
  private var deadlines = TimedQueue<(peer: Int, cell: GeohashCell)>()
  /// Peers by the handle of a cell of this hub's that they watch.
  fileprivate var watchers: [ChannelHandle: [Int]] = [:]
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }

  fileprivate mutating func wait(_ cell: GeohashCell, of peer: Int, until time: Int64) {
    deadlines.append((peer, cell), at: time)
  }

  fileprivate mutating func nextOverdue(now: Int64) -> (peer: Int, cell: GeohashCell)? { deadlines.next(now: now) }

  mutating func watch(_ cell: GeohashCell) {
    watched.insert(cell)
    changed.insert(cell)
  }

  mutating func unwatch(_ cell: GeohashCell) {
    watched.remove(cell)
    changed.insert(cell)
  }

  /// Works out anew which cells are requested. O(what has changed); where that has coarser cells than the finest, O(all
  /// watched), once for all of them.
  fileprivate mutating func chooseAsked() {
    let outer = changed.filter { $0.precision < ClusterOutput.finestWatched }
    let affected = outer.isEmpty ? changed : changed.union(watched.filter { $0.isPart(of: outer) })
    for cell in affected {
      let isAsked = watched.contains(cell) && !cell.isPart(of: watched)
      if isAsked == asked.contains(cell) { continue }
      if isAsked { asked.insert(cell) } else { asked.remove(cell) }
      changed.insert(cell)
    }
  }
}

extension GeohashCell {
  fileprivate func prefix(_ characters: Int) -> GeohashCell {
    GeohashCell(bits: bits >> UInt64(5 * (precision - characters)), precision: characters) ?? self
  }

  /// Whether one of the cells encloses it.
  fileprivate func isPart(of cells: Set<GeohashCell>) -> Bool {
    (1..<precision).contains { cells.contains(prefix($0)) }
  }
}

/// How much of a requested cell a peer has sent.
enum AskedCell: Equatable {
  /// It is asked for again at a time (uptime, ns).
  case asked(attempts: Int, due: Int64)
  /// A part of the snapshot has come, or all of it: changes apply.
  case partial, complete
}

/// A cell of this hub that a peer watches.
struct WatchedCell {
  /// Nil until the hub has answered.
  var handle: ChannelHandle?
  /// Its snapshot was sent: changes follow.
  var isSent = false
}

extension Watching {
  // MARK: Cells watched here

  /// Requests from a peer all that is watched here.
  func askForAll(_ peer: Peer) {
    peer.areas.removeAll()
    peer.areaQueue = Array(asked)
  }

  /// Asks for cells, and for those again that did not come.
  mutating func ask() {
    guard context.phase == .member else { return }
    chooseAsked()
    loseSilent()
    for index in context.peers.indices where !changed.isEmpty && context.peers[index].isMember {
      let released = changed.filter { context.peers[index].areas[$0] != nil && !asked.contains($0) }
      for cell in released { context.peers[index].areas[cell] = nil }
      if !released.isEmpty { context.peers[index].append(.unwatch) { $0.append(cells: released) } }
      // Where one was released and is wanted again within a turn, what came meanwhile was not kept.
      let wanted = changed.intersection(asked)
      for cell in wanted { context.peers[index].areas[cell] = nil }
      context.peers[index].areaQueue += wanted
    }
    changed.removeAll()
    while let (index, cell) = nextOverdue(now: context.now.uptime) { askAgain(index, cell) }
    for index in context.peers.indices where context.peers[index].isMember && context.peers[index].incarnation > 0 {
      let batch = context.peers[index].areaQueue.suffix(context.limits.resumesPerTurn)
      context.peers[index].areaQueue.removeLast(batch.count)
      let cells = Set(batch).filter { asked.contains($0) && context.peers[index].areas[$0] == nil }
      for cell in cells { ask(index, cell, attempts: 1) }
      if !cells.isEmpty { context.peers[index].append(.watch) { $0.append(cells: cells) } }
    }
  }

  private mutating func ask(_ index: Int, _ cell: GeohashCell, attempts: Int) {
    let due = context.now.uptime + context.limits.answerTime
    context.peers[index].areas[cell] = .asked(attempts: attempts, due: due)
    wait(cell, of: index, until: due)
  }

  private mutating func askAgain(_ index: Int, _ cell: GeohashCell) {
    // One that was asked for anew has another time; one of a hub that has left is asked for when it comes back.
    guard case .asked(let attempts, let due)? = context.peers[index].areas[cell], due <= context.now.uptime,
      context.peers[index].isMember
    else { return }
    ask(index, cell, attempts: attempts + 1)
    if context.peers[index].isSilent { return }
    context.peers[index].append(.watch) { $0.append(cells: [cell]) }
    // After so many attempts it has no room for the cell: what it sent before is out of date.
    guard attempts == context.limits.attempts else { return }
    let nothing = AreaUpdate(cell: cell, tick: 0, isFull: true, drivers: [])
    context.inputs.append(.cluster(.area(nothing, from: UInt32(index), endsSnapshot: true)))
  }

  /// Forgets the drivers of a hub that is not heard.
  private mutating func loseSilent() {
    for index in context.peers.indices where context.peers[index].hasGuests {
      guard
        !context.peers[index].isMember || context.now.uptime - context.peers[index].heard >= context.limits.guestTime
      else { continue }
      lose(of: index)
      context.peers[index].wantsRestart = true
    }
  }

  mutating func lose(of index: Int) {
    context.peers[index].areas.removeAll()
    guard context.peers[index].hasGuests else { return }
    context.peers[index].hasGuests = false
    context.inputs.append(.cluster(.areasLost(of: UInt32(index))))
  }

  /// A peer sends its drivers.
  mutating func receive(area reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    guard let time = Int64(exactly: try reader.varint()) else { throw .message }
    let endsSnapshot = try reader.byte() != 0
    var messages = BinaryServerReader(hubTime: Timestamp(milliseconds: time))
    guard case .publication(let publication)? = try reader.message(&messages),
      case .areaUpdate(var update) = publication.body, update.details.count == update.drivers.count
    else { throw .message }
    for number in update.details.indices { update.details[number].lastTripEnded = Int64(clamping: try reader.varint()) }
    guard let state = context.peers[index].areas[update.cell] else { return }  // not asked for any more
    if case .asked = state, !update.isFull { return }  // the snapshot is yet to come
    context.peers[index].areas[update.cell] = endsSnapshot || state == .complete ? .complete : .partial
    context.peers[index].hasGuests = true
    context.counters.areaDriversIn += UInt64(update.drivers.count)
    context.inputs.append(.cluster(.area(update, from: UInt32(index), endsSnapshot: endsSnapshot)))
  }

  // MARK: Cells that others watch here

  mutating func receive(watch reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    for cell in try reader.cells() {
      if let known = context.peers[index].watched[cell] {
        if let handle = known.handle { askForSnapshot(handle, for: index) }
        continue
      }
      // At a limit it is not answered: the asker repeats it.
      guard context.peers[index].watched.count < context.limits.cellsPerPeer,
        let session = context.session(for: index, 0, Subscribe(channel: .area(cell)))
      else {
        context.counters.cellsRefused += 1
        continue
      }
      context.peers[index].watched[cell] = WatchedCell()
      context.inputs.append(
        .subscribe(
          SubscribeInput(
            session: session, actor: .cluster, messageID: ClusterOutput.unsolicited,
            request: Subscribe(channel: .area(cell)), grant: .granted)))
    }
  }

  mutating func receive(unwatch reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    for cell in try reader.cells() { end(cell, by: index) }
  }

  private mutating func end(_ cell: GeohashCell, by index: Int) {
    guard let handle = context.peers[index].watched.removeValue(forKey: cell)?.handle else { return }
    watchers[handle]?.removeAll { $0 == index }
    if watchers[handle]?.isEmpty == true { watchers[handle] = nil }
    context.inputs.append(.released(outlet: context.outlet, handle))
  }

  /// A peer watches nothing here any more, as far as this hub knows.
  mutating func end(by index: Int) {
    for cell in Array(context.peers[index].watched.keys) { end(cell, by: index) }
    context.peers[index].dropDepartures()
  }

  /// The hub watches a cell for a peer.
  mutating func watches(_ session: SessionRef, _ handles: [ChannelHandle]) {
    guard let (ask, isCurrent) = context.asker(session), case .area(let cell)? = ask.channel, let handle = handles.first
    else {
      return
    }
    guard isCurrent, let known = context.peers[ask.peer].watched[cell], known.handle == nil else {
      return context.inputs.append(.released(outlet: context.outlet, handle))
    }
    context.peers[ask.peer].watched[cell]?.handle = handle
    watchers[handle, default: []].append(ask.peer)
    askForSnapshot(handle, for: ask.peer)
  }

  /// The hub has no room for a cell.
  mutating func refused(_ cell: GeohashCell, by index: Int) {
    context.counters.cellsRefused += 1
    context.peers[index].watched[cell] = nil
  }

  private mutating func askForSnapshot(_ handle: ChannelHandle, for index: Int) {
    context.inputs.append(
      .areaSnapshots(SessionRef(outlet: context.outlet, slot: UInt32(index), generation: 0), [handle]))
  }

  /// A snapshot of a cell, for the peer of the session's slot.
  mutating func send(_ parts: [Publication], of handle: ChannelHandle, to session: SessionRef) {
    let index = Int(session.slot)
    let updates = parts.compactMap { if case .areaUpdate(let update) = $0.body { update } else { nil } }
    guard let cell = updates.first?.cell, context.peers[index].watched[cell]?.handle == handle else { return }
    context.peers[index].watched[cell]?.isSent = true
    var whole = updates[0]
    for update in updates.dropFirst() {
      whole.drivers += update.drivers
      whole.details += update.details
    }
    for record in records(whole, isWhole: true) { context.peers[index].append(area: record) }
    context.counters.areaDriversOut += UInt64(whole.drivers.count)
  }

  /// The changes in a cell at a tick.
  mutating func send(_ publication: Publication, of handle: ChannelHandle) {
    guard case .areaUpdate(var update) = publication.body, let watchers = watchers[handle] else { return }
    let receivers = watchers.filter { context.peers[$0].watched[update.cell]?.isSent == true }
    // So many have left that all present drivers are sent, in parts: peers get that as one snapshot only.
    if update.isFull {
      for index in receivers {
        context.peers[index].watched[update.cell]?.isSent = false
        askForSnapshot(handle, for: index)
      }
      return
    }
    if receivers.isEmpty { return }
    let left = update.left
    update.left = []
    let arrivals = update.drivers.isEmpty ? [] : records(update, isWhole: false)
    (update.drivers, update.details, update.left) = ([], [], left)
    let departures = left.isEmpty ? [] : records(update, isWhole: false)
    for index in receivers {
      for record in arrivals { context.peers[index].append(area: record) }
      for record in departures { context.peers[index].append(departure: record) }
    }
    if case .areaUpdate(let whole) = publication.body {
      context.counters.areaDriversOut += UInt64(whole.drivers.count * receivers.count)
    }
  }

  /// Ends a tick: departures behind all arrivals.
  mutating func endTick() {
    for index in context.peers.indices {
      for record in context.peers[index].takeDepartures() { context.peers[index].append(area: record) }
    }
  }

  /// The records of an update: a limited number of drivers in each, so as not to keep the receiving hub busy for long.
  private func records(_ update: AreaUpdate, isWhole: Bool) -> [[UInt8]] {
    let (size, count) = (context.limits.driversPerRecord, max(update.drivers.count, update.left.count, 1))
    return stride(from: 0, to: count, by: size).map { start in
      var part = update
      part.isFull = isWhole && start == 0
      part.drivers = Array(update.drivers.dropFirst(start).prefix(size))
      part.details = Array(update.details.dropFirst(start).prefix(size))
      part.left = Array(update.left.dropFirst(start).prefix(size))
      var bytes = ByteBuffer()
      bytes.append(.area) { body in
        body.append(varint: UInt64(context.time.milliseconds))
        body.append(isWhole && start + size >= count ? 1 : 0)
        body.append(
          Publication(channel: .area(part.cell), number: 0, timestamp: context.time, body: .areaUpdate(part)), 0,
          ImpliedNames())
        for details in part.details { body.append(varint: UInt64(max(0, details.lastTripEnded))) }
      }
      return bytes.array()
    }
  }
}

extension ByteBuffer {
  fileprivate mutating func append(cells: some Sequence<GeohashCell>) {
    for cell in cells {
      append(UInt8(cell.precision))
      append(varint: cell.bits)
    }
  }
}

extension ClusterFrameReader {
  fileprivate mutating func cells() throws(ClusterFrameError) -> [GeohashCell] {
    var cells: [GeohashCell] = []
    while !isAtEnd {
      let precision = Int(try byte())
      guard let cell = GeohashCell(bits: try varint(), precision: precision) else { throw .message }
      cells.append(cell)
    }
    return cells
  }
}
