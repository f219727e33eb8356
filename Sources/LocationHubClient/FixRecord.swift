// The entries of the driver's queue and their form on disk.
//
//     length u32 · CRC-32 u32 · number u64 · kind u8 · content        (little-endian; the sum is of all behind it)
//
// The content of a fix or a move is the message of the binary subprotocol (protocol/binary.md), ids included: one
// codec, tested by the protocol's vectors. Its numbers are on that page's steps (1e-7 degrees, 0.01 m/s).
import HubBytes
import HubMessages

/// An entry of the driver's queue.
enum FixRecord: Sendable, Equatable {
  case fix(Fix, trip: Identifier?)
  /// A move of a trip, under its permanent id, by which the hub recognises a repetition.
  case move(TripStatusReport, MessageID)

  var isFix: Bool { if case .fix = self { true } else { false } }

  /// When it was measured, or happened, by the phone's clock.
  var time: Timestamp {
    switch self {
    case .fix(let fix, _): fix.timestamp
    case .move(let report, _): report.timestamp
    }
  }
}

/// A record of a segment.
enum StoredRecord: Equatable {
  case entry(UInt64, FixRecord)
  /// All entries up to this number are confirmed, and so many fixes were dropped since the queue was made.
  case mark(UInt64, dropped: UInt64)
}

extension StoredRecord {
  private enum Kind: UInt8 {
    case entry = 1
    case mark = 2
  }

  static let headBytes = 8
  private static let fixMessageID = MessageID(InlineText(0x66, 0))!  // "f": the session gives it a new one

  func bytes() -> [UInt8] {
    var body = ByteBuffer()
    switch self {
    case .entry(let number, let record):
      body.append(littleEndian: number)
      body.append(Kind.entry.rawValue)
      switch record {
      case .fix(let fix, let trip):
        BinaryWriter.write(
          .locationUpdate(LocationUpdate(tripID: trip, fix: fix)), messageID: StoredRecord.fixMessageID,
          timestamp: fix.timestamp, tripBefore: nil, into: &body)
      case .move(let report, let id):
        BinaryWriter.write(
          .tripStatus(report), messageID: id, timestamp: report.timestamp, tripBefore: nil, into: &body)
      }
    case .mark(let number, let dropped):
      body.append(littleEndian: number)
      body.append(Kind.mark.rawValue)
      body.append(littleEndian: dropped)
    }
    let content = body.array()
    var all = ByteBuffer(capacity: content.count + StoredRecord.headBytes)
    all.append(littleEndian: UInt32(content.count))
    all.append(littleEndian: Checksum.of(content[...]))
    all.append(content)
    return all.array()
  }

  /// The record that begins at `offset`, and where the next one does; nil where it is incomplete or damaged.
  static func read(_ bytes: [UInt8], at offset: Int) -> (record: StoredRecord, end: Int)? {
    guard offset + headBytes <= bytes.count else { return nil }
    let length = Int(littleEndian(bytes, offset, 4))
    let start = offset + headBytes
    guard (9...FixQueue.maximumRecordBytes).contains(length), start + length <= bytes.count else { return nil }
    let content = bytes[start..<start + length]
    guard UInt64(Checksum.of(content)) == littleEndian(bytes, offset + 4, 4) else { return nil }
    let number = littleEndian(bytes, start, 8)
    guard number <= FixQueue.maximumNumber else { return nil }
    switch Kind(rawValue: bytes[start + 8]) {
    case .mark:
      guard length == 17 else { return nil }
      return (.mark(number, dropped: littleEndian(bytes, start + 9, 8)), start + length)
    case .entry: return entry(number, content.dropFirst(9)).map { ($0, start + length) }
    case nil: return nil
    }
  }

  /// Whether a record without its end begins at `offset`.
  static func isCutOff(_ bytes: [UInt8], at offset: Int) -> Bool {
    guard offset + headBytes <= bytes.count else { return offset < bytes.count }
    let length = Int(littleEndian(bytes, offset, 4))
    return (9...FixQueue.maximumRecordBytes).contains(length) && offset + headBytes + length > bytes.count
  }

  private static func entry(_ number: UInt64, _ content: ArraySlice<UInt8>) -> StoredRecord? {
    do throws(MessageError) {
      let envelope = try unsafe content.span.withUnsafeBytes { (bytes) throws(MessageError) in
        try unsafe BinaryReader.read(bytes, tripBefore: nil)
      }
      switch envelope.message {
      case .locationUpdate(let update): return .entry(number, .fix(update.fix, trip: update.tripID))
      case .tripStatus(let report): return .entry(number, .move(report, envelope.messageID))
      case .locationBatch, .driverStatus, .tripChange, .offerDecline, .subscribe, .unsubscribe, .ping, .refresh, .query:
        return nil
      }
    } catch {
      // Another version of this library wrote it: its checksum is right.
      return nil
    }
  }
}

private func littleEndian(_ bytes: [UInt8], _ offset: Int, _ count: Int) -> UInt64 {
  bytes[offset..<offset + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
}

/// The head of a segment.
///
///     "LHQ2" · CRC-32 u32 · dropped u64 · length u8 · owner, 64 bytes
///
/// Little-endian; the sum is of all behind it.
/// The owner is in the head, so that damage elsewhere leaves no doubt of it.
struct SegmentHead: Equatable {
  static let count = 81
  private static let magic = Array("LHQ2".utf8)
  private static let ownerBytes = 64

  /// Fixes that were dropped before the segment was begun.
  var dropped: UInt64
  /// The driver of its entries; nil where no hub had identified it.
  var owner: Identifier?

  func bytes() -> [UInt8] {
    let name = owner.map { Array("\($0)".utf8) } ?? []
    var body = ByteBuffer()
    body.append(littleEndian: dropped)
    body.append(UInt8(name.count))
    body.append(name)
    body.append([UInt8](repeating: 0, count: SegmentHead.ownerBytes - name.count))
    let content = body.array()
    var all = ByteBuffer(capacity: SegmentHead.count)
    all.append(SegmentHead.magic)
    all.append(littleEndian: Checksum.of(content[...]))
    all.append(content)
    return all.array()
  }
}

extension SegmentHead {
  /// The head of a segment; nil where it is damaged.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= SegmentHead.count, bytes.starts(with: SegmentHead.magic),
      UInt64(Checksum.of(bytes[8..<SegmentHead.count])) == littleEndian(bytes, 4, 4)
    else { return nil }
    let length = Int(bytes[16])
    let name = String(decoding: bytes[17..<17 + min(length, SegmentHead.ownerBytes)], as: UTF8.self)
    let owner = Identifier(name)
    guard length == 0 || owner != nil else { return nil }
    self.init(dropped: littleEndian(bytes, 8, 8), owner: owner)
  }
}

extension ByteBuffer {
  fileprivate mutating func append(littleEndian value: some FixedWidthInteger & UnsignedInteger) {
    for shift in stride(from: 0, to: value.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: value >> shift)) }
  }
}

/// CRC-32 as in gzip (RFC 1952 §8), bit by bit: a fix has 80 bytes, and a phone measures one a second.
enum Checksum {
  static func of(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    var sum: UInt32 = 0xFFFF_FFFF
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
    }
    return ~sum
  }
}
