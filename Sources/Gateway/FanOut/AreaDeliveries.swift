// Areas on a loop: the cells of each session's views, a tick's updates so far, and snapshots for sessions that begin or
// have fallen behind.
import HubBytes
import HubCore
import HubMessages

/// A loop's state of areas.
struct AreaDeliveries {
  /// A part of the map that a session watches.
  struct View {
    /// The client's name for it; nil where the channel is its name.
    var id: InlineText?
    var channel: Channel
    var cells: [ChannelHandle]
  }

  /// Each session's views, by its slot; sessions beyond the end have none.
  private var views: [[View]] = []
  /// The updates of an incomplete tick, and snapshots that came meanwhile, which are newer than those.
  private var gathering = AreaTick()
  /// The tick whose updates go to sessions.
  private var publishing: AreaTick?
  var encoded = EncodedCells()
  /// About how many bytes were sent since the last write.
  var unwrittenBytes = 0

  // MARK: Views

  private func views(of slot: Int) -> [View] { slot < views.count ? views[slot] : [] }

  func hasViews(_ slot: Int) -> Bool { !views(of: slot).isEmpty }

  /// Cells of all views of a session, counted for each view.
  func cellCount(_ slot: Int) -> Int { views(of: slot).reduce(0) { $0 + $1.cells.count } }

  /// The cells of the view that a session's new one replaces.
  func cells(_ slot: Int, ofViewBefore view: View) -> [ChannelHandle] {
    views(of: slot).first { $0.isReplaced(by: view) }?.cells ?? []
  }

  /// The cells that a session leaves with its new view: those in none of its views then.
  func cellsLeft(_ slot: Int, by new: View) -> [ChannelHandle] {
    let kept = views(of: slot).filter { !$0.isReplaced(by: new) } + [new]
    return cells(slot, ofViewBefore: new).filter { cell in !kept.contains { $0.cells.contains(cell) } }
  }

  mutating func set(_ slot: Int, _ view: View) {
    if slot >= views.count { views.append(contentsOf: repeatElement([], count: slot + 1 - views.count)) }
    if let index = views[slot].firstIndex(where: { $0.isReplaced(by: view) }) {
      views[slot][index] = view
    } else {
      views[slot].append(view)
    }
  }

  /// Removes a view; nil where the session has none of that name.
  mutating func remove(_ slot: Int, _ name: Unsubscribe) -> View? {
    let index = views(of: slot).firstIndex { view in
      switch name {
      case .view(let id): view.id == id
      case .channel(let channel): view.channel == channel
      }
    }
    guard let index else { return nil }
    return views[slot].remove(at: index)
  }

  mutating func removeAll(_ slot: Int) { if slot < views.count { views[slot] = [] } }

  /// Whether a view of the session has the cell.
  func isWatching(_ slot: Int, _ cell: ChannelHandle) -> Bool {
    views(of: slot).contains { $0.cells.contains(cell) }
  }

  // MARK: Ticks

  mutating func add(_ channel: ChannelHandle, _ publication: Publication) { gathering.add(channel, publication) }

  /// Puts off a snapshot that has to wait for the end of a tick; false where there is none to wait for.
  mutating func putOff(_ snapshot: AreaTick.Snapshot) -> Bool {
    if !gathering.updates.isEmpty {
      gathering.snapshots.append(snapshot)
    } else if publishing != nil {
      publishing!.snapshots.append(snapshot)
    } else {
      return false
    }
    return true
  }

  /// Drops the deferred snapshots of a channel that is gone, since another channel may get its handle.
  mutating func forget(_ channel: ChannelHandle) {
    gathering.forget(channel)
    publishing?.forget(channel)
  }

  /// The tick is complete and goes to all watchers: `due` (uptime, ns) is when it ended.
  mutating func beginPublishing(due: Int64) {
    precondition(publishing == nil, "the tick before is to be published first")
    if gathering.updates.isEmpty { return }
    var tick = AreaTick()
    swap(&tick, &gathering)
    tick.due = due
    tick.begin(views.indices.reversed().filter { !views[$0].isEmpty })
    publishing = tick
  }

  var isPublishing: Bool { publishing != nil }

  /// Takes the tick that is being published; the caller puts it back unless it is done.
  mutating func takePublishing() -> AreaTick? {
    defer { publishing = nil }
    return publishing
  }

  mutating func putBack(_ tick: AreaTick) { publishing = tick }
}

/// The changes in cells since the last tick, and the sessions that have not got them.
struct AreaTick {
  /// A snapshot of a cell for a session.
  typealias Snapshot = (session: SessionRef, channel: ChannelHandle, parts: [Publication])

  private(set) var updates: [(channel: ChannelHandle, publication: Publication)] = []
  /// About how many bytes each update has in JSON, if it is only for ops; else 0.
  private(set) var bytesForOps: [Int] = []
  /// The updates of each channel, which are adjacent.
  private var ranges: [UInt32: Range<Int>] = [:]
  /// Snapshots to send after the updates, the next one first.
  var snapshots: ArraySlice<Snapshot> = []
  /// By handle: snapshots before this index belong to a channel that is gone.
  private var gone: [UInt32: Int] = [:]
  /// The sessions' slots, the next one last: in order, for locality.
  var slots: [Int] = []
  var due: Int64 = 0
  /// The updates for the session that is being served, in order.
  private(set) var sessionUpdates: [(updates: Range<Int>, subscriber: Subscriber)] = []
  /// By update: its range in the arena, if it is encoded.
  private var frames: [EncodedFrames] = []
  /// The updates that have a range in `frames`.
  private var framed: [Int] = []

  fileprivate mutating func add(_ channel: ChannelHandle, _ publication: Publication) {
    let first = ranges[channel.index]?.lowerBound ?? updates.count
    updates.append((channel, publication))
    bytesForOps.append(publication.usualBytesForOps)
    ranges[channel.index] = first..<updates.count
  }

  mutating func nextSnapshot() -> Snapshot? {
    while let index = snapshots.indices.first, let snapshot = snapshots.popFirst() {
      if index >= gone[snapshot.channel.index] ?? 0 { return snapshot }
    }
    return nil
  }

  fileprivate mutating func forget(_ channel: ChannelHandle) {
    if !snapshots.isEmpty { gone[channel.index] = snapshots.endIndex }
  }

  /// Begins to publish to the sessions in these slots; all updates are there.
  fileprivate mutating func begin(_ sessions: [Int]) {
    slots = sessions
    frames = Array(repeating: EncodedFrames(), count: updates.count)
  }

  /// Collects a session's updates: those of its cells, except cells whose snapshot it waits for.
  mutating func gatherUpdates(of session: SessionSubscriptions, in subscriptions: borrowing SubscriptionTable) {
    sessionUpdates.removeAll(keepingCapacity: true)
    subscriptions.forEach(of: session) { channel, subscriber in
      guard subscriber.isOfCell, subscriber.lacks == .nothing, let updates = ranges[channel.index] else { return }
      sessionUpdates.append((updates, subscriber))
    }
    if sessionUpdates.count > 1 { sessionUpdates.sort { $0.updates.lowerBound < $1.updates.lowerBound } }
  }

  func frame(of update: Int, _ encoding: Encoding) -> Range<Int>? { frames[update][encoding] }

  mutating func keep(_ frame: Range<Int>, of update: Int, _ encoding: Encoding) {
    frames[update][encoding] = frame
    framed.append(update)
  }

  /// Forgets all frames, since the arena was written and is empty.
  mutating func forgetFrames() {
    for update in framed { frames[update] = EncodedFrames() }
    framed.removeAll(keepingCapacity: true)
  }
}

extension AreaDeliveries.View {
  fileprivate func isReplaced(by new: AreaDeliveries.View) -> Bool {
    id == new.id && (new.id != nil || channel == new.channel)
  }
}

/// Snapshots and changes as encoded in this second, so that a map that opens on ten thousand phones is encoded once.
struct EncodedCells {
  private struct Key: Hashable {
    var number: UInt64
    var encoding: Encoding
  }

  private var frames: [Key: [UInt8]] = [:]
  private var bytes = 0

  func frame(_ number: UInt64, _ encoding: Encoding) -> [UInt8]? {
    frames[Key(number: number, encoding: encoding)]
  }

  mutating func keep(_ frame: [UInt8], _ number: UInt64, _ encoding: Encoding, limit: Int) {
    guard bytes + frame.count <= limit else { return }
    bytes += frame.count
    frames[Key(number: number, encoding: encoding)] = frame
  }

  mutating func removeAll() {
    if frames.isEmpty { return }
    frames = [:]
    bytes = 0
  }
}

extension Publication {
  /// About how many bytes it has in JSON, if it is only for ops; else 0.
  var usualBytesForOps: Int {
    switch body {
    case .areaUpdate(let update): update.details.count * AreaUpdate.usualDriverBytes
    case .countsUpdate(let update): update.cells.count * CountsUpdate.usualCellBytes
    case .driverLocation, .etaUpdate, .tripUpdate, .notification, .offer, .rawFix, .stats: 0
    }
  }
}
