// Ways to feed the parsers: at once, cut in two, byte by byte; and seeded randomness.

import HubBytes
import HubHTTP

func parse(_ text: String, limits: HTTPLimits = HTTPLimits()) throws(HTTPError) -> (RequestHead, Int)? {
  try parse(Array(text.utf8), limits: limits)
}

/// A fresh parser given all bytes at once.
func parse(_ bytes: [UInt8], limits: HTTPLimits = HTTPLimits()) throws(HTTPError) -> (RequestHead, Int)? {
  var parser = RequestParser()
  return try feed(&parser, bytes[...], limits)
}

func feed(
  _ parser: inout RequestParser, _ bytes: ArraySlice<UInt8>, _ limits: HTTPLimits = HTTPLimits()
) throws(HTTPError) -> (RequestHead, Int)? {
  let result = try bytes.withUnsafeBufferPointer { (raw) throws(HTTPError) in
    try parser.parse(UnsafeRawBufferPointer(raw), limits: limits)
  }
  switch result {
  case .incomplete: return nil
  case .request(let head, let consumed): return (head, consumed)
  }
}

/// What a parser makes of the bytes when it sees each prefix that `ends` name, in order.
func outcome(_ bytes: [UInt8], ends: [Int], limits: HTTPLimits = HTTPLimits()) -> String {
  var parser = RequestParser()
  do {
    for end in ends {
      if let (head, consumed) = try feed(&parser, bytes[..<end], limits) { return describe(head, consumed) }
    }
    return "incomplete"
  } catch {
    return "\(error)"
  }
}

func describe(_ head: RequestHead, _ consumed: Int) -> String {
  let path = String(decoding: head.path, as: UTF8.self)
  let query = String(decoding: head.query.bytes, as: UTF8.self)
  return "\(head.method) \(path)?\(query) \(head.version) \(head.fields.count) \(head.framing) \(consumed)"
}

/// The error that a request leads to.
func refusal(_ text: String, limits: HTTPLimits = HTTPLimits()) -> HTTPError? {
  do {
    _ = try parse(text, limits: limits)
    return nil
  } catch {
    return error
  }
}

/// A body read in pieces of at most `step` bytes: its text, the bytes used, whether it was complete.
func readBody(
  _ framing: BodyFraming, _ text: String, step: Int = .max, limits: HTTPLimits = HTTPLimits()
) throws(HTTPError) -> (text: String, consumed: Int, isComplete: Bool) {
  var reader = try BodyReader(framing, limits: limits)
  var body = ByteBuffer()
  let bytes = Array(text.utf8)
  var position = 0
  while position < bytes.count, !reader.isComplete {
    let end = min(bytes.count, position.addingReportingOverflow(step).overflow ? .max : position + step)
    let progress = try bytes[position..<end].withUnsafeBufferPointer { (raw) throws(HTTPError) in
      try reader.read(UnsafeRawBufferPointer(raw), into: &body)
    }
    position += progress.consumed
  }
  return (String(decoding: body.array(), as: UTF8.self), position, reader.isComplete)
}
