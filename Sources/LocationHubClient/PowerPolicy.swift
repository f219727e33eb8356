// How often a phone should measure and send, depending on its battery and use: a pure function.
//
// The modes and thresholds are those of the ride apps that this hub was made for; PowerPolicyTests writes them into
// Documentation.docc/PowerModes.md.
public import HubMessages

/// The phone's state, reported by `DriverHub.report(_:)`.
public struct DeviceState: Sendable, Equatable {
  /// The activity by the phone's motion sensors.
  public enum Motion: Sendable, Equatable, CaseIterable {
    /// The speed of the newest fix decides.
    case unknown
    case still
    case moving
  }

  /// 0…1; nil for unknown, which counts as full.
  public var batteryLevel: Double?
  /// At a charger, or plugged in.
  public var isCharging: Bool
  /// The motion sensors' activity: `CMMotionActivity` on Apple systems.
  public var motion: Motion
  /// The app is in the background.
  public var isInBackground: Bool

  /// By default full, unplugged and in the foreground.
  public init(
    batteryLevel: Double? = nil, isCharging: Bool = false, motion: Motion = .unknown, isInBackground: Bool = false
  ) {
    self.batteryLevel = batteryLevel
    self.isCharging = isCharging
    self.motion = motion
    self.isInBackground = isInBackground
  }
}

/// Settings for the phone's location service, and the size of batches.
public struct LocationWish: Sendable, Equatable {
  /// Seconds between fixes.
  public var interval: Double
  /// Metres (`CLLocationManager.desiredAccuracy`); `bestAccuracy` for the best.
  public var accuracy: Double
  /// Metres to move before another fix is wanted (`CLLocationManager.distanceFilter`); 0 for none.
  public var distance: Double
  /// Fixes that are sent together, at least every 30 s: 1 to 100; other numbers count as the nearest of these.
  public var batch: Int

  /// The best accuracy: Core Location's `kCLLocationAccuracyBest`.
  public static let bestAccuracy = -1.0

  /// An app's own settings for a mode of `PowerPolicy`.
  public init(interval: Double, accuracy: Double, distance: Double, batch: Int) {
    self.interval = interval
    self.accuracy = accuracy
    self.distance = distance
    self.batch = batch
  }
}

/// Chooses settings for the phone.
public struct PowerPolicy: Sendable, Equatable {
  /// In order of battery use, highest first; the raw value is the name in the documentation.
  public enum Mode: String, Sendable, CaseIterable {
    case highPerformance = "high performance"
    case balanced
    case powerSaver = "power saver"
    case ultraLow = "ultra low"
  }

  /// At a charger, and on a trip with a good battery.
  public var highPerformance = LocationWish(interval: 2, accuracy: LocationWish.bestAccuracy, distance: 0, batch: 1)
  /// On a trip with a fair battery, and off one while the phone moves and its battery is good.
  public var balanced = LocationWish(interval: 4, accuracy: 10, distance: 10, batch: 5)
  /// On a trip with a low battery, and off one in between.
  public var powerSaver = LocationWish(interval: 10, accuracy: 100, distance: 100, batch: 10)
  /// Off a trip with a low battery.
  public var ultraLow = LocationWish(interval: 30, accuracy: 1000, distance: 1000, batch: 20)
  /// A battery above this level counts as good; 0…1.
  public var goodBattery = 0.5
  /// A battery above this level that is not good counts as fair, one at or below it as low; 0…1.
  public var fairBattery = 0.2

  /// The modes and thresholds of the table in the documentation.
  public static let standard = PowerPolicy()

  /// The standard policy, which may be changed.
  public init() {}

  /// The mode of a phone, on a trip or off one; `speed` in metres per second, nil for unknown.
  public func mode(_ device: DeviceState, isOnTrip: Bool, speed: Double?) -> Mode {
    if device.isCharging { return .highPerformance }
    let battery = device.batteryLevel ?? 1
    if isOnTrip {
      return battery > goodBattery ? .highPerformance : battery > fairBattery ? .balanced : .powerSaver
    }
    if battery > goodBattery { return isMoving(device, speed) ? .balanced : .powerSaver }
    return battery > fairBattery ? .powerSaver : .ultraLow
  }

  /// The settings for the phone.
  ///
  /// - Parameters:
  ///   - device: the phone's state.
  ///   - trip: the status of the driver's trip; nil off a trip.
  ///   - speed: metres per second; nil for unknown.
  ///   - hub: the hub's advice. Unless somebody watches, it can only lengthen the interval off a trip, and has no
  ///     effect on a trip.
  ///   - isWatched: the hub says that somebody watches this driver.
  public func wish(
    _ device: DeviceState, trip: TripStatus?, speed: Double?, hub: Sampling?, isWatched: Bool = false
  ) -> LocationWish {
    let isOnTrip = trip.map(PowerPolicy.isUnderWay) ?? false
    var wish = wish(mode(device, isOnTrip: isOnTrip, speed: speed))
    // In the background the system delivers fixes in batches.
    if device.isInBackground, !isOnTrip { wish.batch = max(wish.batch, powerSaver.batch) }
    guard let hub else { return wish }
    if isWatched {
      if hub.interval < wish.interval {
        wish.interval = hub.interval
        wish.distance = min(wish.distance, hub.minDistance)
        wish.accuracy = min(balanced.accuracy, wish.accuracy)  // the best accuracy is negative
      }
      wish.batch = 1
    } else if !isOnTrip {
      wish.interval = max(wish.interval, hub.interval)
      wish.distance = max(wish.distance, hub.minDistance)
    }
    return wish
  }

  private func wish(_ mode: Mode) -> LocationWish {
    switch mode {
    case .highPerformance: highPerformance
    case .balanced: balanced
    case .powerSaver: powerSaver
    case .ultraLow: ultraLow
    }
  }

  /// By the sensors, if they know; else from 4 km/h, like the hub.
  func isMoving(_ device: DeviceState, _ speed: Double?) -> Bool {
    switch device.motion {
    case .moving: true
    case .still: false
    case .unknown: (speed ?? 0) > 4 / 3.6
    }
  }

  /// From `accepted` to `arrived_destination`, like the hub.
  private static func isUnderWay(_ status: TripStatus) -> Bool {
    switch status {
    case .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination: true
    case .requested, .completed, .cancelled: false
    }
  }
}
