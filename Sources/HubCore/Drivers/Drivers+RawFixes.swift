// Raw fixes with the hub's verdict, for ops who subscribe to a driver's.
import HubGeo
import HubMessages

extension Drivers {
  /// A judged fix and the position published for it, if any: distances in centimetres, headings and speeds in
  /// hundredths, whatever the phone sent. A number too large to have hundredths stays as it was sent.
  func rawFix(_ fix: Fix, _ outcome: FixOutcome, of driver: Int) -> RawFix {
    var raw = RawFix(
      driverID: self[driver].id, coordinate: fix.coordinate.published, timestamp: fix.timestamp, verdict: .accepted)
    func hundredths(_ value: Double) -> Double { value < 0x1p52 / 100 ? TrackMath.rounded(value, to: 100) : value }
    raw.accuracy = fix.accuracy.map(hundredths)
    raw.heading = fix.heading.map(hundredths).map { $0 < 360 ? $0 : 0 }
    raw.speed = fix.speed.map(hundredths)
    raw.source = fix.source
    switch outcome {
    case .accepted:
      guard let position = self[driver].position else { preconditionFailure("the fix was published") }
      raw.verdict = position.absorbed == nil ? .accepted : .absorbed
      raw.offset = TrackMath.rounded(fix.coordinate.distance(to: position.coordinate), to: 100)
    case .history: raw.verdict = .history
    case .duplicate: raw.verdict = .duplicate
    case .held: raw.verdict = .held
    case .clockDoubted: (raw.verdict, raw.reason) = (.refused, .implausibleLocation)
    case .refused(let refusal): (raw.verdict, raw.reason) = (.refused, refusal.code)
    }
    return raw
  }
}
