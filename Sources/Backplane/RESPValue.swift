// Replies of Redis and Valkey: the Redis serialization protocol, version 2 (redis.io/docs/latest/develop/reference/
// protocol-spec), which every version of both engines supports; nothing of version 3 is needed.
import HubBytes

/// One reply of the engine.
public enum RESPValue: Sendable, Equatable {
  /// A status, such as `OK`.
  case status(String)
  /// An error, such as `NOSCRIPT No matching script`.
  case error(String)
  case number(Int64)
  case bulk([UInt8])
  /// A null bulk string or array.
  case null
  indirect case array([RESPValue])

  /// The bytes of a bulk string or a status.
  public var bytes: [UInt8]? {
    switch self {
    case .bulk(let bytes): bytes
    case .status(let text): Array(text.utf8)
    case .error, .number, .null, .array: nil
    }
  }

  /// The text of a bulk string or a status; bytes that are no UTF-8 are replaced.
  public var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

  /// A number, also from text.
  public var integer: Int64? {
    switch self {
    case .number(let value): value
    case .bulk, .status: text.flatMap { Int64($0) }
    case .error, .null, .array: nil
    }
  }
}

/// Why bytes are no reply. The connection is unusable then, since the next reply cannot be found.
public enum RESPError: Error, Equatable, Sendable {
  /// No type begins with this byte.
  case type(UInt8)
  /// This text is no integer, and stood where one belongs.
  case number(String)
  /// A line or a bulk string does not end with CR and LF.
  case ending
  /// A length below −1.
  case length(Int64)
  /// A limit of `BackplaneLimits` is passed.
  case lineTooLong
  case bulkTooLong(Int64)
  case tooManyValues, replyTooLong, tooDeep
}

/// Commands as bytes: an array of bulk strings.
enum RESPWriter {
  static func write(_ words: [[UInt8]], into buffer: inout ByteBuffer) {
    write(length: words.count, UInt8(ascii: "*"), &buffer)
    for word in words {
      write(length: word.count, UInt8(ascii: "$"), &buffer)
      buffer.append(word)
      buffer.append("\r\n")
    }
  }

  /// An upper bound of the bytes that `write` appends.
  static func size(of words: [[UInt8]]) -> Int { words.reduce(24) { $0 + $1.count + 24 } }

  private static func write(length: Int, _ type: UInt8, _ buffer: inout ByteBuffer) {
    buffer.append(type)
    buffer.append(utf8: "\(length)")
    buffer.append("\r\n")
  }
}
