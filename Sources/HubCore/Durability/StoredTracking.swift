// The state that a restarted hub needs of a driver beside its newest position: stored with each record of fixes and
// with each driver, in 24 bytes at fixed offsets.
//
// The filter's coordinate, speed and heading are in the fix. Biases and correlations are left out: they matter for
// seconds, which a restart takes. What took minutes to learn is stored: the phone's noise, and the delay and error of
// its velocity. Without the former the gate would refuse good fixes of a noisy phone; without the latter a phone that
// reports wrong motion would be trusted again for seconds. A doubtful position is stored with a larger variance.
//
//     at  bytes                                            at  bytes
//      0  8  offset of the phone's clock, ms; least: none  16  2  latency of the speed, s
//      8  2  seconds between messages, 0 with a session    18  2  latency of the bearing, s
//     10  2  variance of the place, m²; 0: no filter       20  2  variance of the phone's velocities, m²/s²
//     12  2  variance of the velocity, m²/s²               22  1  flags
//     14  2  scale of the position noise                   23  1  zero
//
// The numbers of the filter are the upper halves of a Float: 8 bits of precision over its range.
import HubGeo
import HubMessages

struct StoredTracking: Equatable, BitwiseCopyable {
  /// Bytes of one.
  static let size = 24

  /// `SessionClock.offsetMilliseconds`.
  var clockOffset: Int64?
  /// Seconds, rounded up, between the messages of a driver that sends without a session; 0 for one with a session.
  var sendingInterval: UInt16 = 0
  var motion: StoredMotion?
}

/// The stored state of a `MotionFilter`, beside the position that it published last.
struct StoredMotion: Equatable, BitwiseCopyable {
  /// m² and m²/s² on an axis.
  var placeVariance: Float
  var velocityVariance: Float
  /// `MotionFilter.noiseScale`, and the seconds of `VelocityLatency`.
  var noiseScale: Float
  var speedLatency: Float
  var bearingLatency: Float
  /// m²/s²: `VelocityTrust.variance`.
  var velocityNoise: Float
  var flags: Flags

  struct Flags: OptionSet, BitwiseCopyable {
    var rawValue: UInt8
    static let standing = Flags(rawValue: 1)
    static let doubtsStandstill = Flags(rawValue: 2)
    static let all: Flags = [.standing, .doubtsStandstill]
  }
}

// MARK: - Bytes

extension StoredTracking {
  /// Writes the 24 bytes. Allocates nothing.
  @inline(__always)
  func write(into bytes: UnsafeMutableRawBufferPointer) {
    precondition(bytes.count >= StoredTracking.size)
    unsafe bytes.storeBytes(of: (clockOffset ?? .min).littleEndian, toByteOffset: 0, as: Int64.self)
    unsafe bytes.storeBytes(of: sendingInterval.littleEndian, toByteOffset: 8, as: UInt16.self)
    guard let motion else {
      unsafe bytes.storeBytes(of: 0, toByteOffset: 10, as: UInt16.self)
      unsafe bytes.storeBytes(of: 0, toByteOffset: 12, as: UInt64.self)
      return unsafe bytes.storeBytes(of: 0, toByteOffset: 20, as: UInt32.self)
    }
    func store(_ value: Float, _ offset: Int) {
      unsafe bytes.storeBytes(of: UInt16(value.bitPattern >> 16).littleEndian, toByteOffset: offset, as: UInt16.self)
    }
    store(motion.placeVariance, 10)
    store(motion.velocityVariance, 12)
    store(motion.noiseScale, 14)
    store(motion.speedLatency, 16)
    store(motion.bearingLatency, 18)
    store(motion.velocityNoise, 20)
    unsafe bytes.storeBytes(of: UInt16(motion.flags.rawValue).littleEndian, toByteOffset: 22, as: UInt16.self)
  }

  /// Reads the first 24 of `bytes`; nil where they are invalid.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= StoredTracking.size else { return nil }
    func number<Number: FixedWidthInteger & BitwiseCopyable>(_: Number.Type, _ offset: Int) -> Number {
      unsafe Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
    func value(_ offset: Int) -> Float { Float(bitPattern: UInt32(number(UInt16.self, offset)) << 16) }
    let offset = number(Int64.self, 0)
    guard offset == .min || abs(offset) <= SessionClock.largestOffset else { return nil }
    clockOffset = offset == .min ? nil : offset
    sendingInterval = number(UInt16.self, 8)
    guard number(UInt16.self, 10) != 0 else {
      guard number(UInt64.self, 12) == 0, number(UInt32.self, 20) == 0 else { return nil }
      return
    }
    let flags = number(UInt16.self, 22)
    guard flags <= UInt16(StoredMotion.Flags.all.rawValue) else { return nil }
    let motion = StoredMotion(
      placeVariance: value(10), velocityVariance: value(12), noiseScale: value(14),
      speedLatency: value(16), bearingLatency: value(18), velocityNoise: value(20),
      flags: StoredMotion.Flags(rawValue: UInt8(flags)))
    guard motion.isPlausible else { return nil }
    self.motion = motion
  }
}

extension StoredMotion {
  /// m² or m²/s². As a variance of places, 1,000 km squared: the place is unknown.
  fileprivate static let largestVariance: Float = 1e12

  /// Whether a filter may begin with it: refuses NaN and values that no filter reaches.
  fileprivate var isPlausible: Bool {
    (1e-7...StoredMotion.largestVariance).contains(placeVariance)
      && (1e-7...StoredMotion.largestVariance).contains(velocityVariance)
      && (0.001...100).contains(noiseScale) && (0...1).contains(speedLatency) && (0...1).contains(bearingLatency)
      && (0...1e6).contains(velocityNoise)
  }
}

// MARK: - The filter

extension MotionFilter {
  /// What is stored of the filter.
  @inline(__always) var stored: StoredMotion {
    var flags = StoredMotion.Flags()
    if isStanding { flags.insert(.standing) }
    if doubtsStandstill { flags.insert(.doubtsStandstill) }
    return StoredMotion(
      placeVariance: min(Float(covariance.p00) + doubt.moved, StoredMotion.largestVariance),
      velocityVariance: min(Float(covariance.p11), StoredMotion.largestVariance),
      noiseScale: Float(noiseScale), speedLatency: latency.speed.seconds, bearingLatency: latency.bearing.seconds,
      velocityNoise: min(trust.variance, 1e6), flags: flags)
  }

  /// Resumes from a published position and the state stored beside it.
  init(resuming position: Position, _ stored: StoredMotion) {
    var velocity = SIMD2<Double>.zero
    if let heading = position.heading, let speed = position.speed, !stored.flags.contains(.standing) {
      let direction = SineCosine(degrees: heading)
      velocity = SIMD2(direction.sine, direction.cosine) * speed
    }
    let variance = Double(stored.placeVariance)
    let covariance = Covariance(
      position: variance, velocity: Double(stored.velocityVariance),
      bias: variance * MotionFilter.biasShare * MotionFilter.biasShare)
    self.init(
      at: position.coordinate, milliseconds: position.timestamp.milliseconds, velocity: velocity,
      covariance: covariance)
    if let heading = position.heading { self.heading = Float(heading) }
    noiseScale = min(max(Double(stored.noiseScale), Self.noiseRange.lowerBound), Self.noiseRange.upperBound)
    latency = VelocityLatency(speed: stored.speedLatency, bearing: stored.bearingLatency)
    trust = VelocityTrust(learned: stored.velocityNoise)
    isStanding = stored.flags.contains(.standing)
    doubtsStandstill = stored.flags.contains(.doubtsStandstill)
  }
}
