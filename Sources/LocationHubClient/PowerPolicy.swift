// How often a phone should measure and send, by what that costs its battery and what it is good for: a pure function.
//
// The table of modes and the thresholds are those of the ride apps that this hub was made for; PowerPolicyTests prints
// the whole of it into Documentation.docc/PowerModes.md.
public import HubMessages

/// What the phone is like, as the app says by `DriverHub.report(_:)`.
public struct DeviceState: Sendable, Equatable {
  /// What the phone's motion sensors take it to be doing.
  public enum Motion: Sendable, Equatable, CaseIterable {
    /// Then the speed of the newest fix decides.
    case unknown
    case still
    case moving
  }

  /// 0…1; nil where it is not known, which counts as full.
  public var batteryLevel: Double?
  /// At a charger, or by its plug.
  public var isCharging: Bool
  /// What the motion sensors say: `CMMotionActivity` on Apple systems.
  public var motion: Motion
  /// The app is in the background.
  public var isInBackground: Bool

  /// A phone of which nothing is known counts as full, unplugged and in the foreground.
  public init(
    batteryLevel: Double? = nil, isCharging: Bool = false, motion: Motion = .unknown, isInBackground: Bool = false
  ) {
    self.batteryLevel = batteryLevel
    self.isCharging = isCharging
    self.motion = motion
    self.isInBackground = isInBackground
  }
}

/// What to ask of the phone's location service, and how many fixes go out together.
public struct LocationWish: Sendable, Equatable {
  /// Seconds between fixes.
  public var interval: Double
  /// Metres (`CLLocationManager.desiredAccuracy`); `bestAccuracy` for all that the phone can.
  public var accuracy: Double
  /// Metres to move before another fix is wanted (`CLLocationManager.distanceFilter`); 0 for none.
  public var distance: Double
  /// Fixes that are sent together, at least every 30 s.
  public var batch: Int

  /// All that the phone can: Core Location's `kCLLocationAccuracyBest`.
  public static let bestAccuracy = -1.0

  /// A wish of an app's own, for a mode of `PowerPolicy`; units as the members have them.
  public init(interval: Double, accuracy: Double, distance: Double, batch: Int) {
    self.interval = interval
    self.accuracy = accuracy
    self.distance = distance
    self.batch = batch
  }
}

/// Chooses what to ask of the phone.
public struct PowerPolicy: Sendable, Equatable {
  /// From the most to the least that a mode asks of the battery; its raw value is its name in the documentation.
  public enum Mode: String, Sendable, CaseIterable {
    case highPerformance = "high performance"
    case balanced
    case powerSaver = "power saver"
    case ultraLow = "ultra low"
  }

  /// What is asked for at a charger, and on a trip with a good battery.
  public var highPerformance = LocationWish(interval: 2, accuracy: LocationWish.bestAccuracy, distance: 0, batch: 1)
  /// On a trip with a fair battery, and off one while the phone moves and its battery is good.
  public var balanced = LocationWish(interval: 4, accuracy: 10, distance: 10, batch: 5)
  /// On a trip with a low battery, and off one in between.
  public var powerSaver = LocationWish(interval: 10, accuracy: 100, distance: 100, batch: 10)
  /// Off a trip with a low battery.
  public var ultraLow = LocationWish(interval: 30, accuracy: 1000, distance: 1000, batch: 20)
  /// Above the first a battery counts as good, above the second as fair; 0…1.
  public var goodBattery = 0.5
  /// See `goodBattery`.
  public var fairBattery = 0.2

  /// The modes and thresholds of the table in the documentation.
  public static let standard = PowerPolicy()

  /// The standard policy, to be changed.
  public init() {}

  /// The mode for a phone, on a trip or off one; `speed` in metres per second, nil where unknown.
  public func mode(_ device: DeviceState, isOnTrip: Bool, speed: Double?) -> Mode {
    if device.isCharging { return .highPerformance }
    let battery = device.batteryLevel ?? 1
    if isOnTrip {
      return battery > goodBattery ? .highPerformance : battery > fairBattery ? .balanced : .powerSaver
    }
    if battery > goodBattery { return isMoving(device, speed) ? .balanced : .powerSaver }
    return battery > fairBattery ? .powerSaver : .ultraLow
  }

  /// What to ask of the phone.
  ///
  /// - Parameters:
  ///   - device: what the phone is like.
  ///   - trip: the state of the driver's trip; nil off a trip.
  ///   - speed: metres per second; nil where unknown.
  ///   - hub: the hub's advice. Off a trip it can only make the phone send more seldom, but where somebody watches;
  ///     it never asks for more on a trip than the mode does, unless somebody watches.
  ///   - isWatched: somebody looks at this driver now, as the hub says.
  public func wish(
    _ device: DeviceState, trip: TripStatus?, speed: Double?, hub: Sampling?, isWatched: Bool = false
  ) -> LocationWish {
    let isOnTrip = trip.map(PowerPolicy.isUnderWay) ?? false
    var wish = wish(mode(device, isOnTrip: isOnTrip, speed: speed))
    // In the background the system collects what it likes to deliver together.
    if device.isInBackground, !isOnTrip { wish.batch = max(wish.batch, powerSaver.batch) }
    guard let hub else { return wish }
    if isWatched {
      if hub.interval < wish.interval {
        wish.interval = hub.interval
        wish.distance = min(wish.distance, hub.minDistance)
        wish.accuracy = min(balanced.accuracy, wish.accuracy)  // the best one is below 0
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

  /// By the sensors, where they know; else at 4 km/h and more, as the hub has it.
  func isMoving(_ device: DeviceState, _ speed: Double?) -> Bool {
    switch device.motion {
    case .moving: true
    case .still: false
    case .unknown: (speed ?? 0) > 4 / 3.6
    }
  }

  /// From `accepted` to `arrived_destination`, as the hub has it.
  private static func isUnderWay(_ status: TripStatus) -> Bool {
    switch status {
    case .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination: true
    case .requested, .completed, .cancelled: false
    }
  }
}
