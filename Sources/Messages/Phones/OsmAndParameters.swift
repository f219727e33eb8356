// OsmAnd's parameters, which older Traccar clients and many trackers send as well, in a query or as a form:
// `id=…&lat=…&lon=…&timestamp=…&speed=…&bearing=…&altitude=…&accuracy=…&batt=…`.
import HubBytes

extension PhoneReport {
  /// Reads one fix. Speed is in knots, as in Traccar's server, unless `speed_unit` is `ms` or `kmh`; an accuracy of 0
  /// is unknown, as old clients send it with each fix. Without a timestamp the fix has the present time. Other
  /// parameters are ignored; without a coordinate there is no fix.
  ///
  /// Of repeated parameters the first is used.
  public init(osmAnd parameters: [(name: String, value: String)], now: Timestamp) {
    func value(_ names: String...) -> String? {
      for name in names {
        if let found = parameters.first(where: { $0.name.isSpelled(name) })?.value, !found.isEmpty { return found }
      }
      return nil
    }
    func number(_ names: String...) -> Double? {
      for name in names { if let number = value(name).flatMap({ PhoneReport.number($0.utf8) }) { return number } }
      return nil
    }
    self.init(.osmAnd)
    for name in ["id", "deviceid", "device_id"] { add(value(name)) }
    var fix = PhoneFix(latitude: number("lat"), longitude: number("lon"))
    if let halves = value("location")?.utf8.split(separator: UInt8(ascii: ","), maxSplits: 2), halves.count == 2 {
      fix.latitude = PhoneReport.number(halves[0])
      fix.longitude = PhoneReport.number(halves[1])
    }
    if fix.latitude == nil, fix.longitude == nil { return }
    fix.timestamp = value("timestamp").map(PhoneReport.time) ?? now
    fix.speed = number("speed").map { $0 * PhoneReport.speedUnit(value("speed_unit")) }
    fix.heading = number("bearing", "heading")
    fix.accuracy = number("accuracy").flatMap { $0 == 0 ? nil : $0 }
    fix.altitude = number("altitude")
    fix.battery = number("batt").map { $0 / 100 }
    fixes.append(fix.checked)
  }

  private static func number(_ text: some Sequence<UInt8>) -> Double? {
    unsafe Array(text).withUnsafeBytes { unsafe parseDouble($0) }
  }

  private static func time(_ text: String) -> Timestamp? {
    if let number = number(text.utf8) { return PhoneTime.timestamp(secondsOrMilliseconds: number) }
    return PhoneTime.timestamp(text.utf8)
  }

  private static func speedUnit(_ name: String?) -> Double {
    if name?.isSpelled("ms") == true { return 1 }
    return name?.isSpelled("kmh") == true ? PhoneFix.kilometersPerHour : PhoneFix.knots
  }
}
