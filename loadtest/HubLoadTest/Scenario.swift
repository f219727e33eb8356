// What is run against the hub, and what came of it.

/// A load: so many drivers at a rate, each with so many riders, and so many connections that only are there.
struct Scenario {
  var name: String
  var drivers: Int
  /// Fixes a second of each driver.
  var rate: Double
  /// Riders of each driver's trip.
  var ridersPerTrip: Int
  var idle: Int
  /// Seconds that are measured, after a warm-up of `warmUp` seconds.
  var duration: Double
  var warmUp: Double
  /// Riders offer permessage-deflate.
  var compression = false
  /// All connections speak TLS, with a certificate made for this run.
  var tls = false
  /// How many come from one address; 28,000 ports for each are too few for the largest runs.
  var sessionsPerAddress = 20_000

  static let all: [Scenario] = [
    Scenario(name: "trip", drivers: 2000, rate: 5, ridersPerTrip: 1, idle: 0, duration: 10, warmUp: 2),
    Scenario(name: "fan-out", drivers: 10, rate: 1, ridersPerTrip: 1000, idle: 0, duration: 10, warmUp: 2),
    Scenario(name: "idle", drivers: 0, rate: 1, ridersPerTrip: 0, idle: 10_000, duration: 2, warmUp: 1),
  ]
}

/// What a run measured.
struct Measurement {
  var sent = 0
  var expected = 0
  var delivered = 0
  var outOfOrder = 0
  var errors = 0
  /// Seconds of the server's CPU, user and system, within the measured window.
  var serverUser = 0.0
  var serverSystem = 0.0
  var generatorCPU = 0.0
  var seconds = 0.0
  var connectSeconds = 0.0
  var residentBefore = 0
  var residentAfter = 0
  var connections = 0
  var serverReads = 0
  var messagesIn = 0
}
