// Channel names, read and written (protocol/subscriptions.md, "Channels").
public import HubBytes
import HubGeo

extension Channel {
  /// Reads a channel's name, strictly: nil where the prefix is unknown, an id is invalid, a geohash has other than 3–8
  /// characters of its alphabet, or a coordinate or radius is out of range. O(length), no allocation for valid lengths.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    if unsafe bytes.elementsEqual("fleet".utf8) {
      self = .fleet
      return
    }
    if unsafe bytes.elementsEqual("trips".utf8) {
      self = .trips
      return
    }
    if unsafe bytes.elementsEqual("stats".utf8) {
      self = .stats
      return
    }
    guard let colon = unsafe bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let prefix = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<colon])
    let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[(colon + 1)...])
    if unsafe prefix.elementsEqual("trip".utf8) {
      guard let id = unsafe Identifier(rest) else { return nil }
      self = .trip(id)
    } else if unsafe prefix.elementsEqual("driver".utf8) {
      guard let id = unsafe Identifier(rest) else { return nil }
      self = .driver(id)
    } else if unsafe prefix.elementsEqual("fence".utf8) {
      guard let id = unsafe Identifier(rest) else { return nil }
      self = .fence(id)
    } else if unsafe prefix.elementsEqual("raw".utf8) {
      guard let id = unsafe Identifier(rest) else { return nil }
      self = .raw(id)
    } else if unsafe prefix.elementsEqual("area".utf8) {
      guard Channel.areaPrecisions.contains(rest.count), let cell = unsafe GeohashCell(utf8: rest) else { return nil }
      self = .area(cell)
    } else if unsafe prefix.elementsEqual("nearby".utf8) {
      guard let nearby = unsafe Channel.nearby(rest) else { return nil }
      self = nearby
    } else if unsafe prefix.elementsEqual("box".utf8) {
      guard let box = unsafe Channel.box(rest) else { return nil }
      self = .box(box)
    } else if unsafe prefix.elementsEqual("counts".utf8) {
      guard let counts = unsafe Channel.counts(rest) else { return nil }
      self = counts
    } else {
      return nil
    }
  }

  /// Describes the correct form of a name that was refused, for the error text.
  static func expectation(of bytes: UnsafeRawBufferPointer) -> StaticString {
    // No prefix is longer. Comparing long Strings may take quadratic time (canonical equivalence).
    guard let colon = unsafe bytes.prefix(16).firstIndex(of: UInt8(ascii: ":")) else { return anyName }
    let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[(colon + 1)...])
    switch unsafe String(decoding: bytes[..<colon], as: UTF8.self) {
    case "trip", "driver", "fence", "raw":
      return "expected an id of 1–64 of A-Z a-z 0-9 . _ - behind the colon"
    case "area":
      guard areaPrecisions.contains(rest.count) else { return "expected area:<geohash> of 3 to 8 characters" }
      return "expected area:<geohash>, of the characters 0-9 and b-z without i, l and o"
    case "nearby":
      guard let (latitude, longitude, radius) = unsafe nearbyNumbers(rest) else {
        return "expected nearby:<latitude>,<longitude>,<radius in metres>, three decimal numbers"
      }
      guard abs(latitude) <= 90 else { return "expected a latitude of -90 to 90 degrees, first" }
      guard abs(longitude) <= 180 else { return "expected a longitude of -180 to 180 degrees, second" }
      return radius > 0 ? anyName : "expected a radius of more than 0 metres, third"
    case "counts":
      return """
        expected counts:<west>,<south>,<east>,<north>: degrees, \
        or counts:<geohash>/<precision>, two more than its characters
        """
    case "box":
      return """
        expected box:<west>,<south>,<east>,<north>: degrees, west and east -180 to 180, \
        south up to north within -90 to 90
        """
    default: return anyName
    }
  }

  /// Describes the correct form of a name that was refused, for the error text.
  public static func expectation(of name: String) -> StaticString {
    var name = name
    return name.withUTF8 { unsafe expectation(of: UnsafeRawBufferPointer($0)) }
  }

  private static let anyName: StaticString = """
    expected trip:<id>, driver:<id>, fence:<id>, area:<geohash>, nearby:<latitude>,<longitude>,<radius>, \
    box: or counts:<west>,<south>,<east>,<north>, fleet, trips, stats or raw:<id>
    """

  /// Nil where the text is no channel's name.
  public init?(_ name: String) {
    var name = name
    guard let made = name.withUTF8({ unsafe Channel(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = made
  }

  /// `<latitude>,<longitude>,<radius m>`.
  private static func nearby(_ bytes: UnsafeRawBufferPointer) -> Channel? {
    guard let (latitude, longitude, radius) = unsafe nearbyNumbers(bytes),
      let place = Coordinate(latitude: latitude, longitude: longitude), radius > 0
    else { return nil }
    return .nearby(place, radiusMeters: radius)
  }

  /// Exactly three decimal numbers separated by commas, else nil. No allocation; stops after the third comma.
  private static func nearbyNumbers(_ bytes: UnsafeRawBufferPointer) -> (Double, Double, Double)? {
    guard let first = unsafe bytes.firstIndex(of: UInt8(ascii: ",")),
      let second = unsafe bytes[(first + 1)...].firstIndex(of: UInt8(ascii: ",")),
      let latitude = unsafe parseDouble(UnsafeRawBufferPointer(rebasing: bytes[..<first])),
      let longitude = unsafe parseDouble(UnsafeRawBufferPointer(rebasing: bytes[(first + 1)..<second])),
      let radius = unsafe parseDouble(UnsafeRawBufferPointer(rebasing: bytes[(second + 1)...]))
    else { return nil }
    return (latitude, longitude, radius)
  }
}

extension Channel {
  /// `<west>,<south>,<east>,<north>`: exactly four decimal numbers. No allocation.
  private static func box(_ bytes: UnsafeRawBufferPointer) -> BoundingBox? {
    var sides = InlineArray<4, Double>(repeating: 0)
    var start = bytes.startIndex
    for index in 0..<4 {
      let comma = unsafe bytes[start...].firstIndex(of: UInt8(ascii: ","))
      guard let end = index < 3 ? comma : bytes.endIndex,
        let side = unsafe parseDouble(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
      else { return nil }
      sides[index] = side
      start = end + 1
    }
    return BoundingBox(south: sides[1], west: sides[0], north: sides[3], east: sides[2])
  }
}

extension Channel {
  /// A box, or `<geohash>/<precision>`.
  private static func counts(_ bytes: UnsafeRawBufferPointer) -> Channel? {
    guard let slash = unsafe bytes.firstIndex(of: UInt8(ascii: "/")) else {
      return unsafe box(bytes).map { .counts($0) }
    }
    let precision = unsafe parseUnsignedInteger(UnsafeRawBufferPointer(rebasing: bytes[(slash + 1)...]))
    guard let cell = unsafe GeohashCell(utf8: UnsafeRawBufferPointer(rebasing: bytes[..<slash])),
      let precision, precision == UInt64(cell.precision + CountsUpdate.depth),
      areaPrecisions.contains(cell.precision + CountsUpdate.depth)
    else { return nil }
    return .countsBlock(cell)
  }
}

extension Channel: CustomStringConvertible {
  /// The name on the wire.
  public var description: String {
    var buffer = ByteBuffer()
    buffer.append(self)
    return unsafe buffer.withBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }
}

extension ByteRoom {
  /// Appends a channel's name, at most `MessageLimits.channelNameBytes`. No character of it needs an escape in JSON.
  @inline(__always)
  mutating func append(_ channel: Channel) {
    switch channel {
    case .trip(let id):
      append("trip:")
      append(id.text)
    case .driver(let id):
      append("driver:")
      append(id.text)
    case .fence(let id):
      append("fence:")
      append(id.text)
    case .area(let cell):
      append("area:")
      append(cell)
    case .nearby(let place, let radius):
      append("nearby:")
      append(fixed: place.latitude, decimals: 7)
      append(UInt8(ascii: ","))
      append(fixed: place.longitude, decimals: 7)
      append(UInt8(ascii: ","))
      append(double: radius)
    case .box(let box):
      append("box:")
      append(sides: box)
    case .counts(let box):
      append("counts:")
      append(sides: box)
    case .countsBlock(let block):
      append("counts:")
      append(block)
      append(UInt8(ascii: "/"))
      append(integer: UInt64(block.precision + CountsUpdate.depth))
    case .fleet: append("fleet")
    case .stats: append("stats")
    case .trips: append("trips")
    case .raw(let id):
      append("raw:")
      append(id.text)
    }
  }
}

extension ByteRoom {
  private mutating func append(sides box: BoundingBox) {
    append(fixed: box.west, decimals: 7)
    append(UInt8(ascii: ","))
    append(fixed: box.south, decimals: 7)
    append(UInt8(ascii: ","))
    append(fixed: box.east, decimals: 7)
    append(UInt8(ascii: ","))
    append(fixed: box.north, decimals: 7)
  }

  /// Appends a geohash.
  mutating func append(_ cell: GeohashCell) {
    for index in 0..<cell.precision { append(cell.character(at: index)) }
  }
}

extension ByteBuffer {
  /// Appends a channel's name. No character of it needs an escape in JSON.
  public mutating func append(_ channel: Channel) {
    withRoom(for: MessageLimits.channelNameBytes) { $0.append(channel) }
  }

  /// Appends the bytes of an inline text.
  @inlinable public mutating func append(_ text: InlineText) {
    withRoom(for: InlineText.capacity) { $0.append(text) }
  }
}
