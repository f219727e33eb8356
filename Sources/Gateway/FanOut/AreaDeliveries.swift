// Areas on a loop: which cells a session watches under which name, what of a tick has come, and whole cells for those
// who begin or have fallen behind.
import HubBytes
import HubCore
import HubMessages

/// What a loop keeps of areas.
struct AreaDeliveries {
  /// A part of the map that a session watches.
  struct View {
    /// The client's name for it; nil where it gave none, and then its channel is its name.
    var id: InlineText?
    var channel: Channel
    var cells: [ChannelHandle]
  }

  /// Each session's views, by its slot in the table of sessions; none of sessions behind the end.
  private var views: [[View]] = []
  /// The updates of a tick that is not all there yet, and whole cells that came meanwhile: they are newer than what it
  /// brings.
  private var gathering = AreaTick()
  /// The tick whose updates go to sessions.
  private var publishing: AreaTick?
  var encoded = EncodedCells()
  /// About how much was sent since all was written last.
  var unwrittenBytes = 0

  // MARK: Views

  private func views(of slot: Int) -> [View] { slot < views.count ? views[slot] : [] }

  func hasViews(_ slot: Int) -> Bool { !views(of: slot).isEmpty }

  /// Cells of all views of a session, counted for each.
  func cellCount(_ slot: Int) -> Int { views(of: slot).reduce(0) { $0 + $1.cells.count } }

  /// The cells of the view that a session's new one replaces.
  func cells(_ slot: Int, ofViewBefore view: View) -> [ChannelHandle] {
    views(of: slot).first { $0.isReplaced(by: view) }?.cells ?? []
  }

  /// The cells that a session leaves with its new view: those that no view of it has then.
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

  /// Takes a view away; nil where the session has none of that name.
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

  /// True where a whole cell has to wait for the end of a tick.
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

  /// The tick is all there, and due to whoever watches anything: `due` (uptime, ns) is when it ended.
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

  /// The tick that is being published; whoever takes it puts it back, unless it was the last of it.
  mutating func takePublishing() -> AreaTick? {
    defer { publishing = nil }
    return publishing
  }

  mutating func putBack(_ tick: AreaTick) { publishing = tick }
}

/// What changed in cells since the tick before, and to whom that has not been sent yet.
struct AreaTick {
  /// A whole cell on its way to a session.
  typealias Snapshot = (session: SessionRef, channel: ChannelHandle, parts: [Publication])

  private(set) var updates: [(channel: ChannelHandle, publication: Publication)] = []
  /// About how many bytes each update has in JSON, where it is only for ops; else 0.
  private(set) var bytesForOps: [Int] = []
  /// The updates of each channel, which follow one another.
  private var ranges: [UInt32: Range<Int>] = [:]
  /// Whole cells that go out behind it.
  var snapshots: [Snapshot] = []
  /// Of sessions, the last one first: in order, so that the memory of who is next lies beside that of who was.
  var slots: [Int] = []
  var due: Int64 = 0
  /// What one session is due, in the order of the updates.
  private(set) var news: [(updates: Range<Int>, subscriber: Subscriber)] = []
  /// By update: where it lies in the arena already.
  private var frames: [EncodedFrames] = []
  /// The updates that have any frame.
  private var framed: [Int] = []

  fileprivate mutating func add(_ channel: ChannelHandle, _ publication: Publication) {
    let first = ranges[channel.index]?.lowerBound ?? updates.count
    updates.append((channel, publication))
    bytesForOps.append(publication.usualBytesForOps)
    ranges[channel.index] = first..<updates.count
  }

  /// All updates are there: they go to these sessions.
  fileprivate mutating func begin(_ sessions: [Int]) {
    slots = sessions
    frames = Array(repeating: EncodedFrames(), count: updates.count)
  }

  /// Looks up what a session is due: the updates of its cells, but of those of which it waits for the whole.
  mutating func gatherNews(of session: SessionSubscriptions, in subscriptions: borrowing SubscriptionTable) {
    news.removeAll(keepingCapacity: true)
    subscriptions.forEach(of: session) { channel, subscriber in
      guard subscriber.isOfCell, !subscriber.isBehind, let updates = ranges[channel.index] else { return }
      news.append((updates, subscriber))
    }
    if news.count > 1 { news.sort { $0.updates.lowerBound < $1.updates.lowerBound } }
  }

  func frame(of update: Int, _ encoding: Encoding) -> Range<Int>? { frames[update][encoding] }

  mutating func keep(_ frame: Range<Int>, of update: Int, _ encoding: Encoding) {
    frames[update][encoding] = frame
    framed.append(update)
  }

  /// The arena has been written, and is empty.
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

/// Whole cells and changes as they were encoded in this second: a map that opens on ten thousand phones is encoded
/// once.
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
  /// About how many bytes it has in JSON, where it is only for ops; else 0.
  var usualBytesForOps: Int {
    switch body {
    case .areaUpdate(let update): update.details.count * AreaUpdate.usualDriverBytes
    case .countsUpdate(let update): update.cells.count * CountsUpdate.usualCellBytes
    case .driverLocation, .etaUpdate, .tripUpdate, .notification, .offer, .rawFix, .stats: 0
    }
  }
}
