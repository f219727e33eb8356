// The settings of a scenario: their names, what they may be, and how they are read, for files and options alike.
package import HubCommandLine

extension Scenario {
  package static let settings: [Setting<Scenario>] = [
    Setting("drivers", \.drivers, .whole(0...2_000_000), "N", "drivers, each with a trip"),
    Setting("rate", \.rate, .number(0.001...1000), "HZ", "fixes, batches or steps a second of each driver"),
    Setting("riders-per-trip", \.ridersPerTrip, .whole(0...1_000_000), "N", "riders who follow each driver's trip"),
    Setting(
      "riders-port", \.ridersPort, .whole(0...65_535), "PORT",
      "where riders connect instead: another hub of the cluster, on the same machine; 0: to the same hub"),
    Setting("idle", \.idle, .whole(0...2_000_000), "N", "sessions that only are there"),
    Setting("duration", \.duration, .number(0.1...86_400), "S", "seconds that are measured"),
    Setting("warm-up", \.warmUp, .number(0...3600), "S", "seconds of the same load before"),
    Setting("batch", \.batch, .whole(0...500), "N", "fixes of a location_batch; 0: location_update"),
    Setting("bookings", \.bookings, .onOff, "on|off", "drivers drive through a city and serve trips that riders book"),
    Setting("slow", \.slow, .whole(0...100_000), "N", "control rooms that read too slowly"),
    Setting(
      "slow-bytes", \.slowBytesPerSecond, .whole(1000...1_000_000_000), "N", "bytes a second that each of them reads"),
    Setting("storm", \.storm, .whole(0...2_000_000), "N", "sessions that come all at once"),
    Setting("storm-at", \.stormAt, .number(0...1), "PART", "when, as a part of the measured time"),
    Setting("cut", \.cut, .onOff, "on|off", "they are there before, and are cut off then: a reconnect storm"),
    Setting("churners", \.churners, .whole(0...2_000_000), "N", "riders who leave and come again"),
    Setting("churn", \.churn, .number(0...100_000), "HZ", "how many of them do so in a second, together"),
    Setting(
      "watchers", \.watchers, .whole(0...2_000_000), "N", "riders who watch the cell of the map that all drivers are in"
    ),
    Setting(
      "cell-characters", \.cellCharacters, .whole(5...7), "N",
      "characters of its geohash; 6: 1.2 by 0.6 km on the equator"),
    Setting("fleet", \.fleet, .whole(0...2_000_000), "N", "drivers in the index without a session, by a fix over HTTP"),
    Setting(
      "quiet-channels", \.quietChannels, .whole(0...10_000_000), "N",
      "channels without news that the idle sessions follow"),
    Setting("compression", \.compression, .onOff, "on|off", "riders offer permessage-deflate"),
    Setting(
      "codec", \.isBinary, .choice([("json", false), ("binary", true)]), "json|binary",
      "what all sessions speak: locationhub.v1.json or .binary"),
    Setting("tls", \.tls, .onOff, "on|off", "all connections speak TLS"),
    Setting("seed", \.seed, .whole(0...Int.max), "N", "chance of simulated drives"),
    Setting("in-flight", \.inFlight, .whole(1...100_000), "N", "connections under way at once, of all threads"),
  ]

  /// Sets what a line says.
  private mutating func set(_ line: SettingLine) throws(LoadTestError) {
    guard let setting = Scenario.settings.first(where: { $0.name == line.name }) else {
      throw .usage("\(line.origin): there is no setting \(line.name)")
    }
    guard setting.read(&self, line.value) else {
      throw .usage("\(line.origin): \(line.name) must be \(setting.words), not \(line.value)")
    }
  }

  /// Reads a file of `name = value` lines; `#` begins a comment. `about` is a sentence, `serve` options of the hub.
  package init(name: String, parsing text: String, file: String) throws(LoadTestError) {
    self.init()
    self.name = name
    var seen: Set<String> = []
    for line in try SettingLine.lines(of: text, file: file) {
      guard seen.insert(line.name).inserted else { throw .usage("\(line.origin): \(line.name) is set twice") }
      switch line.name {
      case "about": about = line.value
      case "serve": serve = line.value.split(separator: " ").map(String.init)
      case _: try set(line)
      }
    }
    if let contradiction { throw .usage("\(file): \(contradiction)") }
  }

  /// What differs from an empty scenario, for reports.
  package var settings: [(name: String, value: String)] {
    let plain = Scenario()
    return Scenario.settings.compactMap { setting in
      let value = setting.write(self)
      return value == setting.write(plain) ? nil : value.map { (setting.name, $0) }
    }
  }
}
