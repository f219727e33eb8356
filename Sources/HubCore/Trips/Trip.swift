// A trip as the hub holds it.
import HubGeo
import HubMessages

struct Trip {
  var id: Identifier
  var hash: UInt64
  /// Counts the trips of a journal in the order in which they began.
  var number: UInt64 = 0
  /// When it began and was last moved, by the hub's wall clock.
  var created = Timestamp(milliseconds: 0)
  var updated = Timestamp(milliseconds: 0)
  var status: TripStatus
  /// When the last move happened, by the sender's clock.
  var changed: Timestamp
  var driverID: Identifier?
  var riderID: Identifier?
  var pickup: Coordinate?
  var dropoff: Coordinate?
  var route: Route?
  /// Index of the trip's channel, where it has one.
  var channel: Int?
  /// The driver that counts this trip among its active ones.
  var occupied: Handle?
  /// Who began it, for the limits of that; and the driver, where it was one.
  var begunBy = Role.ops
  var beginner: Handle?
  /// Its last move or accepted fix (uptime, ns): a trip that nobody ends must not stay for ever.
  var lastHeard: Int64
  /// When it ended by the hub's wall clock, which a restart does not change.
  var endedAt: Timestamp?
  /// How far it has come.
  var progress = TripProgress()
  /// The ETA as its people know it.
  var told: ToldETA?
  /// Where the hub's table of guides has what belongs to the present leg; −1 where there is none.
  var guide: Int32 = -1
  /// When it ended, and when its live positions end (uptime, ns); and whether its subscribers were told so.
  var ended: Int64?
  var closes = Int64.max
  var isClosed = false
  /// Hashes of (sender, messageId) of the last moves: the same message again gets the same ack and changes nothing.
  var recentMoves = RecentMoves()

  /// Whether the trip says where that is.
  @inline(__always)
  func hasPlace(of target: TripTarget) -> Bool {
    switch target {
    case .pickup: pickup != nil
    case .dropoff: dropoff != nil || route != nil
    }
  }

  func party(of actor: Actor) -> TripParty {
    switch actor.role {
    case .ops: .ops
    case .driver: driverID == actor.id ? .driver : .stranger
    case .rider: riderID == actor.id ? .rider : .stranger
    }
  }
}

/// The last 16 moves of a trip, by keyed 64-bit hash.
struct RecentMoves {
  static let capacity = 16

  private var hashes: [UInt64] = []
  private var oldest = 0

  init() {}

  /// Up to `capacity` moves, oldest first.
  init(_ oldestFirst: [UInt64]) { hashes = oldestFirst.suffix(Self.capacity) }

  var oldestFirst: [UInt64] { Array(hashes[oldest...] + hashes[..<oldest]) }

  func contains(_ hash: UInt64) -> Bool { hashes.contains(hash) }

  mutating func insert(_ hash: UInt64) {
    if hashes.count < Self.capacity {
      hashes.append(hash)
    } else {
      hashes[oldest] = hash
      oldest = (oldest + 1) % Self.capacity
    }
  }
}
