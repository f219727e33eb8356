// A load: who connects to the hub, what they do, and for how long. Written down in loadtest/scenarios/*.scenario, one
// `name = value` a line, and changed by options of the same names. Every kind of session may take part in any scenario.

package struct Scenario: Sendable, Equatable {
  package var name = ""
  /// One sentence for people.
  package var about = ""
  package var drivers = 0
  /// Fixes (or batches, or steps of a simulated drive) a second of each driver.
  package var rate = 1.0
  /// Riders of each driver's trip.
  package var ridersPerTrip = 0
  /// Where they connect, if that is not the drivers' hub.
  package var ridersPort = 0
  /// Sessions that only are there.
  package var idle = 0
  /// Seconds that are measured, after `warmUp` seconds of the same load.
  package var duration = 10.0
  package var warmUp = 2.0
  /// Fixes of a `location_batch`; 0: each fix is a `location_update` of its own.
  package var batch = 0
  /// Drivers drive through a simulated city and serve trips, and riders follow the trips that they book.
  package var bookings = false
  /// Control rooms that follow the whole fleet and read no more than this many bytes a second each.
  package var slow = 0
  package var slowBytesPerSecond = 100_000
  /// Sessions of a storm, each following a trip where nothing happens: how many, at which part of the measured time,
  /// and whether they are there before and cut off then (a reconnect storm), or come only then.
  package var storm = 0
  package var stormAt = 0.3
  package var cut = false
  /// Riders who leave and come again, and how many of them do so in a second, all together.
  package var churners = 0
  package var churn = 0.0
  /// Riders who watch a cell of the map in which all drivers are, and how many characters its geohash has.
  package var watchers = 0
  package var cellCharacters = 6
  /// Drivers whom the hub knows by one fix over HTTP, and who have no session: they fill its index.
  package var fleet = 0
  /// Trips without news, which the idle sessions follow, each its part of them.
  package var quietChannels = 0
  /// Riders offer permessage-deflate.
  package var compression = false
  /// All sessions speak `locationhub.v1.binary`.
  package var isBinary = false
  /// All connections speak TLS, with a certificate made for this run.
  package var tls = false
  package var seed = 1
  /// Connections under way at once. The kernel's queue of the hub holds 4,096; whoever comes on top tries again after a
  /// second, which measures the kernel and not the hub.
  package var inFlight = 256
  /// How many come from one address; 28,000 ports for each are too few for the largest runs.
  package var sessionsPerAddress = 20_000
  /// So many fixes are sent, each when all positions of the one before have come, and then the run is over: for
  /// counting what one message costs by itself, however busy the machine is. Latencies mean nothing then. 0: sent when
  /// due.
  package var lockstep = 0
  /// Stands in the ids of drivers and trips, so that a hub that runs on does not know them from an earlier load.
  package var tag = ""
  /// Options of `locationhub serve` that belong to it.
  package var serve: [String] = []

  package init() {}

  /// Seconds of a simulated drive that pass with one step of it.
  package static let simulatedStepSeconds = 1.0

  /// The sessions that are there when the load begins.
  package var sessions: Int {
    drivers * (1 + ridersPerTrip) + idle + slow + churners + watchers + (cut ? storm : 0)
  }

  /// All connections that may be open at once.
  package var maximumSessions: Int { sessions + (cut ? 0 : storm) }

  /// Fixes a second of all drivers.
  package var fixesPerSecond: Double { Double(drivers) * rate * Double(max(1, batch)) }

  /// The updates of the cell that each watcher gets at least, with the first, which has the whole cell: one a second,
  /// less one in ten, for a hub that had no processor for a second does not make up for its update. A fix changes what
  /// riders are shown where it is in another field of their map: a driver is in one for five fixes at most, and of
  /// twenty fixes a second one always is.
  var fewestUpdates: Int {
    watchers == 0 ? 0 : Int(0.9 * (warmUp + duration) * (fixesPerSecond >= 20 ? 1 : min(1, rate / 5)))
  }

  /// What makes no sense together, in words; nil where all is well.
  package var contradiction: String? {
    if bookings, batch > 0 { return "bookings and batch do not go together: a simulated drive sends each fix" }
    if isBinary, compression { return "binary and compression do not go together: the hub declines it" }
    if slow > 0, bookings { return "slow and bookings do not go together" }
    if slow > 0, drivers == 0 { return "slow sessions need drivers whose positions they miss" }
    if churn > 0, churners == 0 { return "churn needs churners" }
    if churners > 0, churn == 0 { return "churners need churn: how many of them leave and come again in a second" }
    if cut, storm == 0 { return "cut needs a storm: sessions that are cut off" }
    if watchers > 0, drivers == 0 { return "watchers need drivers to be seen" }
    if watchers > 0, bookings || batch > 0 || ridersPerTrip > 0 || churners > 0 {
      return "watchers go with drivers that are free: without bookings, batch, churners and riders-per-trip"
    }
    if batch > 0, ridersPerTrip > 0 { return "batch and riders-per-trip do not go together: riders would get each fix" }
    if quietChannels > 0, idle == 0 { return "quiet-channels need idle sessions that follow them" }
    if fleet > 0, tls { return "fleet and tls do not go together" }
    if maximumSessions == 0 { return "there is nobody in it" }
    return nil
  }
}
