// GTFS-realtime's vehicle positions (gtfs.org/documentation/realtime/reference, version 2.0), which journey planners
// read: protocol buffers (protobuf.dev/programming-guides/encoding), fields in the order of their numbers, as the
// official bindings write them.
public import HubBytes
import HubGeo

/// Writes a feed, one vehicle after the other.
public enum VehiclePositions {
  /// Wire types: a number, length-delimited bytes, four bytes.
  private enum Wire: UInt64 {
    case varint = 0
    case bytes = 2
    case four = 5
  }

  /// The head of a feed: complete (FULL_DATASET), as of this time.
  public static func begin(_ time: Timestamp, into buffer: inout ByteBuffer) {
    let seconds = UInt64(clamping: time.milliseconds / 1000)
    tag(1, .bytes, &buffer)
    buffer.append(varint: UInt64(5 + 2 + 1 + size(seconds)))
    text(1, InlineText("2.0")!, &buffer)
    tag(2, .varint, &buffer)
    buffer.append(varint: 0)
    tag(3, .varint, &buffer)
    buffer.append(varint: seconds)
  }

  /// Appends a vehicle; nothing where its position is unknown. Some 70 bytes.
  public static func write(_ report: DriverReport, into buffer: inout ByteBuffer) {
    guard let place = report.position else { return }
    let id = report.driverID.text
    let seconds = UInt64(clamping: (place.timestamp?.milliseconds ?? 0) / 1000)
    let position = 10 + (place.heading == nil ? 0 : 5) + (place.speed == nil ? 0 : 5)
    let trip = report.tripID.map { nested(field($0.text)) } ?? 0
    let vehicle = trip + nested(position) + (seconds == 0 ? 0 : 1 + size(seconds)) + nested(field(id))

    tag(2, .bytes, &buffer)
    buffer.append(varint: UInt64(field(id) + nested(vehicle)))
    text(1, id, &buffer)
    tag(4, .bytes, &buffer)
    buffer.append(varint: UInt64(vehicle))
    if let trip = report.tripID { message(1, field(trip.text), &buffer) { text(1, trip.text, &$0) } }
    message(2, position, &buffer) { buffer in
      float(1, place.coordinate.latitude, &buffer)
      float(2, place.coordinate.longitude, &buffer)
      if let heading = place.heading { float(3, heading, &buffer) }
      if let speed = place.speed { float(5, speed, &buffer) }
    }
    if seconds != 0 {
      tag(5, .varint, &buffer)
      buffer.append(varint: seconds)
    }
    message(8, field(id), &buffer) { text(1, id, &$0) }
  }

  // MARK: Sizes

  private static func size(_ value: UInt64) -> Int { max(1, (70 - value.leadingZeroBitCount) / 7) }

  /// The bytes of a text with its tag and its length, of one byte each: a text has at most 64.
  private static func field(_ text: InlineText) -> Int { 2 + text.count }

  /// The bytes of a nested message of `count` bytes with its tag and length.
  private static func nested(_ count: Int) -> Int { 1 + size(UInt64(count)) + count }

  // MARK: Fields

  private static func tag(_ number: UInt64, _ wire: Wire, _ buffer: inout ByteBuffer) {
    buffer.append(varint: number << 3 | wire.rawValue)
  }

  private static func text(_ number: UInt64, _ text: InlineText, _ buffer: inout ByteBuffer) {
    tag(number, .bytes, &buffer)
    buffer.append(varint: UInt64(text.count))
    unsafe text.withBytes { unsafe buffer.append($0) }
  }

  private static func float(_ number: UInt64, _ value: Double, _ buffer: inout ByteBuffer) {
    tag(number, .four, &buffer)
    let bits = Float(value).bitPattern
    for shift: UInt32 in [0, 8, 16, 24] { buffer.append(UInt8(truncatingIfNeeded: bits >> shift)) }
  }

  private static func message(
    _ number: UInt64, _ count: Int, _ buffer: inout ByteBuffer, _ write: (inout ByteBuffer) -> Void
  ) {
    tag(number, .bytes, &buffer)
    buffer.append(varint: UInt64(count))
    write(&buffer)
  }
}
