// A trip's progress and its summary as bytes, in the form of RecordWriter: every member in its order, to the bit.
import HubBytes
import HubGeo
import HubMessages

extension TripProgress {
  func write(into bytes: inout ByteBuffer) {
    bytes.append(number: odometer.meters.bitPattern)
    bytes.append(optional: odometer.anchor) { $0.append(coordinate: $1) }
    bytes.append(number: odometer.groundLatitude.bitPattern)
    bytes.append(optional: approachMeters) { $0.append(number: $1.bitPattern) }
    bytes.append(number: fixes)
    bytes.append(optional: newest) { $0.append(number: $1.milliseconds) }
    bytes.append(number: gaps)
    bytes.append(number: gapMilliseconds)
    bytes.append(number: waitingMilliseconds)
    bytes.append(UInt8(isStanding ? 1 : 0))
    bytes.append(optional: started) { $0.append(number: $1.milliseconds) }
    bytes.append(optional: arrived) { $0.append(number: $1.milliseconds) }
    bytes.append(optional: pace.speed) { $0.append(number: $1.bitPattern) }
    bytes.append(number: pace.weightSeconds.bitPattern)
    bytes.append(notices.rawValue)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    let meters = try reader.distance()
    let anchor = try reader.isPresent() ? try reader.coordinate() : nil
    let groundLatitude = try reader.finite(in: -90...90)
    odometer = Odometer(meters: meters, anchor: anchor, groundLatitude: groundLatitude)
    if try reader.isPresent() { approachMeters = try reader.distance() }
    fixes = try reader.count()
    if try reader.isPresent() { newest = try reader.timestamp() }
    gaps = try reader.count()
    gapMilliseconds = try reader.milliseconds()
    waitingMilliseconds = try reader.milliseconds()
    isStanding = try reader.isPresent()
    if try reader.isPresent() { started = try reader.timestamp() }
    if try reader.isPresent() { arrived = try reader.timestamp() }
    let speed = try reader.isPresent() ? try reader.finite(in: 0...1e9) : nil
    pace = Pace(speed: speed, weightSeconds: try reader.finite(in: 0...1e9))
    notices = TripNotices(rawValue: try reader.number(UInt8.self))
    guard TripNotices.all.isSuperset(of: notices) else { throw reader.failure(.number) }
  }
}

extension TripSummary {
  func write(into bytes: inout ByteBuffer) {
    for value in [distance, approach, track, duration, waiting, gapDuration] { bytes.append(number: value.bitPattern) }
    bytes.append(number: fixes)
    bytes.append(number: gaps)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    let (distance, approach, track) = (try reader.distance(), try reader.distance(), try reader.distance())
    let (duration, waiting) = (try reader.finite(in: 0...1e15), try reader.finite(in: 0...1e15))
    let gapDuration = try reader.finite(in: 0...1e15)
    self.init(
      distance: distance, approach: approach, track: track, duration: duration, waiting: waiting,
      fixes: try reader.count(), gaps: try reader.count(), gapDuration: gapDuration)
  }
}

extension RecordReader {
  mutating func finite(in range: ClosedRange<Double>) throws(RecordError) -> Double {
    let value = Double(bitPattern: try number(UInt64.self))
    guard range.contains(value) else { throw failure(.number) }
    return value
  }

  fileprivate mutating func milliseconds() throws(RecordError) -> Int64 {
    let value = try number(Int64.self)
    guard (0...TripProgress.longestMilliseconds).contains(value) else { throw failure(.number) }
    return value
  }
}
