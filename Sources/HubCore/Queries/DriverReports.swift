// Reports of drivers for queries, and whether a driver matches.
import HubGeo
import HubMessages

/// How drivers are shown in a turn.
struct SearchView {
  let audience: PublicAudience
  let now: Moment
}

extension Drivers {
  /// Whether a driver matches and may be seen by the audience.
  @inline(__always)
  func matches(
    _ driver: UInt32, _ label: DriverLabel, _ filter: DriverFilter, _ audience: Audience, at time: Timestamp
  ) -> Bool {
    if audience == .riders, label.status != .available { return false }
    if let status = filter.status, label.status != status { return false }
    if filter.vehicleType != nil || !filter.tags.isEmpty {
      guard profiles.matches(label.profile, vehicleType: filter.vehicleType, tags: filter.tags) else { return false }
    }
    guard let maxAge = filter.maxAge else { return true }
    // A rider must not find out by repeated queries with other `maxAge` what it may not see.
    if audience == .riders { return PublicAudience.age <= maxAge }
    guard let newest = self[Int(driver)].position?.timestamp else { return false }
    return self[Int(driver)].clock.age(of: newest, at: time) <= maxAge
  }

  /// A driver as ops and the driver itself see it.
  func report(of driver: Int, at time: Timestamp) -> DriverReport {
    var report = DriverReport(driverID: self[driver].id, status: self[driver].status)
    let profile = profiles.profile(self[driver].profile)
    report.vehicleType = profile.vehicleType
    report.tags = profile.tags
    if let newest = self[driver].position {
      report.position = DriverReport.Place(
        coordinate: newest.coordinate, heading: newest.heading, speed: newest.speed, accuracy: newest.accuracy,
        age: self[driver].clock.age(of: newest.timestamp, at: time), timestamp: newest.published,
        timeSource: newest.timeSource)
    }
    report.predicted = self[driver].predicted(at: time)
    report.isOnline = !self[driver].isStale
    return report
  }

  /// A driver in a page of all drivers, with its trip.
  func listed(_ driver: Int, trip: Identifier?, at time: Timestamp) -> DriverReport {
    var report = report(of: driver, at: time)
    report.predicted = nil
    report.confidence = self[driver].position?.confidence
    report.tripID = trip
    return report
  }

  /// A driver as riders see it (`PublicAudience`).
  func publicReport(of driver: Int, _ view: SearchView) -> DriverReport {
    let pseudonym = view.audience.pseudonym(
      of: self[driver].id, lastTripEnded: self[driver].lastTripEnded, at: view.now.timestamp)
    var report = DriverReport(driverID: PublicAudience.name(pseudonym), status: self[driver].status)
    report.vehicleType = profiles.profile(self[driver].profile).vehicleType
    if let newest = self[driver].position {
      report.position = DriverReport.Place(
        coordinate: PublicGrid.snapped(newest.coordinate), heading: nil, speed: nil, accuracy: nil,
        age: PublicAudience.age, timestamp: nil)
    }
    return report
  }
}
