// A trip's progress and summary as bytes, in the form of RecordWriter: every member in order, bit for bit.
import HubBytes
import HubGeo
import HubMessages

extension TripProgress: Recorded {
  // One by one, since this is on the path of each fix of a trip (RecordWriter.write(fixes:)).
  func write(into bytes: inout ByteBuffer) {
    odometer.meters.write(into: &bytes)
    odometer.anchor.write(into: &bytes)
    odometer.groundLatitude.write(into: &bytes)
    approachMeters.write(into: &bytes)
    fixes.write(into: &bytes)
    newest.write(into: &bytes)
    gaps.write(into: &bytes)
    gapMilliseconds.write(into: &bytes)
    waitingMilliseconds.write(into: &bytes)
    isStanding.write(into: &bytes)
    started.write(into: &bytes)
    arrived.write(into: &bytes)
    pace.speed.write(into: &bytes)
    pace.weightSeconds.write(into: &bytes)
    bytes.append(notices.rawValue)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    odometer = Odometer(
      meters: try reader.distance(), anchor: try reader.read(), groundLatitude: try reader.finite(in: -90...90))
    approachMeters = try reader.read() ? try reader.distance() : nil
    (fixes, newest) = (try reader.count(), try reader.read())
    (gaps, gapMilliseconds) = (try reader.count(), try TripProgress.milliseconds(from: &reader))
    waitingMilliseconds = try TripProgress.milliseconds(from: &reader)
    isStanding = try reader.read()
    (started, arrived) = (try reader.read(), try reader.read())
    let speed = try reader.read() ? try reader.finite(in: 0...1e9) : nil
    pace = Pace(speed: speed, weightSeconds: try reader.finite(in: 0...1e9))
    notices = TripNotices(rawValue: try reader.read())
    guard TripNotices.all.isSuperset(of: notices) else { throw reader.failure(.number) }
  }

  private static func milliseconds(from reader: inout RecordReader) throws(RecordError) -> Int64 {
    let value: Int64 = try reader.read()
    guard (0...TripProgress.longestMilliseconds).contains(value) else { throw reader.failure(.number) }
    return value
  }
}

extension TripSummary: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(distance, approach, track, duration, waiting, gapDuration, fixes, gaps)
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
