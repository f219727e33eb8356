// The format on disk (all numbers little-endian).
//
//     segment   20 digits of its first group's number, ".segment"
//       header    36 bytes: magic 8, version 4, CRC-32C 4 (over the other 32), first group 8, created 8 (ms since
//                 1970), seed 4
//       groups    number 8, length 4, CRC-32C 4 (over number, length and payload, begun with the seed), payload
//     snapshot  20 digits of the last group that it covers, ".snapshot"
//       header    36 bytes, likewise, with another magic
//       groups    numbered from 1, whose payloads are the state in parts; an empty one marks its end
//     index     20 digits of a segment's first group, ".index": where which records are (SegmentIndex.swift)
//
// A snapshot ends where a segment ends, so that it covers a segment entirely or not at all.
//
// Group N+1 is never written before the fdatasync of group N has returned. So a broken group without a valid one behind
// it was cut off in writing (a torn tail), and one with a valid group behind it was intact once: that is damage. The
// seed is random, so that no client can send what looks like a group within the one that was cut off.
import HubBytes
import HubSystem

/// A file's first 36 bytes.
struct FileHeader: Equatable {
  static let size = 36
  static let version: UInt32 = 12

  enum Kind: UInt64 {
    /// "LHUBSEG\n", "LHUBSNP\n" and "LHUBID2\n" in memory order.
    case segment = 0x0A47_4553_4255_484C
    case snapshot = 0x0A50_4E53_4255_484C
    case index = 0x0A32_4449_4255_484C

    var suffix: String {
      switch self {
      case .segment: ".segment"
      case .snapshot: ".snapshot"
      case .index: ".index"
      }
    }
  }

  var kind: Kind
  /// The first group of a segment or of an index's segment, or the last group that a snapshot covers.
  var group: UInt64
  /// Milliseconds since 1970.
  var created: Int64
  /// The initial value of the checksums of the file's groups. An index has its segment's seed.
  var seed: UInt32

  /// Why bytes are not a valid header.
  enum Fault: Error, Equatable {
    case short
    case foreign
    case sum
    /// The file has this older or newer version of the format.
    case version(UInt32)
  }

  /// The header's bytes. Only tests pass a `version`.
  func encoded(_ crc: borrowing CRC32C, version: UInt32 = Self.version) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.size)
    bytes.append(littleEndian: kind.rawValue)
    bytes.append(littleEndian: version)
    bytes.append(littleEndian: UInt32(0))
    bytes.append(littleEndian: group)
    bytes.append(littleEndian: created)
    bytes.append(littleEndian: seed)
    bytes.replaceSubrange(12..<16, with: Self.encoded(Self.sum(bytes, crc)))
    return bytes
  }

  private static func encoded(_ number: UInt32) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: number)
    return bytes
  }

  /// The header of a new file.
  init(kind: Kind, group: UInt64, created: Int64) {
    self.kind = kind
    self.group = group
    self.created = created
    seed = .random(in: 0...UInt32.max)
  }

  /// Reads a file's header; nil where it is incomplete, broken or of another version.
  init?(of file: any ReadableJournalFile) throws(SystemError) {
    var bytes: [UInt8] = []
    _ = try file.read(at: 0, count: Self.size, into: &bytes)
    do throws(FileHeader.Fault) {
      self = try unsafe bytes.withBytes { (bytes) throws(Fault) in try unsafe FileHeader(bytes, CRC32C()) }
    } catch {
      return nil
    }
  }

  init(_ bytes: UnsafeRawBufferPointer, _ crc: borrowing CRC32C) throws(Fault) {
    guard bytes.count >= Self.size else { throw .short }
    guard let kind = unsafe Kind(rawValue: bytes.number(at: 0, UInt64.self)) else { throw .foreign }
    let version = unsafe bytes.number(at: 8, UInt32.self)
    var header = unsafe Array(bytes[..<Self.size])
    header.replaceSubrange(8..<12, with: Self.encoded(Self.version))
    let isOwn = unsafe bytes.number(at: 12, UInt32.self) == Self.sum(header, crc)
    // Another version may lay its header out differently. But if the sum fits with our version, that field was damaged.
    guard isOwn || version == Self.version else { throw .version(version) }
    guard isOwn, version == Self.version else { throw .sum }
    self.kind = kind
    group = unsafe bytes.number(at: 16, UInt64.self)
    created = unsafe Int64(bitPattern: bytes.number(at: 24, UInt64.self))
    seed = unsafe bytes.number(at: 32, UInt32.self)
  }

  private static func sum(_ header: [UInt8], _ crc: borrowing CRC32C) -> UInt32 {
    unsafe header.withUnsafeBytes { bytes in
      unsafe crc.extend(
        crc(UnsafeRawBufferPointer(rebasing: bytes[..<12])), UnsafeRawBufferPointer(rebasing: bytes[16..<Self.size]))
    }
  }

  /// The file's name, which sorts by number.
  var name: String { Self.name(kind, group) }

  static func name(_ kind: Kind, _ group: UInt64) -> String {
    let digits = String(group)
    return String(repeating: "0", count: 20 - digits.utf8.count) + digits + kind.suffix
  }

  /// The number in a file's name; nil when the file is not of this kind.
  static func group(ofName name: String, _ kind: Kind) -> UInt64? {
    guard name.hasSuffix(kind.suffix) else { return nil }
    let digits = name.dropLast(kind.suffix.count)
    guard digits.utf8.count == 20, digits.utf8.allSatisfy(\.isDigit) else { return nil }
    return UInt64(digits)
  }
}

/// The header of a group.
struct GroupHeader {
  static let size = 16

  var number: UInt64
  var length: Int
  var sum: UInt32

  init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    number = unsafe bytes.number(at: offset, UInt64.self)
    length = unsafe Int(bytes.number(at: offset + 8, UInt32.self))
    sum = unsafe bytes.number(at: offset + 12, UInt32.self)
  }

  /// Encodes a complete group of a file with this seed.
  static func encode(
    _ number: UInt64, _ payload: UnsafeRawBufferPointer, _ crc: borrowing CRC32C, seed: UInt32,
    into bytes: inout [UInt8]
  ) {
    bytes.append(littleEndian: number)
    bytes.append(littleEndian: UInt32(payload.count))
    let start = bytes.count - 12
    let sum = unsafe bytes.withUnsafeBytes {
      unsafe crc.extend(seed, UnsafeRawBufferPointer(rebasing: $0[start..<start + 12]))
    }
    unsafe bytes.append(littleEndian: crc.extend(sum, payload))
    unsafe bytes.append(contentsOf: payload)
  }

  /// The payload of an intact group at `offset` of a file with this seed; nil where there is none. `maximum` bounds the
  /// length that is accepted.
  static func payload(
    in bytes: UnsafeRawBufferPointer, at offset: Int, maximum: Int, _ crc: borrowing CRC32C, seed: UInt32
  ) -> (header: GroupHeader, payload: UnsafeRawBufferPointer)? {
    guard offset + size <= bytes.count else { return nil }
    let header = unsafe GroupHeader(bytes, at: offset)
    guard header.length <= maximum, header.length <= bytes.count - offset - size else { return nil }
    let payload = unsafe UnsafeRawBufferPointer(rebasing: bytes[(offset + size)..<(offset + size + header.length)])
    let front = unsafe crc.extend(seed, UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + 12]))
    guard unsafe crc.extend(front, payload) == header.sum else { return nil }
    return unsafe (header, payload)
  }
}

extension [UInt8] {
  mutating func append(littleEndian value: some FixedWidthInteger) {
    unsafe Swift.withUnsafeBytes(of: value.littleEndian) { unsafe append(contentsOf: $0) }
  }

  /// The bytes, valid for the call only. (`withUnsafeBytes` loses its body's error type.)
  func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
    let bytes = unsafe span.bytes
    return try unsafe bytes.withUnsafeBytes(body)
  }
}

extension UnsafeRawBufferPointer {
  /// The number at `offset`. Precondition: it is within bounds.
  func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, _: Number.Type) -> Number {
    unsafe Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: Number.self))
  }
}
