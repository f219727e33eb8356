// Reads replies from bytes in pieces of any size.
//
// A state machine that reads each byte once, however small the pieces. What a peer may make it keep is bounded by
// `BackplaneLimits`: a length is checked before anything is allocated for it, and nothing is reserved for bytes that
// have not come.

/// Reads the replies of one connection.
public struct RESPReader: Sendable {
  private enum State {
    /// The first byte of a value comes next.
    case type
    /// Bytes of a line, up to CR.
    case line(UInt8)
    /// The LF behind a line.
    case lineEnd(UInt8)
    /// So many bytes of a bulk string are missing.
    case bulk(Int)
    /// CR and LF behind a bulk string: the next one is expected.
    case bulkEnd(isLast: Bool)
  }

  /// An incomplete array.
  private struct Open {
    var values: [RESPValue]
    var missing: Int
  }

  private let limits: BackplaneLimits
  private var state = State.type
  private var line: [UInt8] = []
  private var bulk: [UInt8] = []
  private var open: [Open] = []
  /// Values and bytes of the present reply so far.
  private var values = 0
  private var bytes = 0

  public init(_ limits: BackplaneLimits = BackplaneLimits()) { self.limits = limits }

  /// Reads the next bytes and appends the replies that end in them. After an error the reader is unusable.
  public mutating func read(
    _ input: UnsafeRawBufferPointer, into replies: inout [RESPValue]
  ) throws(RESPError) {
    var index = 0
    while index < input.count {
      if case .bulk(let missing) = state {
        let length = min(missing, input.count - index)
        unsafe bulk.append(contentsOf: input[index..<index + length])
        try spend(length)
        index += length
        state = missing == length ? .bulkEnd(isLast: false) : .bulk(missing - length)
        continue
      }
      try spend(1)
      try read(unsafe input[index], into: &replies)
      index += 1
    }
  }

  private mutating func spend(_ count: Int) throws(RESPError) {
    bytes += count
    guard bytes <= limits.replyBytes else { throw .replyTooLong }
  }

  private mutating func read(_ byte: UInt8, into replies: inout [RESPValue]) throws(RESPError) {
    switch state {
    case .type:
      guard "+-:$*".utf8.contains(byte) else { throw .type(byte) }
      line.removeAll(keepingCapacity: true)
      state = .line(byte)
    case .line(let type):
      if byte == UInt8(ascii: "\r") {
        state = .lineEnd(type)
      } else {
        guard byte != UInt8(ascii: "\n") else { throw .ending }
        guard line.count < limits.lineBytes else { throw .lineTooLong }
        line.append(byte)
      }
    case .lineEnd(let type):
      guard byte == UInt8(ascii: "\n") else { throw .ending }
      state = .type
      try endLine(type, into: &replies)
    case .bulk: preconditionFailure("bytes of a bulk string are taken in pieces")
    case .bulkEnd(let isLast):
      guard byte == UInt8(ascii: isLast ? "\n" : "\r") else { throw .ending }
      guard isLast else {
        state = .bulkEnd(isLast: true)
        return
      }
      state = .type
      let value = bulk
      bulk = []
      try finish(.bulk(value), into: &replies)
    }
  }

  private mutating func endLine(_ type: UInt8, into replies: inout [RESPValue]) throws(RESPError) {
    switch Unicode.Scalar(type) {
    case "+": try finish(.status(String(decoding: line, as: UTF8.self)), into: &replies)
    case "-": try finish(.error(String(decoding: line, as: UTF8.self)), into: &replies)
    case ":": try finish(.number(try number()), into: &replies)
    case "$":
      let length = try number()
      if length == -1 { return try finish(.null, into: &replies) }
      guard length >= 0 else { throw .length(length) }
      guard length <= limits.bulkBytes else { throw .bulkTooLong(length) }
      state = length == 0 ? .bulkEnd(isLast: false) : .bulk(Int(length))
    case _:
      let length = try number()
      if length == -1 { return try finish(.null, into: &replies) }
      guard length >= 0 else { throw .length(length) }
      guard length <= limits.valuesPerReply else { throw .tooManyValues }
      if length == 0 { return try finish(.array([]), into: &replies) }
      guard open.count < limits.replyDepth else { throw .tooDeep }
      open.append(Open(values: [], missing: Int(length)))
    }
  }

  /// An integer: an optional sign and digits.
  private func number() throws(RESPError) -> Int64 {
    let text = String(decoding: line, as: UTF8.self)
    guard let value = Int64(text) else { throw .number(text) }
    return value
  }

  /// A value is complete, and perhaps the arrays that it ends.
  private mutating func finish(_ value: RESPValue, into replies: inout [RESPValue]) throws(RESPError) {
    var value = value
    while true {
      values += 1
      guard values <= limits.valuesPerReply else { throw .tooManyValues }
      guard let last = open.indices.last else { break }
      open[last].values.append(value)
      open[last].missing -= 1
      if open[last].missing > 0 { return }
      value = .array(open.removeLast().values)
    }
    replies.append(value)
    values = 0
    bytes = 0
  }
}
