// Which mode a phone is in, as a table, and what the hub's advice makes of it.
import Foundation
import HubMessages
import Testing

@testable import LocationHubClient

@Suite struct PowerPolicyTests {
  private let policy = PowerPolicy.standard

  private func mode(
    _ battery: Double?, charging: Bool = false, trip: Bool = false, motion: DeviceState.Motion = .unknown,
    speed: Double? = nil
  ) -> PowerPolicy.Mode {
    policy.mode(
      DeviceState(batteryLevel: battery, isCharging: charging, motion: motion), isOnTrip: trip, speed: speed)
  }

  @Test("Charging, trip, battery and motion choose the mode")
  func modes() {
    #expect(mode(0.01, charging: true) == .highPerformance)
    #expect(mode(0.51, trip: true) == .highPerformance && mode(nil, trip: true) == .highPerformance)
    #expect(mode(0.5, trip: true) == .balanced && mode(0.21, trip: true) == .balanced)
    #expect(mode(0.2, trip: true) == .powerSaver && mode(0, trip: true) == .powerSaver)
    #expect(mode(0.51, motion: .moving) == .balanced && mode(0.51, motion: .still, speed: 20) == .powerSaver)
    #expect(mode(0.51, speed: 2) == .balanced && mode(0.51, speed: 1) == .powerSaver && mode(0.51) == .powerSaver)
    #expect(mode(0.5, motion: .moving) == .powerSaver && mode(0.21) == .powerSaver)
    #expect(mode(0.2, motion: .moving) == .ultraLow && mode(0.2) == .ultraLow)
  }

  @Test("Off a trip the hub can only make it more seldom, on a trip only more often where somebody watches")
  func advice() {
    let full = DeviceState(batteryLevel: 1, motion: .moving)
    let seldom = Sampling(interval: 30, minDistance: 50)
    let often = Sampling(interval: 1, minDistance: 5)
    let offTrip = policy.wish(full, trip: nil, speed: nil, hub: nil)
    #expect(offTrip == policy.balanced)
    #expect(policy.wish(full, trip: nil, speed: nil, hub: often) == offTrip.with(distance: 10))
    #expect(policy.wish(full, trip: nil, speed: nil, hub: seldom).interval == 30)
    #expect(policy.wish(full, trip: .tripStarted, speed: nil, hub: seldom) == policy.highPerformance)
    #expect(policy.wish(full, trip: .tripStarted, speed: nil, hub: often) == policy.highPerformance)
    let low = DeviceState(batteryLevel: 0.1)
    let watched = policy.wish(low, trip: nil, speed: nil, hub: Sampling(interval: 2, minDistance: 10), isWatched: true)
    #expect(watched == LocationWish(interval: 2, accuracy: 10, distance: 10, batch: 1))
    #expect(policy.wish(low, trip: .completed, speed: nil, hub: nil) == policy.ultraLow)
  }

  @Test("In the background, off a trip, fixes go out together")
  func background() {
    let device = DeviceState(batteryLevel: 1, isCharging: true, isInBackground: true)
    #expect(policy.wish(device, trip: nil, speed: nil, hub: nil).batch == 10)
    #expect(policy.wish(device, trip: .accepted, speed: nil, hub: nil).batch == 1)
  }

  /// Every combination that makes a difference.
  private func table() -> String {
    var lines = [
      "| charging | on a trip | battery | moving | mode | every | accuracy | distance | sent together |",
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    let batteries = [("over 50 %", 0.6), ("over 20 %", 0.3), ("lower", 0.1)]
    for (charging, trip) in [(true, false), (false, true), (false, false)] {
      for (name, battery) in charging ? [("any", 0.1)] : batteries {
        for motion in !charging && !trip && battery > 0.5 ? [DeviceState.Motion.moving, .still] : [.unknown] {
          let device = DeviceState(batteryLevel: battery, isCharging: charging, motion: motion)
          let mode = policy.mode(device, isOnTrip: trip, speed: nil)
          let wish = policy.wish(device, trip: trip ? .tripStarted : nil, speed: nil, hub: nil)
          let accuracy = wish.accuracy < 0 ? "best" : "\(Int(wish.accuracy)) m"
          let moving = motion == .unknown ? "any" : motion == .moving ? "yes" : "no"
          lines.append(
            "| \(charging ? "yes" : "no") | \(charging ? "any" : trip ? "yes" : "no") | \(name) | \(moving) "
              + "| \(mode.rawValue) | \(Int(wish.interval)) s | \(accuracy) | \(Int(wish.distance)) m | \(wish.batch) |"
          )
        }
      }
    }
    return lines.joined(separator: "\n")
  }

  @Test("The table in the documentation is what the policy does; WRITE_TABLES=1 writes it")
  func documentation() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let page = root.appending(path: "Sources/LocationHubClient/Documentation.docc/PowerModes.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let parts = text.components(separatedBy: "<!-- table -->")
    try #require(parts.count == 3)
    if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil {
      let written = parts[0] + "<!-- table -->\n\n" + table() + "\n\n<!-- table -->" + parts[2]
      try written.write(to: page, atomically: true, encoding: .utf8)
      return
    }
    #expect(parts[1].trimmingCharacters(in: .whitespacesAndNewlines) == table(), "make docs")
  }
}

extension LocationWish {
  fileprivate func with(distance: Double) -> LocationWish {
    LocationWish(interval: interval, accuracy: accuracy, distance: distance, batch: batch)
  }
}
