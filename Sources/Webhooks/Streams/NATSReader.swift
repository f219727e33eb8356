// Reads a NATS server's bytes (https://docs.nats.io/reference/reference-protocols/nats-protocol) in pieces of any size.
// Each byte is read once, and a length is checked before anything is kept for it.
import HubBytes

/// An operation of a server.
public enum NATSOperation: Sendable, Equatable {
  /// Its options, in JSON.
  case info([UInt8])
  /// `status` is that of the headers' first line, such as 503.
  case message(subject: String, status: Int?, payload: [UInt8])
  case ping, pong, ok
  case error(String)

  /// A server begins with its INFO, or with why there is none.
  var mayComeFirst: Bool {
    switch self {
    case .info, .error: true
    case .message, .ping, .pong, .ok: false
    }
  }
}

/// Why bytes are no NATS.
public enum NATSError: Error, Sendable, Equatable {
  case lineTooLong
  case payloadTooLong
  case unknown(String)
  case malformed(String)
}

/// A parser of a NATS server's bytes, which keeps the incomplete rest between calls.
public struct NATSReader: Sendable {
  private enum State {
    case line
    case payload(subject: String, headerBytes: Int, bytes: Int)
  }

  private var state = State.line
  private var bytes: [UInt8] = []

  public init() {}

  /// Reads the next bytes and appends the operations that end in them. After an error the reader is unusable.
  public mutating func read(
    _ input: UnsafeRawBufferPointer, into operations: inout [NATSOperation]
  ) throws(NATSError) {
    var index = 0
    while index < input.count {
      switch state {
      case .line:
        let byte = unsafe input[index]
        index += 1
        if byte != UInt8(ascii: "\n") {
          guard bytes.count < Self.lineBytes else { throw .lineTooLong }
          bytes.append(byte)
        } else {
          guard bytes.popLast() == UInt8(ascii: "\r") else { throw .malformed("a line without CR") }
          try readLine(&operations)
        }
      case .payload(let subject, let headerBytes, let length):
        let wanted = min(length + 2 - bytes.count, input.count - index)
        unsafe bytes.append(contentsOf: input[index..<index + wanted])
        index += wanted
        guard bytes.count == length + 2 else { return }
        guard bytes.popLast() == UInt8(ascii: "\n"), bytes.popLast() == UInt8(ascii: "\r") else {
          throw .malformed("a payload without CR and LF")
        }
        operations.append(
          .message(
            subject: subject, status: headerBytes > 0 ? Self.status(bytes[..<headerBytes]) : nil,
            payload: Array(bytes[headerBytes...])))
        state = .line
        bytes.removeAll(keepingCapacity: true)
      }
    }
  }

  private mutating func readLine(_ operations: inout [NATSOperation]) throws(NATSError) {
    let text = String(decoding: bytes, as: UTF8.self)
    defer { bytes.removeAll(keepingCapacity: true) }
    let end = text.firstIndex { $0 == " " || $0 == "\t" } ?? text.endIndex
    let rest = text[end...].drop { $0 == " " || $0 == "\t" }
    switch text[..<end].uppercased() {
    case "INFO": operations.append(.info(Array(rest.utf8)))
    case "PING": operations.append(.ping)
    case "PONG": operations.append(.pong)
    case "+OK": operations.append(.ok)
    case "-ERR": operations.append(.error(rest.filter { $0 != "'" }))
    case "MSG": try readMessage(rest, hasHeaders: false)
    case "HMSG": try readMessage(rest, hasHeaders: true)
    case let word: throw .unknown(String(word.prefix(32)))
    }
  }

  /// `SUBJECT SID [REPLY] [HEADER-BYTES] BYTES`
  private mutating func readMessage(_ text: Substring, hasHeaders: Bool) throws(NATSError) {
    let words = text.split { $0 == " " || $0 == "\t" }
    let least = hasHeaders ? 4 : 3
    guard least...least + 1 ~= words.count, let length = Self.length(words[words.count - 1]),
      let headers = hasHeaders ? Self.length(words[words.count - 2]) : 0, headers <= length
    else { throw .malformed("MSG \(text.prefix(64))") }
    guard length <= Self.payloadBytes else { throw .payloadTooLong }
    state = .payload(subject: String(words[0]), headerBytes: headers, bytes: length)
  }

  private static func length(_ word: Substring) -> Int? {
    word.utf8.count <= 9 && word.utf8.allSatisfy(\.isDigit) ? Int(word) : nil
  }

  /// `NATS/1.0 503 …`; nil where there is no number.
  private static func status(_ headers: ArraySlice<UInt8>) -> Int? {
    let line = String(decoding: headers.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    let words = line.split(separator: " ")
    return words.count > 1 && words[0] == "NATS/1.0" && words[1].utf8.count == 3 ? Int(words[1]) : nil
  }
}
