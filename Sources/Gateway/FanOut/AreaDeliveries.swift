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

  /// Each session's views, by its slot in the table of sessions.
  private var views: [Int: [View]] = [:]
  /// The updates of a tick that is not all there yet, and whole cells that came meanwhile: they are newer than what it
  /// brings.
  private var gathering = AreaTick()
  /// The tick whose updates go to sessions.
  private var publishing: AreaTick?
  var encoded = EncodedCells()
  /// About how much was sent since all was written last.
  var unwrittenBytes = 0

  // MARK: Views

  func hasViews(_ slot: Int) -> Bool { views[slot] != nil }

  /// Cells of all views of a session, counted for each.
  func cellCount(_ slot: Int) -> Int { views[slot]?.reduce(0) { $0 + $1.cells.count } ?? 0 }

  /// The cells of the view that a session's new one replaces.
  func cells(_ slot: Int, ofViewBefore view: View) -> [ChannelHandle] {
    views[slot]?.first { $0.isReplaced(by: view) }?.cells ?? []
  }

  /// The cells that a session leaves with its new view: those that no view of it has then.
  func cellsLeft(_ slot: Int, by new: View) -> [ChannelHandle] {
    let views = (views[slot] ?? []).filter { !$0.isReplaced(by: new) } + [new]
    return cells(slot, ofViewBefore: new).filter { cell in !views.contains { $0.cells.contains(cell) } }
  }

  mutating func set(_ slot: Int, _ view: View) {
    if let index = views[slot]?.firstIndex(where: { $0.isReplaced(by: view) }) {
      views[slot]![index] = view
    } else {
      views[slot, default: []].append(view)
    }
  }

  /// Takes a view away; nil where the session has none of that name.
  mutating func remove(_ slot: Int, _ name: Unsubscribe) -> View? {
    let index = views[slot]?.firstIndex { view in
      switch name {
      case .view(let id): view.id == id
      case .channel(let channel): view.channel == channel
      }
    }
    guard let index, let view = views[slot]?.remove(at: index) else { return nil }
    if views[slot]!.isEmpty { views[slot] = nil }
    return view
  }

  mutating func removeAll(_ slot: Int) { views[slot] = nil }

  /// Whether a view of the session has the cell.
  func isWatching(_ slot: Int, _ cell: ChannelHandle) -> Bool {
    views[slot]?.contains { $0.cells.contains(cell) } ?? false
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
    tick.slots = Array(views.keys)
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
  /// The updates of each channel, which follow one another.
  private var ranges: [UInt32: Range<Int>] = [:]
  /// Whole cells that go out behind it.
  var snapshots: [Snapshot] = []
  /// Of sessions.
  var slots: [Int] = []
  var due: Int64 = 0

  fileprivate mutating func add(_ channel: ChannelHandle, _ publication: Publication) {
    let first = ranges[channel.index]?.lowerBound ?? updates.count
    updates.append((channel, publication))
    ranges[channel.index] = first..<updates.count
  }

  /// Where the updates of a channel stand; nil where there is none.
  func range(of channel: ChannelHandle) -> Range<Int>? { ranges[channel.index] }
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
