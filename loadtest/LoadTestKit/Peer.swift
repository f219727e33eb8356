// One session of the load, and where it stands.
import HubMessages
import HubTransport
import HubWebSocket

/// What a session is there for.
enum PeerKind: Equatable {
  case driver
  /// Follows a driver's trip; what it gets is expected and measured.
  case rider
  case idle
  /// Follows the fleet and reads too slowly.
  case slow
  /// Follows a trip where nothing happens; cut off or newly come in the storm.
  case storm
  /// Follows a driver's trip, leaves and comes again.
  case churner
  /// Watches the cell of the map that all drivers are in.
  case watcher
  /// No session: a connection over which drivers without one send a fix each.
  case fleet

  var role: String {
    switch self {
    case .driver, .fleet: "driver"
    case .rider, .idle, .storm, .churner, .watcher: "rider"
    case .slow: "ops"
    }
  }

  var name: String {
    switch self {
    case .driver: "driver"
    case .rider: "rider"
    case .idle: "idle"
    case .slow: "slow"
    case .storm: "storm"
    case .churner: "churner"
    case .watcher: "watcher"
    case .fleet: "fleet"
    }
  }
}

struct Peer: ~Copyable {
  let kind: PeerKind
  /// Among those of its kind in all threads; of a rider, its driver's. It is in the session's id.
  let number: Int
  /// Distinguishes the riders of one driver.
  let index: Int
  /// Among all sessions of all threads.
  let place: Int
  var id = ConnectionID.none
  var isUpgraded = false
  var isReady = false
  /// It is being ended by us.
  var isLeaving = false
  /// When it was due to come (uptime, ns), until it has subscribed.
  var dueAt: Int64?
  var head: [UInt8] = []
  var frames = FrameReader(role: .client)
  /// Of a session that speaks binary, on this connection.
  var binary: BinaryEnd?
  /// The newest fix seen since it subscribed.
  var lastNumber = -1
  /// The newest event seen, and in which epoch.
  var sequence: Int?
  var epoch: [UInt8] = []
  /// Of a rider in the city: the trip it follows, by its number among the driver's.
  var trip: Int?
  /// From which fix on its positions are expected; nil before it has subscribed.
  var expectsFrom: Int?
  /// Of a slow session: the newest fix of each driver, and when it reads again.
  var lastNumbers: [Int32] = []
  var readsAt: Int64 = 0
  /// Of a watcher: the newest tick it received since it subscribed, and how many updates.
  var tick = -1
  var updates = 0
  /// Answers that are still to come before it is ready; of a connection of the fleet, the driver who is next.
  var awaited = 0
  var registered = 0

  init(_ kind: PeerKind, _ number: Int, index: Int, place: Int) {
    self.kind = kind
    self.number = number
    self.index = index
    self.place = place
  }

  /// As it is before it connects; what it has seen stays.
  mutating func reset(allowsCompression: Bool, isBinary: Bool) {
    isUpgraded = false
    isReady = false
    isLeaving = false
    head = []
    frames = FrameReader(role: .client, allowsCompression: allowsCompression)
    binary = isBinary ? BinaryEnd() : nil
    lastNumber = -1
    tick = -1
    awaited = 0
  }
}

/// What a binary session remembers of its connection.
final class BinaryEnd {
  var reader = BinaryServerReader()
  var tripBefore: Identifier?
}
