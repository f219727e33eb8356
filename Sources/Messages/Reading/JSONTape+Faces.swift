// What only control rooms are told, as a client reads it.
import HubBytes
import HubGeo

extension JSONTape {
  func rawFix(_ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat) throws(ValidationError) -> RawFix {
    var fix = RawFix(
      driverID: try required(identifier(payload, .driverId, bytes), .driverId), coordinate: try coordinate(payload),
      timestamp: try required(timestamp(payload, .timestamp, bytes, time), .timestamp),
      verdict: try required(word(payload, .verdict, bytes, "expected the hub's verdict on a fix"), .verdict))
    fix.accuracy = try nonNegative(payload, .accuracy)
    fix.source = try word(payload, .source, bytes, "expected gps, wifi, cellular, fused or cached")
    fix.heading = try nonNegative(payload, .heading)
    fix.speed = try nonNegative(payload, .speed)
    fix.reason = try word(payload, .reason, bytes, "expected an error code")
    fix.offset = try nonNegative(payload, .offset)
    return fix
  }
}
