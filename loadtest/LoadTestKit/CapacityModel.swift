// How many cores, how much memory and network a load needs, computed from measured terms; and loadtest/CAPACITY.md,
// which says so.
import Glibc  // log2, pow

package struct CapacityModel: Sendable {
  /// A load, and how it is spread.
  package struct Load: Sendable {
    package var drivers = 5e6
    package var riders = 20e6
    package var fixesPerSecond = 100e6 / 60
    /// Positions that go out for each fix that comes in.
    package var followers = 4.0
    /// Which part of the riders looks at a map of free drivers: an update a second for each.
    package var watching = 0.05
    /// Seconds between two heartbeats of a session that does not send anything else.
    package var heartbeatSeconds = 30.0
    /// Sessions that come (again) in a second, as a part of all: phones change networks twice an hour.
    package var joining = 2.0 / 3600
    /// Questions who is near, in a second, as a part of the riders: one an hour.
    package var asking = 1.0 / 3600
    /// How busy a core may be, so that there is room for a peak.
    package var busy = 0.6
    /// Connections of one machine.
    package var connectionsPerHub = 500_000.0
    /// How many machines; nil for as many as that takes.
    package var hubs: Double?

    package init() {}
  }

  package struct Needs: Sendable {
    package var fixCores: Double
    package var deliveryCores: Double
    package var mapCores: Double
    package var heartbeatCores: Double
    package var joiningCores: Double
    /// Positions that go to other hubs, and questions at those; 0 where that was not measured.
    package var crossingCores: Double
    /// Of the engine between hubs, which are no hub's.
    package var engineCores: Double
    /// Cores for all hubs and the engine, with room.
    package var cores: Double
    package var memoryBytes: Double
    /// Bits a second.
    package var networkIn: Double
    package var networkOut: Double
    /// The part of `networkOut` that maps take.
    package var networkOutForMaps: Double
    /// Bytes a second that all journals together write.
    package var disk: Double
    package var hubs: Double
  }

  /// Ethernet, IPv4 and TCP with timestamps, and half an acknowledgement for each segment (RFC 1122 §4.2.3.2).
  static let overheadBytes = 14.0 + 20 + 32 + 33

  package let terms: CapacityTerms

  package init(_ terms: CapacityTerms) { self.terms = terms }

  /// µs for a fix, or for a fix and its position, with so many connections on one hub. Measured costs scatter by more
  /// than they grow, so it is never less than what was measured at any size up to the next larger one, and beyond the
  /// largest it grows with each doubling as it did most between two sizes: caches and the kernel's tables miss a little
  /// more each time.
  func cost(_ path: KeyPath<CapacityTerms.Point, Double>, connections: Double) -> Double {
    let points = terms.points
    let next = points.firstIndex { $0.connections >= connections } ?? points.count - 1
    let most = points[...next].map { $0[keyPath: path] }.max() ?? 0
    return most + growth(path) * max(0, log2(connections / points[next].connections))
  }

  /// µs for each doubling of connections: the most between two sizes that stand one behind the other. Where the larger
  /// one was always the cheaper, that is chance, and no reason to think that a hundred times as many cost nothing.
  func growth(_ path: KeyPath<CapacityTerms.Point, Double>) -> Double {
    zip(terms.points, terms.points.dropFirst()).map { CapacityModel.slope(path, $0, $1) }.max().map { max(0, $0) } ?? 0
  }

  private static func slope(
    _ path: KeyPath<CapacityTerms.Point, Double>, _ first: CapacityTerms.Point, _ second: CapacityTerms.Point
  ) -> Double {
    (second[keyPath: path] - first[keyPath: path]) / log2(second.connections / first.connections)
  }

  /// How far off the third size is what the first two say of it, by a + b log₂ n: 0.1 is 10 % too high. It shows how
  /// much such a line is worth.
  func error(_ path: KeyPath<CapacityTerms.Point, Double>) -> Double {
    let (first, second, third) = (terms.points[0], terms.points[1], terms.points[2])
    let said =
      second[keyPath: path]
      + CapacityModel.slope(path, first, second) * log2(third.connections / second.connections)
    return third[keyPath: path] > 0 ? said / third[keyPath: path] - 1 : 0
  }

  package func needs(_ load: Load) -> Needs {
    let fix = cost(\.fix, connections: load.connectionsPerHub)
    let pair = cost(\.fixAndPosition, connections: load.connectionsPerHub)
    // The first follower costs what it costs on a socket of its own; the others what they cost in a fan-out, which is
    // less.
    let first = max(terms.delivery, pair - fix)
    let positions = load.fixesPerSecond * (min(1, load.followers) * first + max(0, load.followers - 1) * terms.delivery)
    let sessions = load.drivers + load.riders
    let fixCores = load.fixesPerSecond * (fix + terms.stored) / 1e6
    let maps = load.riders * load.watching
    let mapCores = maps * terms.mapUpdate / 1e6
    let heartbeatCores = load.riders / load.heartbeatSeconds * terms.heartbeat / 1e6
    let joiningCores = sessions * load.joining * terms.connection / 1e6
    let hubs = load.hubs ?? (sessions / load.connectionsPerHub).rounded(.up)
    let crossings = CapacityModel.crossings(load, hubs: hubs)
    let searches = load.riders * load.asking * (hubs - 1) * (terms.crossing?.search ?? 0)
    let frames = terms.crossing.map { $0.frames(of: crossings, hubs: hubs) } ?? 0
    let forPositions = crossings * (terms.crossing?.position ?? 0) + frames * (terms.crossing?.frame ?? 0)
    let crossingCores = (forPositions + searches) / 1e6
    let engineCores = frames * (terms.crossing?.engineFrame ?? 0) / 1e6
    let bus = crossings * (terms.crossing?.bytes ?? 0)
    let all = fixCores + positions / 1e6 + mapCores + heartbeatCores + joiningCores + crossingCores
    let outForMaps = maps * CapacityModel.onTheWire(terms.mapBytes)
    let out = load.fixesPerSecond * load.followers * CapacityModel.onTheWire(terms.positionBytes) + outForMaps + bus
    return Needs(
      fixCores: fixCores, deliveryCores: positions / 1e6, mapCores: mapCores, heartbeatCores: heartbeatCores,
      joiningCores: joiningCores, crossingCores: crossingCores, engineCores: engineCores, cores: all / load.busy,
      memoryBytes: load.drivers * terms.driverBytes + load.riders * terms.riderBytes,
      networkIn: (load.fixesPerSecond * CapacityModel.onTheWire(terms.fixBytes) + bus) * 8, networkOut: out * 8,
      networkOutForMaps: outForMaps * 8,
      disk: load.fixesPerSecond * terms.storedBytes, hubs: hubs)
  }

  /// Positions that go to another hub in a second: one for each other hub at which somebody follows, whatever the
  /// number there. Followers are anywhere, as chance has it.
  static func crossings(_ load: Load, hubs: Double) -> Double {
    load.fixesPerSecond * min(1, load.followers) * (hubs - 1) * (1 - pow(1 - 1 / hubs, max(1, load.followers)))
  }

  /// Frames of states that a hub sends in a second where more than three others follow something there
  /// (`ClusterLimits.gatherTime`).
  static let framesOfHub = 2000.0

  /// Cores of all hubs, and of the engine, that the model says of a run that was measured.
  func expected(_ check: CapacityTerms.Crossing.Check) -> (cores: Double, engineCores: Double) {
    var load = Load()
    (load.drivers, load.riders) = (check.connections / 2, check.connections / 2)
    (load.fixesPerSecond, load.followers, load.hubs) = (check.fixesPerSecond, 1, check.hubs)
    (load.watching, load.joining, load.asking, load.busy) = (0, 0, 0, 1)
    load.connectionsPerHub = check.connections / check.hubs
    let needs = needs(load)
    return (needs.cores, needs.engineCores)
  }

  /// A message with what the layers below add, for each segment that it takes (1,448 bytes of it in one, RFC 6691).
  static func onTheWire(_ bytes: Double) -> Double { bytes + overheadBytes * max(1, (bytes / 1448).rounded(.up)) }
}

extension CapacityTerms.Crossing {
  /// Frames of all hubs in a second, for so many positions that go to another hub.
  func frames(of crossings: Double, hubs: Double) -> Double {
    let pairs = hubs * (hubs - 1)
    guard pairs > 0 else { return 0 }
    let most = hubs - 1 > 3 ? min(framesPerSecond, CapacityModel.framesOfHub / (hubs - 1)) : framesPerSecond
    return min(crossings, pairs * most)
  }
}
