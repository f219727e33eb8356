// What the capacity model is computed from: what one of each thing costs, measured here, each by a run of its own.
import HubBytes
import HubCommandLine

package struct CapacityTerms: Sendable, Equatable {
  /// CPU of a hub, µs, at one number of connections: a fix that nobody follows, and with one follower.
  package struct Point: Sendable, Equatable {
    package var connections: Double
    package var fix: Double
    package var fixAndPosition: Double
  }

  /// What several hubs cost more, as loadtest/crossing.py measures it.
  package struct Crossing: Sendable, Equatable {
    /// A run of so many hubs, with drivers and riders spread evenly over them.
    package struct Check: Sendable, Equatable {
      package var hubs: Double
      package var fixesPerSecond: Double
      package var connections: Double
      /// CPU of all hubs and of the engine, cores.
      package var cores: Double
      package var engineCores: Double
    }

    /// CPU of both hubs together, µs, for a frame to another hub and for each position in it; and of the engine for a
    /// frame.
    package var frame: Double
    package var position: Double
    package var engineFrame: Double
    /// Frames a second that a hub sends another one at most, from where on they have more positions.
    package var framesPerSecond: Double
    /// Bytes on the bus of such a position.
    package var bytes: Double
    /// CPU of a question about drivers at each hub that it is put to, µs.
    package var search: Double
    package var checks: [Check]
  }

  package var machine: String
  /// Nil where it was not measured.
  package var crossing: Crossing?
  /// Three sizes, growing.
  package var points: [Point]
  /// CPU of one position more where many follow, µs.
  package var delivery: Double
  /// CPU of an update of a map with a hundred drivers, a third of whom has moved, µs, where many look at the same cell.
  package var mapUpdate: Double
  /// CPU that a fix takes more where it is stored, µs.
  package var stored: Double
  /// CPU of a ping and its pong, and of a connection, its upgrade and `connected`, µs.
  package var heartbeat: Double
  package var connection: Double
  /// Resident bytes: a session that says nothing, a rider who follows a trip, a driver with a trip.
  package var idleBytes: Double
  package var riderBytes: Double
  package var driverBytes: Double
  /// Bytes on the socket: of a fix, of a position, and of an update of a map.
  package var fixBytes: Double
  package var positionBytes: Double
  package var mapBytes: Double
  /// Bytes on the disk: of a fix.
  package var storedBytes: Double
  /// What speaks against runs that it was made of: the load itself was the limit.
  package var doubts: [String]

  package var json: String {
    JSONText.record(
      [
        ("machine", .text(machine)),
        // [connections, µs for a fix, µs for a fix and its position]
        ("points", .list(points.map { .row([$0.connections, $0.fix, $0.fixAndPosition]) })),
        ("delivery", .number(delivery)), ("heartbeat", .number(heartbeat)), ("connection", .number(connection)),
        ("idleBytes", .number(idleBytes)), ("riderBytes", .number(riderBytes)), ("driverBytes", .number(driverBytes)),
        ("fixBytes", .number(fixBytes)), ("positionBytes", .number(positionBytes)), ("mapUpdate", .number(mapUpdate)),
        ("mapBytes", .number(mapBytes)), ("stored", .number(stored)), ("storedBytes", .number(storedBytes)),
      ] + (doubts.isEmpty ? [] : [("doubts", .list(doubts.map(JSONText.text)))])
        + (crossing.map { [("crossing", $0.json)] } ?? [])
    ).text
  }

  package init(parsing text: String, file: String) throws(LoadTestError) {
    guard let members = JSONValue(parsing: text.utf8)?.members, let rows = Results.rows(members["points"], 3),
      rows.count == 3
    else { throw .failed("\(file) is no file of capacity terms") }
    func number(_ name: String) throws(LoadTestError) -> Double {
      guard let value = members[name]?.number else { throw .failed("\(file) lacks \(name)") }
      return value
    }
    machine = members["machine"]?.string ?? ""
    points = rows.map { Point(connections: $0[0], fix: $0[1], fixAndPosition: $0[2]) }
    delivery = try number("delivery")
    heartbeat = try number("heartbeat")
    connection = try number("connection")
    idleBytes = try number("idleBytes")
    riderBytes = try number("riderBytes")
    driverBytes = try number("driverBytes")
    fixBytes = try number("fixBytes")
    positionBytes = try number("positionBytes")
    mapUpdate = try number("mapUpdate")
    mapBytes = try number("mapBytes")
    stored = try number("stored")
    storedBytes = try number("storedBytes")
    doubts = Results.texts(members["doubts"]) ?? []
    crossing = try members["crossing"].map { (value) throws(LoadTestError) in try Crossing(value, file: file) }
  }

  package init(
    machine: String, points: [Point], delivery: Double, heartbeat: Double, connection: Double, idleBytes: Double,
    riderBytes: Double, driverBytes: Double, fixBytes: Double, positionBytes: Double, mapUpdate: Double,
    mapBytes: Double, stored: Double, storedBytes: Double, doubts: [String] = [], crossing: Crossing? = nil
  ) {
    self.doubts = doubts
    self.crossing = crossing
    self.machine = machine
    self.points = points
    self.delivery = delivery
    self.heartbeat = heartbeat
    self.connection = connection
    self.idleBytes = idleBytes
    self.riderBytes = riderBytes
    self.driverBytes = driverBytes
    self.fixBytes = fixBytes
    self.positionBytes = positionBytes
    self.mapUpdate = mapUpdate
    self.mapBytes = mapBytes
    self.stored = stored
    self.storedBytes = storedBytes
  }
}

extension CapacityTerms.Crossing {
  fileprivate var json: JSONText {
    JSONText.record([
      ("frame", .number(frame)), ("position", .number(position)), ("engineFrame", .number(engineFrame)),
      ("framesPerSecond", .number(framesPerSecond)), ("bytes", .number(bytes)), ("search", .number(search)),
      // [hubs, fixes a second, connections, cores of all hubs, cores of the engine]
      ("checks", .list(checks.map { .row([$0.hubs, $0.fixesPerSecond, $0.connections, $0.cores, $0.engineCores]) })),
    ])
  }

  /// Of a file that loadtest/crossing.py has written.
  package init(parsing text: String, file: String) throws(LoadTestError) {
    guard let value = JSONValue(parsing: text.utf8) else { throw .failed("\(file) is no file of crossing.py") }
    try self.init(value, file: file)
  }

  fileprivate init(_ value: JSONValue, file: String) throws(LoadTestError) {
    guard let members = value.members, let rows = Results.rows(members["checks"], 5) else {
      throw .failed("\(file) has no terms of several hubs")
    }
    func number(_ name: String) throws(LoadTestError) -> Double {
      guard let value = members[name]?.number else { throw .failed("\(file) lacks \(name)") }
      return value
    }
    self.init(
      frame: try number("frame"), position: try number("position"), engineFrame: try number("engineFrame"),
      framesPerSecond: try number("framesPerSecond"), bytes: try number("bytes"), search: try number("search"),
      checks: rows.map {
        Check(hubs: $0[0], fixesPerSecond: $0[1], connections: $0[2], cores: $0[3], engineCores: $0[4])
      })
  }
}
