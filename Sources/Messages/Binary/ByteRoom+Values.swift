// Writes the values of binary messages (BinaryInput+Values reads them).
import HubBytes
import HubGeo

extension ByteRoom {
  /// A value of 0 or more in hundredths of its unit: metres, m/s, degrees, or the full battery.
  @inline(__always)
  mutating func append(centi value: Double) { append(varint: FixedPoint.count(value, FixedPoint.hundredths)) }

  @inline(__always)
  mutating func append(heading degrees: Double) {
    append(littleEndian: UInt16(truncatingIfNeeded: FixedPoint.count(degrees, FixedPoint.hundredths) % 36_000))
  }

  @inline(__always)
  mutating func append(seconds value: Double) { append(varint: FixedPoint.count(value, FixedPoint.milliseconds)) }

  /// Milliseconds since 1970 in six bytes.
  @inline(__always)
  mutating func append(_ timestamp: Timestamp) {
    append(lowest: 6, of: UInt64(bitPattern: timestamp.milliseconds))
  }

  /// The lowest 32 bits: see `BinaryServerReader.time`.
  @inline(__always)
  mutating func append(lowestOf timestamp: Timestamp) {
    append(littleEndian: UInt32(truncatingIfNeeded: timestamp.milliseconds))
  }

  @inline(__always)
  mutating func append(_ place: Coordinate) {
    let steps = place.steps
    append(littleEndian: UInt32(truncatingIfNeeded: steps.latitude))
    append(littleEndian: UInt32(truncatingIfNeeded: steps.longitude))
  }

  mutating func append(_ id: Identifier) {
    if let pseudonym = id.pseudonym {
      append(UInt8(0))
      append(littleEndian: pseudonym)
    } else {
      append(lengthAnd: id.text)
    }
  }

  @inline(__always)
  mutating func append(lengthAnd text: InlineText) {
    append(UInt8(truncatingIfNeeded: text.count))
    append(text)
  }

  @inline(__always)
  mutating func append(_ id: MessageID) {
    if let number = id.number {
      append(varint: number &<< 1 | 1)
    } else {
      append(varint: UInt64(id.text.count) &<< 1)
      append(id.text)
    }
  }

  mutating func append(_ box: BoundingBox) {
    for side in [box.west, box.south, box.east, box.north] {
      append(littleEndian: UInt32(truncatingIfNeeded: FixedPoint.signed(side, FixedPoint.degrees)))
    }
  }

  mutating func append(binary cell: GeohashCell) {
    append(UInt8(truncatingIfNeeded: cell.precision))
    append(lowest: (5 * cell.precision + 7) / 8, of: cell.bits)
  }

  /// All 64 bits of a double, for rare values that are not rounded to steps.
  mutating func append(exactly value: Double) { append(littleEndian: value.bitPattern) }
}

/// A byte of flags for optional members: the lowest bit is the first of these, and so on.
@inline(__always)
func flagByte(_ bits: Bool...) -> UInt8 {
  var byte: UInt8 = 0
  for (index, isSet) in bits.enumerated() where isSet { byte |= 1 &<< UInt8(index) }
  return byte
}

extension Coordinate {
  /// In steps of 1e-7°.
  @inline(__always)
  var steps: (latitude: Int64, longitude: Int64) {
    (FixedPoint.signed(latitude, FixedPoint.degrees), FixedPoint.signed(longitude, FixedPoint.degrees))
  }

  /// This position as binary messages have it, to 1e-7°.
  var inSteps: Coordinate {
    let (latitude, longitude) = steps
    return Coordinate(
      latitude: Double(latitude) / FixedPoint.degrees, longitude: Double(longitude) / FixedPoint.degrees) ?? self
  }
}

extension ByteBuffer {
  /// Appends a few values of a less frequent message: an id or a text, and some numbers.
  mutating func append(values body: (inout ByteRoom) -> Void) { withRoom(for: 256, body) }

  /// A length of any size and as many bytes.
  mutating func append(lengthAnd text: String) {
    append(varint: UInt64(text.utf8.count))
    append(utf8: text)
  }

  mutating func append(binary channel: Channel) {
    append(values: { room in
      switch channel {
      case .trip(let id):
        room.append(UInt8(0))
        room.append(id)
      case .driver(let id):
        room.append(UInt8(1))
        room.append(id)
      case .fence(let id):
        room.append(UInt8(2))
        room.append(id)
      case .area(let cell):
        room.append(UInt8(3))
        room.append(binary: cell)
      case .nearby(let place, let radius):
        room.append(UInt8(4))
        room.append(place)
        room.append(exactly: radius)
      case .fleet: room.append(UInt8(5))
      case .trips: room.append(UInt8(6))
      case .raw(let id):
        room.append(UInt8(7))
        room.append(id)
      case .box(let box):
        room.append(UInt8(8))
        room.append(box)
      case .counts(let box):
        room.append(UInt8(9))
        room.append(box)
      case .countsBlock(let block):
        room.append(UInt8(10))
        room.append(binary: block)
      case .stats: room.append(UInt8(11))
      }
    })
  }
}
