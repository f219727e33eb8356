// A drive through a town with its truth, and what phones of several kinds would report of it: seeded, so that the same
// seed gives the same bytes.
import Foundation
import HubGeo
import HubMessages
import HubTestSupport

@testable import HubCore

/// What is wrong with a phone's fixes. Defaults: a good phone.
struct PhoneErrors {
  /// Metres on an axis: what drifts over `driftSeconds`, and what is new with each fix.
  var drift = 1.0
  var driftSeconds = 90.0
  var white = 0.3
  /// m/s on an axis of the Doppler velocity, and how late its speed is.
  var velocity = 0.1
  var latency = 0.0
  /// The accuracy it states, nil for none; and whether it gives speed and bearing.
  var stated: Double? = 4
  var hasMotion = true
  /// Parts of the fixes: far outliers; velocities that are off by `wildVelocity` m/s; beginnings of a gap of 3–14
  /// fixes.
  var outliers = 0.0
  var wild = 0.0
  var wildVelocity = 6.0
  var gaps = 0.0

  /// Reflected signals in every second position, and some velocities far off: what a phone makes of a street canyon.
  static let bad = PhoneErrors(
    drift: 2, driftSeconds: 10, white: 7, velocity: 0.25, stated: 5, outliers: 0.02, wild: 0.05)
}

/// Positions and speeds each tenth of a second: stretches of driving with bends, braking and stops.
struct SimulatedDrive {
  private(set) var places: [Coordinate] = []
  private(set) var speeds: [Double] = []
  private(set) var headings: [Double] = []
  let start: Coordinate

  /// `seconds` of driving from `start`.
  init(seed: UInt64, seconds: Int, from start: Coordinate = Coordinate(latitude: 48.137, longitude: 11.575)!) {
    self.start = start
    var random = SplitMix64(seed: seed)
    var (place, speed, heading) = (start, 0.0, Double.random(in: 0..<360, using: &random))
    var (target, turn, left) = (0.0, 0.0, 0)
    for _ in 0..<seconds * 10 {
      if left == 0 {
        left = Int.random(in: 60..<250, using: &random)
        target = [0, 5, 9, 14, 14, 22].randomElement(using: &random)!
        turn =
          speed < 12
          ? [0, 0, 9, -9, 3].randomElement(using: &random)! : [0, 0, 0.5, -0.5].randomElement(using: &random)!
      }
      left -= 1
      speed += min(max(target - speed, -0.25), 0.18)
      if abs(turn) > 5, left % 100 == 0 { turn = 0 }
      if speed > 1 { heading = (heading + turn / 10 + 360).truncatingRemainder(dividingBy: 360) }
      place = Globe.place(from: place, bearing: heading, meters: speed / 10).place
      places.append(place)
      speeds.append(speed)
      headings.append(heading)
    }
  }

  /// A fix with the truth of its time.
  struct Sample {
    var fix: Fix
    var truth: Coordinate
    var speed: Double
  }

  /// What a phone says each `every` seconds.
  func fixes(_ errors: PhoneErrors, every: Double = 1, seed: UInt64) -> [Sample] {
    var random = SplitMix64(seed: seed)
    var drift = random.normals() * errors.drift
    let kept = exp(-every / errors.driftSeconds)
    var (samples, gap) = ([Sample](), 0)
    for index in stride(from: 0, to: places.count, by: Int((every * 10).rounded())) {
      drift = drift * kept + random.normals() * (errors.drift * (1 - kept * kept).squareRoot())
      let position = drift + random.normals() * errors.white
      let doppler = random.normals() * errors.velocity
      let (isWild, isOutlier) = (random.chance(errors.wild), random.chance(errors.outliers))
      if gap == 0, random.chance(errors.gaps) { gap = Int.random(in: 3...14, using: &random) }
      if gap > 0 {
        gap -= 1
        continue
      }
      var seen = moved(places[index], by: position)
      if isOutlier { seen = moved(seen, by: random.normals() * 400) }
      let late = max(0, index - Int((errors.latency * 10).rounded()))
      let radians = headings[late] * .pi / 180
      var velocity = SIMD2(sin(radians), cos(radians)) * speeds[late] + doppler
      if isWild { velocity += random.normals() * errors.wildVelocity }
      let speed = (velocity * velocity).sum().squareRoot()
      let bearing = atan2(velocity.x, velocity.y) * 180 / .pi
      samples.append(
        Sample(
          fix: .at(
            Double(index) / 10, seen, accuracy: errors.stated, speed: errors.hasMotion ? speed : nil,
            heading: errors.hasMotion && speed > 0.5 ? (bearing < 0 ? bearing + 360 : bearing) : nil),
          truth: places[index], speed: speeds[index]))
    }
    return samples
  }

  private func moved(_ place: Coordinate, by meters: SIMD2<Double>) -> Coordinate {
    let distance = (meters * meters).sum().squareRoot()
    return Globe.place(from: place, bearing: atan2(meters.x, meters.y) * 180 / .pi, meters: distance).place
  }
}

extension SplitMix64 {
  mutating func chance(_ part: Double) -> Bool { Double.random(in: 0..<1, using: &self) < part }
}

/// A tracker judged by the truth: errors of what a map shows at the time of each fix.
struct TrackJudgement {
  var raw: [Double] = []
  var shown: [Double] = []
  /// Of the ways from fix to fix: what the drawn one has too much, and what that of the fixes has, m/s.
  private var drawnExcess = 0.0
  private var rawExcess = 0.0
  private(set) var inside = 0
  private(set) var published = 0
  private(set) var speedSquares = 0.0
  private(set) var reportedSpeedSquares = 0.0
  /// Metres drawn and seconds passed during true standstills.
  private(set) var phantomMeters = 0.0
  private(set) var standingSeconds = 0.0
  private(set) var tracker = Tracker()

  init(_ samples: [SimulatedDrive.Sample]) {
    var last: (sample: SimulatedDrive.Sample, shown: Coordinate)?
    for sample in samples {
      let position = tracker.update(sample.fix).position
      guard let place = position?.coordinate ?? last?.shown else { continue }
      raw.append(Globe.distance(sample.fix.coordinate, sample.truth))
      shown.append(Globe.distance(place, sample.truth))
      if let position {
        published += 1
        inside += Globe.distance(place, sample.truth) <= position.accuracy ? 1 : 0
        let off = (position.speed ?? 0) - sample.speed
        speedSquares += off * off
        let reported = (sample.fix.speed ?? 0) - sample.speed
        reportedSpeedSquares += reported * reported
      }
      if let last { judge(sample, place, after: last.sample, last.shown) }
      last = (sample, place)
    }
  }

  private mutating func judge(
    _ sample: SimulatedDrive.Sample, _ place: Coordinate, after last: SimulatedDrive.Sample, _ lastPlace: Coordinate
  ) {
    let seconds = sample.fix.timestamp.seconds(since: last.fix.timestamp)
    func excess(_ first: Coordinate, _ second: Coordinate) -> Double {
      let plane = LocalPlane(origin: last.truth)
      let east = plane.east(of: second) - plane.east(of: first) - plane.east(of: sample.truth)
      let north = plane.north(of: second) - plane.north(of: first) - plane.north(of: sample.truth)
      return (east * east + north * north) / (seconds * seconds)
    }
    drawnExcess += excess(lastPlace, place)
    rawExcess += excess(last.fix.coordinate, sample.fix.coordinate)
    guard last.speed < 0.1, sample.speed < 0.1 else { return }
    phantomMeters += Globe.distance(lastPlace, place)
    standingSeconds += seconds
  }

  var mean: Double { shown.reduce(0, +) / Double(shown.count) }
  var rawMean: Double { raw.reduce(0, +) / Double(raw.count) }
  var meanRatio: Double { mean / rawMean }
  var jitterRatio: Double { (drawnExcess / rawExcess).squareRoot() }
  var insideShare: Double { Double(inside) / Double(published) }
  var speedError: Double { (speedSquares / Double(published)).squareRoot() }
  /// Of the published speeds, as a part of that of the reported ones.
  var speedRatio: Double { (speedSquares / reportedSpeedSquares).squareRoot() }
  var phantomPerMinute: Double { phantomMeters / max(standingSeconds, 1) * 60 }
}
