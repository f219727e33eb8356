// Telling drivers how often to send (Drivers/SamplingPolicy.swift has the rule): with each fix, and where a trip, a
// status or a subscription changes what is right. There is no timer: whoever sends nothing need not be told to send
// less.
import HubMessages

extension Hub {
  /// Looks whether the driver's advice has changed, and tells its session. Without a session nobody is told. `trip` is
  /// the one that its positions go to, unless that is over.
  @inline(__always)
  mutating func adviseSampling(_ driver: Int, trip: Int?) {
    guard drivers[driver].session != nil else { return }
    let isWatched = isWatched(driver, trip: trip)
    // Field by field: a computed property would have all of the record copied.
    let status = drivers[driver].activeTrips > 0 ? DriverStatus.onTrip : drivers[driver].reported
    let speed = drivers[driver].position?.speed
    guard
      let reason = drivers[driver].sampling.decide(
        status, speed: speed, isWatched: isWatched, at: now.uptime, rules: samplingRules)
    else { return }
    tellSampling(driver, reason)
  }

  @inline(never)
  private mutating func tellSampling(_ driver: Int, _ reason: SamplingReason) {
    guard let session = drivers[driver].session else { return }
    noteSampling(driver, reason)
    reply(.sampling(samplingRules.advice(reason)), to: session)
  }

  /// What a session of the driver that begins now is told.
  mutating func beginSampling(_ driver: Int) -> Connected.Sampling {
    if drivers[driver].isStale { drivers[driver].sampling = SamplingPolicy() }
    let isWatched = isWatched(driver, trip: lastTrip(of: driver))
    let reason = drivers[driver].sampling.begin(drivers[driver].status, isWatched: isWatched, rules: samplingRules)
    noteSampling(driver, reason)
    let advice = samplingRules.advice(reason)
    return Connected.Sampling(interval: advice.interval, minDistance: advice.minDistance)
  }

  private mutating func noteSampling(_ driver: Int, _ reason: SamplingReason) {
    counters.samplingTold[Int(reason.rawValue)] += 1
    drivers[driver].samplingInterval = Float(samplingRules.interval(reason))
    drivers[driver].samplingTold = now.uptime
  }

  /// Whether somebody else than the driver itself listens where its positions go: on its own channel, and on that of
  /// the trip that its fixes name. The fleet's and areas' channels do not count: there every driver is watched.
  @inline(__always)
  private func isWatched(_ driver: Int, trip: Int?) -> Bool {
    let session = drivers[driver].session
    if let channel = drivers[driver].channel, channels.hasListener(channel, besides: session) { return true }
    guard let trip, let channel = trips[trip].channel, !trips[trip].isClosed else {
      return false
    }
    return channels.hasListener(channel, besides: session)
  }

  /// A trip has moved: its driver may be on it now, or not any more.
  mutating func adviseSampling(ofTrip trip: Int) {
    if let id = trips[trip].driverID, let driver = findDriver(id) { adviseSampling(driver, trip: lastTrip(of: driver)) }
  }

  /// Somebody has subscribed to a channel: its driver may have to send more often.
  mutating func adviseSampling(onChannel name: Channel) {
    switch name {
    case .driver(let id): if let driver = findDriver(id) { adviseSampling(driver, trip: lastTrip(of: driver)) }
    case .trip(let id):
      guard let trip = findTrip(id), let driverID = trips[trip].driverID, let driver = findDriver(driverID),
        lastTrip(of: driver) == trip
      else { return }
      adviseSampling(driver, trip: trip)
    case .fence, .area, .nearby, .fleet: break
    }
  }
}
