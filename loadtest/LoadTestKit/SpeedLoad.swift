// The loads behind the table of speeds (make figures): what each is, and when a run of it counts.
//
// All are with one loop, no limit on a session's rate and nothing held back to save writes, but for what a load is
// about. Loads that are compared stand one behind the other, so that both meet the same minute of the machine.

package struct SpeedLoad: Sendable {
  package let name: String
  package private(set) var scenario = Scenario()
  /// µs. A run with a higher p99 does not count: messages that queue are read and written together, which flatters a
  /// hub that cannot keep up.
  package let p99Bound: Double
  /// With a journal, in a directory of its own.
  package let stores: Bool
  /// For memory: it is over when everybody has come.
  package let isBrief: Bool

  init(
    _ name: String, _ about: String, p99Bound: Double = 20_000, stores: Bool = false, isBrief: Bool = false,
    _ set: (inout Scenario) -> Void
  ) {
    self.name = name
    self.p99Bound = p99Bound
    self.stores = stores
    self.isBrief = isBrief
    set(&scenario)
    scenario.name = name
    scenario.about = about
    // Who comes is not what is measured, where it is not: nobody waits for admission.
    scenario.inFlight = 1000
    scenario.serve += ["--accept-rate", "0"]
  }

  /// This load smaller and shorter, for trying out whether all of it runs.
  package func sized(_ scale: Double, seconds: Double) -> Scenario {
    var scenario = scenario
    for path in [\Scenario.drivers, \.ridersPerTrip, \.idle, \.watchers, \.storm] where scenario[keyPath: path] > 1 {
      scenario[keyPath: path] = max(1, Int((Double(scenario[keyPath: path]) * scale).rounded()))
    }
    scenario.duration = isBrief ? 0.2 : seconds
    scenario.warmUp = isBrief ? 0 : min(2, seconds)
    return scenario
  }
}

extension SpeedLoad {
  static let trip = SpeedLoad("trip", "1,800 drivers × 5 Hz, a rider each") { drive(&$0, 1800, 5) }
  /// Each load of trips with and without pauses (Sources/Transport/TurnPace.swift).
  static let unpacedTrip = SpeedLoad("unpaced trip", "the same with --turn-pace 0") { unpaced(&$0, 1800, 5) }
  static let stored = SpeedLoad("trip stored", "the trip with a journal", stores: true) { drive(&$0, 1800, 5) }
  static let twoLoops = SpeedLoad("trip two loops", "the trip with two loops, which share the hub") {
    drive(&$0, 1800, 5)
    $0.serve = ["--loops", "2"]
  }
  static let fastTrip = SpeedLoad("fast trip", "1,800 drivers × 11 Hz, a rider each") { drive(&$0, 1800, 11) }
  static let unpacedFastTrip = SpeedLoad("unpaced fast trip", "the same with --turn-pace 0") {
    unpaced(&$0, 1800, 11)
  }
  static let fullTrip = SpeedLoad("full trip", "1,800 drivers × 25 Hz, a rider each", p99Bound: 50_000) {
    drive(&$0, 1800, 25)
  }
  static let unpacedFullTrip = SpeedLoad("unpaced full trip", "the same with --turn-pace 0", p99Bound: 50_000) {
    unpaced(&$0, 1800, 25)
  }
  static let lone = SpeedLoad("lone driver", "one driver at 1 Hz, a rider") { drive(&$0, 1, 1) }
  static let unpacedLone = SpeedLoad("unpaced lone driver", "the same with --turn-pace 0") { unpaced(&$0, 1, 1) }
  static let fanOut = SpeedLoad("fan-out", "10 drivers × 1 Hz, 900 riders each") {
    drive(&$0, 10, 1)
    $0.ridersPerTrip = 900
  }
  static let fastFanOut = SpeedLoad("fast fan-out", "10 drivers × 8 Hz, 900 riders each", p99Bound: 50_000) {
    drive(&$0, 10, 8)
    $0.ridersPerTrip = 900
  }
  /// How much dearer TLS is, at the rates of the trips and at half of the lower one.
  static let slowPlain = SpeedLoad("plain 5k", "500 drivers × 10 Hz, a rider each: 1,000 sessions, --turn-pace 0") {
    unpaced(&$0, 500, 10)
  }
  static let slowTLS = SpeedLoad("TLS 5k", "the same over TLS, paced", secured(500, 10))
  static let plain = SpeedLoad("plain 9k", "500 drivers × 18 Hz, --turn-pace 0") { unpaced(&$0, 500, 18) }
  static let tls = SpeedLoad("TLS 9k", "the same over TLS, paced", secured(500, 18))
  static let fastPlain = SpeedLoad("plain 20k", "500 drivers × 40 Hz, --turn-pace 0") { unpaced(&$0, 500, 40) }
  static let fastTLS = SpeedLoad("TLS 20k", "the same over TLS, paced", secured(500, 40))
  static let area = SpeedLoad("area", "10,000 riders watch a cell in which 100 drivers move at 1 Hz") {
    watch(&$0, 100)
  }
  static let smallArea = SpeedLoad("small area", "the same with one driver in the cell") { watch(&$0, 1) }
  /// All 10,000 in one turn, as those who watch a cell: the last of them waits for the writes to all others.
  static let wideFanOut = SpeedLoad("wide fan-out", "one driver at 1 Hz, 10,000 riders", p99Bound: .infinity) {
    drive(&$0, 1, 1)
    $0.ridersPerTrip = 10_000
  }
  static let fewIdle = SpeedLoad("2000 idle", "sessions that only are there", isBrief: true) { $0.idle = 2000 }
  static let idle = SpeedLoad("10000 idle", "sessions that only are there", isBrief: true) { $0.idle = 10_000 }
  static let fewPairs = SpeedLoad(
    "1000 trips", "1,000 drivers, a trip and a rider each", p99Bound: .infinity, isBrief: true
  ) { drive(&$0, 1000, 10) }
  static let pairs = SpeedLoad(
    "5000 trips", "5,000 drivers, a trip and a rider each", p99Bound: .infinity, isBrief: true
  ) { drive(&$0, 5000, 10) }
  static let fewRiders = SpeedLoad(
    "2000 riders", "10 trips with 200 riders each", p99Bound: .infinity, isBrief: true
  ) {
    drive(&$0, 10, 1)
    $0.ridersPerTrip = 200
  }
  static let riders = SpeedLoad("10000 riders", "10 trips with 1,000 riders each", p99Bound: .infinity, isBrief: true) {
    drive(&$0, 10, 1)
    $0.ridersPerTrip = 1000
  }
  /// Run once, behind the rounds.
  static let storm = SpeedLoad(
    "reconnect storm", "10,000 sessions are cut off at once while 100 trips go on", p99Bound: 500_000
  ) {
    drive(&$0, 100, 5)
    $0.storm = 10_000
    $0.cut = true
  }

  /// The loads of every round.
  package static let all = [
    trip, unpacedTrip, stored, twoLoops, fastTrip, unpacedFastTrip, fullTrip, unpacedFullTrip, lone, unpacedLone,
    fanOut, fastFanOut, slowPlain, slowTLS, plain, tls, fastPlain, fastTLS, area, smallArea, wideFanOut,
    fewIdle, idle, fewRiders, riders, fewPairs, pairs,
  ]

  /// Linux splits CPU time into user and kernel by what each tick of its clock meets. 9,000 messages a second are 36 a
  /// tick of 250 Hz: every tick would meet the same place of a message's way. A little slower, it meets all of them in
  /// turn.
  static let offTheTicks = 0.9973

  private static func drive(_ scenario: inout Scenario, _ drivers: Int, _ rate: Double) {
    scenario.drivers = drivers
    scenario.rate = rate * offTheTicks
    scenario.ridersPerTrip = 1
  }

  /// Every turn looks at the sockets at once.
  private static func unpaced(_ scenario: inout Scenario, _ drivers: Int, _ rate: Double) {
    drive(&scenario, drivers, rate)
    scenario.serve = ["--turn-pace", "0"]
  }

  private static func secured(_ drivers: Int, _ rate: Double) -> (inout Scenario) -> Void {
    {
      drive(&$0, drivers, rate)
      $0.tls = true
    }
  }

  private static func watch(_ scenario: inout Scenario, _ drivers: Int) {
    scenario.drivers = drivers
    scenario.rate = offTheTicks
    scenario.watchers = 10_000
  }
}
