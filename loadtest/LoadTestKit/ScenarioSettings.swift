// The settings of a scenario: their names, what they may be, and how they are read, for files and options alike.

/// One setting.
package struct ScenarioSetting: Sendable {
  package let name: String
  /// What stands for the value in the help.
  package let placeholder: String
  package let help: String
  /// What it may be, in words.
  package let range: String
  /// Puts the value in; false where it is none.
  let read: @Sendable (inout Scenario, String) -> Bool
  /// As it stands in a scenario.
  let write: @Sendable (Scenario) -> String

  package static let all: [ScenarioSetting] = [
    whole("drivers", \.drivers, 0...2_000_000, "drivers, each with a trip"),
    number("rate", \.rate, 0.001...1000, "HZ", "fixes, batches or steps a second of each driver"),
    whole("riders-per-trip", \.ridersPerTrip, 0...1_000_000, "riders who follow each driver's trip"),
    whole("idle", \.idle, 0...2_000_000, "sessions that only are there"),
    number("duration", \.duration, 0.1...86_400, "S", "seconds that are measured"),
    number("warm-up", \.warmUp, 0...3600, "S", "seconds of the same load before"),
    whole("batch", \.batch, 0...500, "fixes of a location_batch; 0: location_update"),
    flag("bookings", \.bookings, "drivers drive through a city and serve trips that riders book"),
    whole("slow", \.slow, 0...100_000, "control rooms that read too slowly"),
    whole("slow-bytes", \.slowBytesPerSecond, 1000...1_000_000_000, "bytes a second that each of them reads"),
    whole("storm", \.storm, 0...2_000_000, "sessions that come all at once"),
    number("storm-at", \.stormAt, 0...1, "PART", "when, as a part of the measured time"),
    flag("cut", \.cut, "they are there before, and are cut off then: a reconnect storm"),
    whole("churners", \.churners, 0...2_000_000, "riders who leave and come again"),
    number("churn", \.churn, 0...100_000, "HZ", "how many of them do so in a second, together"),
    whole("watchers", \.watchers, 0...2_000_000, "riders who watch the cell of the map that all drivers are in"),
    whole("cell-characters", \.cellCharacters, 5...7, "characters of its geohash; 6: 1.2 by 0.6 km on the equator"),
    whole("fleet", \.fleet, 0...2_000_000, "drivers in the index without a session, by a fix over HTTP"),
    whole("quiet-channels", \.quietChannels, 0...10_000_000, "channels without news that the idle sessions follow"),
    flag("compression", \.compression, "riders offer permessage-deflate"),
    ScenarioSetting(
      name: "codec", placeholder: "json|binary", help: "what all sessions speak: locationhub.v1.json or .binary",
      range: "json or binary",
      read: { scenario, text in
        guard text == "json" || text == "binary" else { return false }
        scenario.isBinary = text == "binary"
        return true
      }, write: { $0.isBinary ? "binary" : "json" }),
    flag("tls", \.tls, "all connections speak TLS"),
    whole("seed", \.seed, 0...Int.max, "chance of simulated drives"),
    whole("in-flight", \.inFlight, 1...100_000, "connections under way at once, of all threads"),
  ]

  private static func whole(
    _ name: String, _ path: WritableKeyPath<Scenario, Int> & Sendable, _ range: ClosedRange<Int>, _ help: String
  ) -> ScenarioSetting {
    ScenarioSetting(
      name: name, placeholder: "N", help: help,
      range: range.upperBound == .max
        ? "\(range.lowerBound) and more" : "\(grouped(range.lowerBound)) to \(grouped(range.upperBound))",
      read: { scenario, text in
        guard let value = Int(text), range.contains(value) else { return false }
        scenario[keyPath: path] = value
        return true
      }, write: { "\($0[keyPath: path])" })
  }

  private static func number(
    _ name: String, _ path: WritableKeyPath<Scenario, Double> & Sendable, _ range: ClosedRange<Double>,
    _ placeholder: String, _ help: String
  ) -> ScenarioSetting {
    ScenarioSetting(
      name: name, placeholder: placeholder, help: help,
      range: "\(short(range.lowerBound)) to \(short(range.upperBound))",
      read: { scenario, text in
        guard let value = Double(text), range.contains(value) else { return false }
        scenario[keyPath: path] = value
        return true
      }, write: { "\($0[keyPath: path])" })
  }

  private static func short(_ value: Double) -> String {
    value == value.rounded() ? grouped(Int(value)) : "\(value)"
  }

  private static func flag(
    _ name: String, _ path: WritableKeyPath<Scenario, Bool> & Sendable, _ help: String
  ) -> ScenarioSetting {
    ScenarioSetting(
      name: name, placeholder: "on|off", help: help, range: "on or off",
      read: { scenario, text in
        guard text == "on" || text == "off" else { return false }
        scenario[keyPath: path] = text == "on"
        return true
      }, write: { $0[keyPath: path] ? "on" : "off" })
  }
}

/// What is wrong with a scenario or an option, with the place where it stands.
package struct ScenarioError: Error, Equatable, CustomStringConvertible {
  package let description: String

  init(_ place: String, _ text: String) { description = "\(place): \(text)" }
}

extension Scenario {
  /// Sets what an option or a line says. `place` is where it stands, for the error.
  package mutating func set(_ name: String, _ value: String, place: String) throws(ScenarioError) {
    guard let setting = ScenarioSetting.all.first(where: { $0.name == name }) else {
      throw ScenarioError(place, "there is no setting \(name)")
    }
    guard setting.read(&self, value) else {
      throw ScenarioError(place, "\(name) cannot be \(value): \(setting.placeholder), \(setting.help)")
    }
  }

  /// Reads a file of `name = value` lines; `#` begins a comment. `about` is a sentence, `serve` options of the hub.
  package init(name: String, parsing text: String, file: String) throws(ScenarioError) {
    self.init()
    self.name = name
    var seen: Set<String> = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let place = "\(file):\(index + 1)"
      let content = line.prefix { $0 != "#" }.trimmed
      if content.isEmpty { continue }
      let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw ScenarioError(place, "expected name = value") }
      let (key, value) = (String(parts[0].trimmed), String(parts[1].trimmed))
      guard seen.insert(key).inserted else { throw ScenarioError(place, "\(key) is set twice") }
      switch key {
      case "about": about = value
      case "serve": serve = value.split(separator: " ").map(String.init)
      case _: try set(key, value, place: place)
      }
    }
    if let contradiction { throw ScenarioError(file, contradiction) }
  }

  /// What differs from an empty scenario, for reports.
  package var settings: [(name: String, value: String)] {
    let plain = Scenario()
    return ScenarioSetting.all.compactMap { setting in
      let value = setting.write(self)
      return value == setting.write(plain) ? nil : (setting.name, value)
    }
  }
}

extension Substring {
  package var trimmed: Substring {
    var text = self
    while let first = text.first, first.isWhitespace { text.removeFirst() }
    while let last = text.last, last.isWhitespace { text.removeLast() }
    return text
  }
}
