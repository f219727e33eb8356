// Another hub as this one knows it: output to it, input from it, and what it follows here.
//
// Control records are sent in order and never dropped silently: past their limit all are dropped and a number is
// skipped, so that the peer notices. States wait as values, the newest of each key, and are written when the bus takes
// them: a slow bus gets fewer, not older ones. Each kind of them begins every third frame, so that none waits for ever
// behind others that come as fast as the bus takes them.
import HubBackplane
import HubBytes
import HubCore
import HubGeo
import HubMessages

/// A channel of this hub that a peer follows.
struct Binding: Equatable {
  /// Names the channel on the wire; not used again before all others of 32 bits, so that what was on the way meanwhile
  /// is of no other channel.
  var number: UInt32
  var handle: ChannelHandle
}

/// The state of the exchange with a process of another hub, kept when the hub is forgotten: the process may still live
/// and continue. Its earlier frames must not be taken twice, and frames to it must not repeat numbers.
struct PeerProgress {
  fileprivate let incarnation: UInt64
  fileprivate let seen: [UInt64]
  fileprivate let numbers: [UInt64]
  fileprivate let lastBinding: UInt32
  fileprivate let hasUsedAllBindings: Bool
}

final class Peer {
  let name: String
  private let limits: ClusterLimits
  /// The hash of its name: of all members the one with the largest counts the events of all trips (`TripFeeds`).
  let weight: UInt64
  /// 0 until it is known.
  var incarnation: UInt64 = 0
  var isMember = false
  var isSilent = false
  /// The last time it was heard, and the last time of output on each lane (uptime, ns).
  var heard: Int64 = 0
  private(set) var lastSent: [Int64] = [0, 0]
  var lastAliveSent: Int64 = 0
  /// Its wall clock (ms since 1970), from its newest frame; 0 before any.
  var clock: Int64 = 0
  /// Its proof of the key that signs its tokens; nil before.
  var tokenKey: [UInt8]?
  /// Its file names other ledgers, and a notice says so.
  var hasOtherLedgers = false
  /// When all channels were asked for anew, and whether they are to be again.
  var restarted = Int64.min / 2
  var wantsRestart = false
  /// Its process has restarted its interest; the first time because it, or this hub, has just started.
  var hasRestarted = false
  /// So has any process of its name, since this hub began.
  var hasEverRestarted = false
  /// Channels to be asked for anew.
  var resumes: [Channel] = []

  // What comes from there: the newest number of each lane, and what its messages' short names mean.
  private var seen: [UInt64] = [0, 0]
  private var announcedNumber: UInt64 = 0
  var reader = BinaryServerReader()

  // Requested and wanted cells, and whether it has sent drivers.
  var areas: [GeohashCell: AskedCell] = [:]
  var areaQueue: [GeohashCell] = []
  var hasGuests = false

  // The newest of its figures and when they came; whether it sends its fleet; and until when it wants figures from here
  // (uptime, ns).
  var figures: (second: HubFigures, at: Int64)?
  var fleet = PeerFleet.none
  var wantsFiguresUntil = Int64.min

  /// Its trips, if this hub counts those of all.
  var trips = PeerTrips()

  // What it follows and watches here.
  var watched: [GeohashCell: WatchedCell] = [:]
  var interest: [Channel: Binding] = [:]
  var lastBinding: UInt32 = 0
  /// All numbers were used: further ones may be in use.
  private var hasUsedAllBindings = false
  var asks = 0

  // Output to it: the newest number of each lane, and what waits.
  private(set) var numbers: [UInt64] = [0, 0]
  private(set) var controlBytes = 0
  private var control: [[UInt8]] = []
  private var open = ByteBuffer()
  private var positions = StateList<PublishedPosition>()
  /// States that are no positions.
  private var others = StateList<Publication>()
  private var areaRecords: [[UInt8]] = []
  private(set) var areaBytes = 0
  /// The kind that begins the next frame of states.
  private var firstKind = StateKind.positions
  private var departures: [[UInt8]] = []
  /// Positions of this hub's fleet, which it follows, in the order of sending; and how many it has been given.
  var fleetQueue: [FleetPosition] = []
  var fleetGiven = 0

  /// `known`: the state of the exchange when it was forgotten.
  init(name: String, _ limits: ClusterLimits, now: Int64, _ known: PeerProgress? = nil) {
    self.name = name
    self.limits = limits
    weight = Peer.weight(of: name)
    heard = now
    guard let known else { return }
    (incarnation, seen) = (known.incarnation, known.seen)
    // A number of each lane is skipped, so that it notices that it is not followed and follows nothing any more.
    numbers = known.numbers.map { $0 + 1 }
    (lastBinding, hasUsedAllBindings) = (known.lastBinding, known.hasUsedAllBindings)
  }

  var progress: PeerProgress {
    PeerProgress(
      incarnation: incarnation, seen: seen, numbers: numbers, lastBinding: lastBinding,
      hasUsedAllBindings: hasUsedAllBindings)
  }

  /// How much a hub's name weighs: its FNV-1a, 64 bits.
  static func weight(of name: String) -> UInt64 {
    name.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }

  // MARK: Input

  /// Whether it may count all trips: a member, unless it joined a while ago and was never heard.
  var mayCount: Bool { isMember && (clock != 0 || !isSilent) }

  enum Order: Equatable {
    case next
    /// So many frames are missing before it.
    case gap(UInt64)
    /// It came before.
    case repeated
  }

  /// Checks a frame's number, and takes it for the newest.
  func note(_ number: UInt64, _ lane: Lane) -> Order {
    let last = seen[Int(lane.rawValue)]
    guard number > last else { return .repeated }
    seen[Int(lane.rawValue)] = number
    return number == last + 1 ? .next : .gap(number - last - 1)
  }

  /// Takes the newest number of a lane from its sender; the one announced before should have come by now. Gives how
  /// many are missing.
  func note(announced number: UInt64, _ lane: Lane) -> UInt64 {
    defer { announcedNumber = number }
    let last = seen[Int(lane.rawValue)]
    guard announcedNumber > last else { return 0 }
    seen[Int(lane.rawValue)] = announcedNumber
    return announcedNumber - last
  }

  /// Another process has its name: the state of the one before is void.
  func begin(_ incarnation: UInt64) {
    dropAll()
    self.incarnation = incarnation
    seen = [0, 0]
    numbers = [0, 0]
    announcedNumber = 0
    clock = 0
    asks = 0
    hasRestarted = false
    tokenKey = nil
    hasOtherLedgers = false
    reader = BinaryServerReader()
    (figures, fleet, wantsFiguresUntil) = (nil, .none, .min)
    trips.lose()
  }

  // MARK: Output

  /// The number of the last frame of states, by which a peer that gets few of them notices that one is missing.
  var stateNumber: UInt64 { numbers[Int(Lane.state.rawValue)] }

  /// O(1), and O(what it follows) behind four billion.
  func nextBinding() -> UInt32 {
    repeat {
      if lastBinding == .max { (lastBinding, hasUsedAllBindings) = (0, true) }
      lastBinding += 1
    } while hasUsedAllBindings && interest.values.contains { $0.number == lastBinding }
    return lastBinding
  }

  /// Appends a control record.
  func append(_ kind: ClusterRecordKind, _ body: (inout ByteBuffer) -> Void = { _ in }) {
    if open.count >= limits.frameBytes { closeFrame() }
    let before = open.count
    open.append(kind, body)
    controlBytes += open.count - before
  }

  /// A channel of this peer is not followed any more.
  func release(_ channel: Channel, at time: Timestamp) {
    append(.released) { $0.append(channel, at: time) }
    forget(channel, at: time)
  }

  /// The reader of this peer's messages forgets a channel as a client does that has unsubscribed: what still comes on
  /// it is ignored.
  func forget(_ channel: Channel, at time: Timestamp) {
    var bytes = ByteBuffer()
    bytes.append(.unsubscribed(Unsubscribed(replyTo: nil, channel: channel, reason: .asked)), at: time)
    var own = ClusterFrameReader(bytes.array()[...])
    do throws(ClusterFrameError) { _ = try own.message(&reader) } catch { preconditionFailure("own bytes") }
  }

  private func closeFrame() {
    control.append(open.array())
    open.removeAll(keepingAtMost: 65_536)
  }

  /// Appends a state; false where it has replaced an older one of its key.
  @discardableResult func append(_ position: PublishedPosition, key: UInt64, _ binding: UInt32) -> Bool {
    positions.append(position, key: key, binding)
  }

  @discardableResult func append(_ state: Publication, key: UInt64, _ binding: UInt32) -> Bool {
    others.append(state, key: key, binding)
  }

  /// States that wait.
  var stateCount: Int { positions.count + others.count }

  /// How many positions of the fleet may be added to its states.
  var fleetRoom: Int { max(0, limits.waitingStates / 2 - stateCount) }

  /// It can be given positions of the fleet.
  var takesFleet: Bool { waitsForFleet && fleetRoom > 0 }

  /// It was not given all positions of the fleet.
  var waitsForFleet: Bool { fleetGiven < fleetQueue.count }

  /// Area records, in order.
  func append(area record: [UInt8]) {
    areaRecords.append(record)
    areaBytes += record.count
  }

  /// Departures from cells, sent at the end of the tick.
  func append(departure record: [UInt8]) { departures.append(record) }

  func takeDepartures() -> [[UInt8]] {
    defer { dropDepartures() }
    return departures
  }

  func dropDepartures() { departures.removeAll() }

  var hasStates: Bool { stateCount > 0 || !areaRecords.isEmpty }
  var hasOutput: Bool { !open.isEmpty || !control.isEmpty || hasStates }

  /// Drops all waiting output; a number of each lane is skipped, so that the peer notices.
  func dropAll() {
    control.removeAll()
    open.removeAll()
    controlBytes = 0
    dropStates()
    numbers[Int(Lane.control.rawValue)] += 1
  }

  func dropStates() {
    positions.removeAll()
    others.removeAll()
    areaRecords.removeAll()
    areaBytes = 0
    numbers[Int(Lane.state.rawValue)] += 1
  }

  /// Whether so many states wait that they are not gathered any longer.
  var isHalfFull: Bool { stateCount > limits.waitingStates / 2 || areaBytes > limits.waitingAreaBytes / 2 }

  /// Drops output at the limits, which the peer notices by the numbers. Gives how often.
  func boundOutput() -> UInt64 {
    let isControlFull = controlBytes > limits.waitingControlBytes
    if isControlFull { dropAll() }
    let isStateFull = stateCount > limits.waitingStates || areaBytes > limits.waitingAreaBytes
    if isStateFull { dropStates() }
    return (isControlFull ? 1 : 0) + (isStateFull ? 1 : 0)
  }

  /// Gives frames to `send` until it takes no more. Gives their number.
  func flush(now: Int64, withStates: Bool, _ send: (Lane, UInt64, [UInt8]) -> Bool) -> Int {
    if !open.isEmpty { closeFrame() }
    var sent = 0
    for records in control {
      guard send(.control, numbers[0] + 1, records) else { break }
      numbers[0] += 1
      controlBytes -= records.count
      sent += 1
    }
    control.removeFirst(sent)
    if sent > 0 { lastSent[0] = now }
    // Control for which there was no room goes before states, whose frames may be smaller.
    let states = withStates && control.isEmpty ? flushStates(send) : 0
    if states > 0 { lastSent[1] = now }
    return sent + states
  }

  private func flushStates(_ send: (Lane, UInt64, [UInt8]) -> Bool) -> Int {
    var (next, taken, frames) = (StateCounts(), StateCounts(), 0)
    while next.positions < positions.count || next.others < others.count || next.areas < areaRecords.count {
      var records = ByteBuffer()
      var kind = firstKind
      repeat {
        fill(&records, with: kind, &next)
        kind = kind.next
      } while kind != firstKind
      guard send(.state, numbers[1] + 1, records.array()) else { break }
      numbers[1] += 1
      frames += 1
      taken = next
      firstKind = firstKind.next
    }
    positions.removeFirst(taken.positions)
    others.removeFirst(taken.others)
    areaBytes -= areaRecords[..<taken.areas].reduce(0) { $0 + $1.count }
    areaRecords.removeFirst(taken.areas)
    return frames
  }

  /// Writes states of a kind, from the next one on, until the frame is full.
  private func fill(_ records: inout ByteBuffer, with kind: StateKind, _ next: inout StateCounts) {
    switch kind {
    case .positions:
      while next.positions < positions.count, records.count < limits.frameBytes {
        let state = positions[next.positions]
        records.append(.publication) { $0.append(state.body, state.binding) }
        next.positions += 1
      }
    case .others:
      while next.others < others.count, records.count < limits.frameBytes {
        let state = others[next.others]
        records.append(.publication) { $0.append(state.body, state.binding, ImpliedNames()) }
        next.others += 1
      }
    case .areas:
      while next.areas < areaRecords.count, records.count < limits.frameBytes {
        records.append(areaRecords[next.areas])
        next.areas += 1
      }
    }
  }
}

/// The kinds of states on their way to a peer; each frame begins with another one.
private enum StateKind {
  case positions, others, areas

  var next: StateKind {
    switch self {
    case .positions: .others
    case .others: .areas
    case .areas: .positions
    }
  }
}

/// So many states of each kind, from the first on.
private struct StateCounts {
  var positions = 0
  var others = 0
  var areas = 0
}
