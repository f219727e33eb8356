// Frames from hub to hub (protocol/cluster.md).
//
//     version 1 · lane 1 · sender's incarnation 8 · receiver's incarnation 8 · number 8 · sender's clock 8
//     sender's name (length 1) · receiver's name (length 1) · records · MAC 16
//     record: kind 1 · length (varint) · that many bytes
//
// Sizes are in bytes, numbers little-endian. A frame's number counts those of one sender, receiver and lane from 1, so
// that the receiver notices what is missing, and what it has seen before. The MAC is over everything before it.
import HubBackplane
import HubBytes

/// The head of every frame.
struct FrameHead: Equatable {
  static let version: UInt8 = 2
  /// Bytes of a name.
  static let nameBytes = 1...32

  var lane: Lane
  var from: String
  var fromIncarnation: UInt64
  var to: String
  var toIncarnation: UInt64
  var number: UInt64
  /// Milliseconds since 1970.
  var clock: Int64
}

/// Why a frame, or a record of it, is refused.
public enum ClusterFrameError: Error, Sendable, Hashable, CustomStringConvertible {
  case short
  case version(UInt8)
  case lane, name, mac
  case record(UInt8)
  case message
  /// It is for, or from, an earlier process of that name.
  case incarnation
  /// It, or a later one, came before.
  case number
  /// It is of a hub that this one has no room for.
  case peers

  /// What refused frames are counted by.
  public enum Kind: UInt8, Sendable, CaseIterable {
    case short, version, lane, name, mac, record, message, incarnation, number, peers
  }

  /// The kind under which it is counted.
  public var kind: Kind {
    switch self {
    case .short: .short
    case .version: .version
    case .lane: .lane
    case .name: .name
    case .mac: .mac
    case .record: .record
    case .message: .message
    case .incarnation: .incarnation
    case .number: .number
    case .peers: .peers
    }
  }

  /// Why the frame is refused, in words for operators.
  public var description: String {
    switch self {
    case .short: "it ends too soon, or is too long"
    case .version(let version): "its version is \(version); this hub's is \(FrameHead.version)"
    case .lane: "it is of another lane"
    case .name: "it is for another hub"
    case .mac: "wrong MAC: another key, or not from this cluster"
    case .record(let kind): "a record of kind \(kind) is not known"
    case .message: "a record cannot be read"
    case .incarnation: "it is from or for an earlier process of that name"
    case .number: "its number came before"
    case .peers: "there is no room for a further hub"
    }
  }
}

/// The kind of a record. The numbers are on the wire.
enum ClusterRecordKind: UInt8, CaseIterable {
  case alive = 1
  case subscribe = 2
  case resume = 3
  case released = 4
  /// The sender has missed something: its interest begins anew, and follows.
  case restart = 5
  /// The sender has missed something: the receiver's interest is to begin anew.
  case lost = 6
  case subscribed = 7
  case refused = 8
  case notHere = 9
  case publication = 10
  case ended = 11
  case shareEnded = 12
  case claimed = 13
  case moved = 14
  case replaced = 15
  case begun = 16
  case tripRequest = 17
  case replied = 18
  case question = 19
  case found = 20
  case revoked = 21
  case watch = 22
  case unwatch = 23
  case area = 24
  case list = 25
  case listed = 26
  case figuresWanted = 27
  case figures = 28
  case familyQuestion = 29
  case families = 30
  case tokenKey = 31
  case answered = 32
  /// Nodes of the bus that the sender does not hear.
  case unheard = 33

  /// Records of one client's question or its answer. If one is lost, it is asked again, or answered without this hub.
  static let ofClients: Set<ClusterRecordKind> = [
    .subscribe, .tripRequest, .replied, .answered, .question, .found, .list, .listed, .familyQuestion, .families,
  ]
}

/// A record as it lies in a frame.
struct FrameRecord: Equatable {
  var kind: ClusterRecordKind
  var body: ArraySlice<UInt8>
}

enum Frame {
  /// A frame of records that are written already.
  static func make(_ head: FrameHead, _ records: [UInt8], _ keys: FrameKeys) -> [UInt8] {
    var bytes = ByteBuffer(capacity: records.count + 128)
    bytes.append(FrameHead.version)
    bytes.append(head.lane.rawValue)
    for number in [head.fromIncarnation, head.toIncarnation, head.number, UInt64(bitPattern: head.clock)] {
      bytes.append(littleEndian: number)
    }
    for name in [head.from, head.to] {
      bytes.append(UInt8(name.utf8.count))
      bytes.append(utf8: name)
    }
    bytes.append(records)
    var frame = bytes.array()
    frame += keys.code(of: frame[...])
    return frame
  }

  /// The sender that a frame names, whether or not its MAC is valid, for the log; nil where it names none.
  static func claimedSender(_ bytes: [UInt8]) -> String? {
    var reader = ClusterFrameReader(bytes.prefix(34 + 1 + FrameHead.nameBytes.upperBound))
    do throws(ClusterFrameError) {
      _ = try reader.take(34)
      let name = try reader.name()
      return ClusterIdentity.isName(name) ? name : nil
    } catch { return nil }
  }

  /// Reads a frame whose MAC is valid. Its records are read one by one.
  static func read(_ bytes: [UInt8], _ keys: FrameKeys) throws(ClusterFrameError) -> (FrameHead, ClusterFrameReader) {
    guard bytes.count > FrameKeys.macBytes else { throw .short }
    let end = bytes.count - FrameKeys.macBytes
    guard keys.verifies(bytes[end...], of: bytes[..<end]) else { throw .mac }
    var reader = ClusterFrameReader(bytes[..<end])
    let version = try reader.byte()
    guard version == FrameHead.version else { throw .version(version) }
    guard let lane = Lane(rawValue: try reader.byte()) else { throw .lane }
    let (from, to, number) = (try reader.word(), try reader.word(), try reader.word())
    let clock = Int64(bitPattern: try reader.word())
    let head = FrameHead(
      lane: lane, from: try reader.name(), fromIncarnation: from, to: try reader.name(), toIncarnation: to,
      number: number, clock: clock)
    return (head, reader)
  }
}

/// Reads what is in a frame, front to back.
struct ClusterFrameReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func take(_ count: Int) throws(ClusterFrameError) -> ArraySlice<UInt8> {
    guard count >= 0, count <= rest.count else { throw .short }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  mutating func byte() throws(ClusterFrameError) -> UInt8 {
    guard let byte = rest.popFirst() else { throw .short }
    return byte
  }

  mutating func word() throws(ClusterFrameError) -> UInt64 {
    try take(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// A number of up to 64 bits.
  mutating func varint() throws(ClusterFrameError) -> UInt64 {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), through: 63, by: 7) {
      let byte = try byte()
      guard shift < 63 || byte <= 1 else { break }
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
    }
    throw .short
  }

  mutating func name() throws(ClusterFrameError) -> String {
    let count = Int(try byte())
    guard FrameHead.nameBytes.contains(count), let name = String(validating: try take(count), as: UTF8.self) else {
      throw .name
    }
    return name
  }

  /// Bytes with their length before them.
  mutating func run() throws(ClusterFrameError) -> ArraySlice<UInt8> {
    guard let count = Int(exactly: try varint()) else { throw .short }
    return try take(count)
  }

  /// The next record. One of an unknown kind is refused, and passed.
  mutating func record() throws(ClusterFrameError) -> FrameRecord {
    let (number, body) = (try byte(), try run())
    guard let kind = ClusterRecordKind(rawValue: number) else { throw .record(number) }
    return FrameRecord(kind: kind, body: body)
  }
}

extension ByteBuffer {
  /// A length and what `body` writes.
  mutating func append(run body: (inout ByteBuffer) -> Void) {
    let start = count
    append(0)
    body(&self)
    let length = count - start - 1
    guard length >= 0x80 else { return unsafe withMutableBytes { unsafe $0[start] = UInt8(length) } }
    var head = ByteBuffer()
    head.append(varint: UInt64(length))
    append([UInt8](repeating: 0, count: head.count - 1))
    unsafe withMutableBytes { bytes in
      let run = unsafe UnsafeRawBufferPointer(rebasing: bytes[start + 1..<start + 1 + length])
      unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[(start + head.count)...]).copyMemory(from: run)
      unsafe head.withBytes { unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[start...]).copyMemory(from: $0) }
    }
  }

  mutating func append(_ kind: ClusterRecordKind, _ body: (inout ByteBuffer) -> Void = { _ in }) {
    append(kind.rawValue)
    append(run: body)
  }
}
