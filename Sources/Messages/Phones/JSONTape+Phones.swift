// The JSON of phone apps. Their members are outside the protocol, so they are looked up by name, a few in each object.
// A value of an unexpected kind counts as absent.
import HubBytes

extension JSONTape {
  /// The index of a member's value in the object at `index`; nil where it is absent or null. O(members).
  private func member(_ index: Int?, _ name: StaticString, _ bytes: Span<UInt8>) -> Int? {
    guard let index, self[index].kind == .object else { return nil }
    let end = Int(self[index].next)
    var i = index + 1
    while i < end {
      let start = Int(self[i].source) + 1
      let behind = start + name.utf8CodeUnitCount
      if bytes.isSpelled(name, at: start), behind < bytes.count, bytes[behind] == UInt8(ascii: "\"") {
        return self[i + 1].kind == .null ? nil : i + 1
      }
      i = Int(self[i + 1].next)
    }
    return nil
  }

  private func number(_ index: Int?, _ name: StaticString, _ bytes: Span<UInt8>) -> Double? {
    guard let value = member(index, name, bytes), self[value].kind == .number else { return nil }
    return Double(bitPattern: self[value].bits)
  }

  private func text(_ index: Int?, _ name: StaticString, _ bytes: Span<UInt8>) -> [UInt8]? {
    guard let value = member(index, name, bytes), isText(value) else { return nil }
    return unsafe withText(value, bytes) { unsafe Array($0) }
  }

  /// The elements of an array, or a single value; empty where there is none.
  private func elements(_ index: Int?) -> [Int] {
    guard let index else { return [] }
    guard self[index].kind == .array else { return [index] }
    var (elements, i) = ([Int](), index + 1)
    for _ in 0..<Int(self[index].count) {
      elements.append(i)
      i = Int(self[i].next)
    }
    return elements
  }

  // MARK: Formats

  /// `{"_type":"location","lat":…,"lon":…,"tst":…}`; other types are no positions. The app leaves out zeros.
  func ownTracks(_ bytes: Span<UInt8>) -> PhoneReport {
    var report = PhoneReport(.ownTracks)
    for object in elements(0) where text(object, "_type", bytes) == Array("location".utf8) {
      let fix = PhoneFix(
        latitude: number(object, "lat", bytes), longitude: number(object, "lon", bytes),
        timestamp: PhoneTime.timestamp(seconds: number(object, "tst", bytes)),
        speed: number(object, "vel", bytes).map { $0 * PhoneFix.kilometersPerHour },
        heading: number(object, "cog", bytes), accuracy: number(object, "acc", bytes),
        altitude: number(object, "alt", bytes), battery: number(object, "batt", bytes).map { $0 / 100 })
      report.fixes.append(fix.checked)
    }
    return report
  }

  /// `{"location":{"timestamp":…,"coords":{…},"battery":{"level":…}},"device_id":…}`.
  func traccar(_ bytes: Span<UInt8>) -> PhoneReport {
    var report = PhoneReport(.traccar)
    report.add(deviceID(0, bytes))
    for location in elements(member(0, "location", bytes)) {
      guard let coords = member(location, "coords", bytes) else { continue }
      let fix = PhoneFix(
        latitude: number(coords, "latitude", bytes), longitude: number(coords, "longitude", bytes),
        timestamp: text(location, "timestamp", bytes).flatMap(PhoneTime.timestamp),
        speed: number(coords, "speed", bytes), heading: number(coords, "heading", bytes),
        accuracy: number(coords, "accuracy", bytes), altitude: number(coords, "altitude", bytes),
        battery: number(member(location, "battery", bytes), "level", bytes))
      report.fixes.append(fix.checked)
    }
    return report
  }

  /// `{"locations":[{"geometry":{"coordinates":[longitude,latitude]},"properties":{…}},…]}`. Features with an `action`
  /// (the app paused, a visit ended), of type `trip` or without a coordinate are notes of the app about itself: they
  /// have the present time, and the last place or that of the visit.
  func overland(_ bytes: Span<UInt8>) -> PhoneReport {
    var report = PhoneReport(.overland)
    for feature in elements(member(0, "locations", bytes)) {
      let properties = member(feature, "properties", bytes)
      report.add(deviceID(properties, bytes))
      let isTrip = text(properties, "type", bytes)?.elementsEqual("trip".utf8) == true
      if isTrip || member(properties, "action", bytes) != nil { continue }
      let place = elements(member(member(feature, "geometry", bytes), "coordinates", bytes))
      guard place.count >= 2, self[place[0]].kind == .number, self[place[1]].kind == .number else { continue }
      let fix = PhoneFix(
        latitude: Double(bitPattern: self[place[1]].bits), longitude: Double(bitPattern: self[place[0]].bits),
        timestamp: text(properties, "timestamp", bytes).flatMap(PhoneTime.timestamp),
        speed: number(properties, "speed", bytes), heading: number(properties, "course", bytes),
        accuracy: number(properties, "horizontal_accuracy", bytes), altitude: number(properties, "altitude", bytes),
        battery: number(properties, "battery_level", bytes))
      report.fixes.append(fix.checked)
    }
    return report
  }

  private func deviceID(_ index: Int?, _ bytes: Span<UInt8>) -> String? {
    text(index, "device_id", bytes).map { String(decoding: $0, as: UTF8.self) }
  }
}
