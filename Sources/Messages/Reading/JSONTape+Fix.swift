// Fixes: flat, as in location_update, and in the nested form of the original design, which apps in the field send.
import HubBytes
import HubGeo

/// The layout of a fix's members.
enum FixForm {
  /// `latitude`, `longitude`, … beside each other.
  case flat
  /// Flat, or with `coordinate` as an object. In both cases `accuracy` is a number or an object.
  case flatOrNested
}

extension JSONTape {
  /// Reads a fix. Negative numbers for what can't be negative mean "unknown" (phones report −1).
  @inline(__always)
  func fix(
    _ members: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat, _ form: FixForm
  ) throws(ValidationError) -> Fix {
    if case .flatOrNested = form, let nested = try object(members, .coordinate) {
      return try nestedFix(members, place: nested, bytes, time)
    }
    let coordinate = try coordinate(members)
    var fix = Fix(
      coordinate: coordinate, timestamp: try fixTimestamp(members, bytes, time))
    switch form {
    case .flat: fix.accuracy = try nonNegative(members, .accuracy)
    case .flatOrNested: try readAccuracy(members, into: &fix)
    }
    fix.heading = try heading(members)
    fix.speed = try nonNegative(members, .speed)
    fix.altitude = try number(members, .altitude)
    try readCommon(members, bytes, into: &fix)
    return fix
  }

  /// `coordinate` {`latitude`, `longitude`, `altitude?`, `heading?`, `speed?`} and `accuracy` {`horizontal`, …}.
  private func nestedFix(
    _ members: JSONMembers, place: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> Fix {
    var fix = Fix(
      coordinate: try coordinate(place),
      timestamp: try fixTimestamp(members, bytes, time))
    fix.heading = try heading(place)
    fix.speed = try nonNegative(place, .speed)
    fix.altitude = try number(place, .altitude)
    try readAccuracy(members, into: &fix)
    try readCommon(members, bytes, into: &fix)
    return fix
  }

  @inline(__always)
  private func fixTimestamp(
    _ members: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> Timestamp {
    try required(clientTimestamp(members, .timestamp, bytes, time, early: .invalidLocation), .timestamp)
  }

  private func readAccuracy(_ members: JSONMembers, into fix: inout Fix) throws(ValidationError) {
    guard let index = present(members, .accuracy) else { return }
    switch self[index].kind {
    case .number: fix.accuracy = try nonNegative(members, .accuracy)
    case .object: fix.accuracy = try nonNegative(self.members(of: index), .horizontal)
    case .null, .true, .false, .string, .unescaped, .array:
      throw ValidationError(.accuracy, "expected a number, or an object with horizontal")
    }
  }

  @inline(__always)
  private func readCommon(_ members: JSONMembers, _ bytes: Span<UInt8>, into fix: inout Fix) throws(ValidationError) {
    fix.headingAccuracy = try nonNegative(members, .headingAccuracy)
    fix.speedAccuracy = try nonNegative(members, .speedAccuracy)
    fix.source = try keyword(members, .source, bytes, "expected gps, wifi, cellular, fused or cached")
    fix.batteryLevel = try nonNegative(members, .batteryLevel)
    if let level = fix.batteryLevel, level > 1 { throw ValidationError(.batteryLevel, Fix.batteryRange) }
  }

  /// Degrees, 0 ≤ heading < 360; exactly 360 is north.
  @inline(__always)
  func heading(_ members: JSONMembers) throws(ValidationError) -> Double? {
    guard let value = try nonNegative(members, .heading) else { return nil }
    guard let heading = HubMessages.heading(of: value) else {
      throw ValidationError(.invalidLocation, .heading, "expected 0…360 degrees")
    }
    return heading
  }

  /// The payload of a location_update.
  @inline(__always)
  func locationUpdate(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> LocationUpdate {
    let tripID = try identifier(payload, .tripId, bytes)
    return LocationUpdate(tripID: tripID, fix: try fix(payload, bytes, time, .flat))
  }

  /// The payload of a location_batch. An invalid fix keeps its index, so that the others are accepted.
  func locationBatch(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> LocationBatch {
    let tripID = try identifier(payload, .tripId, bytes)
    let list = try required(present(payload, .locations), .locations)
    guard self[list].kind == .array else { throw ValidationError(.locations, "expected an array") }
    let count = Int(self[list].count)
    guard count >= 1 else { throw ValidationError(.locations, "expected 1–500 fixes") }
    guard count <= LocationBatch.maximumCount else {
      throw ValidationError(.tooLarge, .locations, "expected 1–500 fixes")
    }
    var fixes: [Result<Fix, ErrorCode>] = []
    fixes.reserveCapacity(count)
    var i = list + 1
    for _ in 0..<count {
      fixes.append(element(i, bytes, time))
      i = Int(self[i].next)
    }
    return LocationBatch(tripID: tripID, fixes: fixes)
  }

  private func element(_ index: Int, _ bytes: Span<UInt8>, _ time: TimeFormat) -> Result<Fix, ErrorCode> {
    guard self[index].kind == .object else { return .failure(.badMessage) }
    do throws(ValidationError) {
      return .success(try fix(members(of: index), bytes, time, .flatOrNested))
    } catch {
      return .failure(error.code)
    }
  }

  /// A body that is either payload: one with `locations` is a batch.
  func locations(_ bytes: Span<UInt8>, _ time: TimeFormat) throws(ValidationError) -> LocationBatch {
    guard self[0].kind == .object else { throw ValidationError(.unknown, "expected an object: a fix, or locations") }
    let body = members(of: 0)
    if body[.locations] != 0 { return try locationBatch(body, bytes, time) }
    let tripID = try identifier(body, .tripId, bytes)
    return LocationBatch(tripID: tripID, fixes: [.success(try fix(body, bytes, time, .flatOrNested))])
  }
}
