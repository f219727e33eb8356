// modules: HubBytes HubHTTP
// libFuzzer entry for request and response heads, bodies and queries (run.sh in this folder builds and runs it).
//
// Input: one byte of flags (bit 0: response, bits 2–4: how many cuts), the cuts, then what the peer sends. Checked
// beyond not crashing: cuts change neither the head, nor the error, nor the body.

import HubBytes
import HubHTTP

private let limits = HTTPLimits(headBytes: 512, fields: 8, targetBytes: 64, bodyBytes: 256, chunkExtensionBytes: 16)

private struct Trace: Equatable {
  var head = ""
  var body: [UInt8] = []
  var end = 0
  var error: HTTPError?
}

/// What is decoded from the target; an error is an outcome like any other.
private func describe(_ head: RequestHead) -> String {
  do throws(HTTPError) {
    return "\(try head.query.items()) \(try head.pathSegments())"
  } catch {
    return "\(error)"
  }
}

private func parseRequest(_ data: ArraySlice<UInt8>, _ ends: [Int]) throws(HTTPError) -> (String, BodyFraming, Int)? {
  var parser = RequestParser()
  for end in ends {
    let result = try withCopy(data[..<end]) { (raw) throws(HTTPError) in try parser.parse(raw, limits: limits) }
    guard case .request(let head, let consumed) = result else { continue }
    var text = "\(head.method) \(head.version) \(Array(head.path)) \(head.keepsAlive) \(head.expectsContinue)"
    text += " \(head.fields.count) \(head.fields.elements("connection").count)"
    text += describe(head)
    return (text, head.framing, consumed)
  }
  return nil
}

private func parseResponse(_ data: ArraySlice<UInt8>, _ ends: [Int]) throws(HTTPError) -> (String, BodyFraming, Int)? {
  var parser = ResponseParser()
  for end in ends {
    let result = try withCopy(data[..<end]) { (raw) throws(HTTPError) in try parser.parse(raw, limits: limits) }
    guard case .response(let head, let consumed) = result else { continue }
    return ("\(head.version) \(head.status) \(head.fields.count)", head.framing, consumed)
  }
  return nil
}

private func trace(_ data: ArraySlice<UInt8>, ends: [Int], isResponse: Bool) -> Trace {
  var trace = Trace()
  do throws(HTTPError) {
    guard let (head, framing, consumed) = try isResponse ? parseResponse(data, ends) : parseRequest(data, ends) else {
      return trace
    }
    trace.head = head
    var position = data.startIndex + consumed
    var reader = try BodyReader(framing, limits: limits)
    var body = ByteBuffer()
    for end in ends where end > position {
      let progress = try withCopy(data[position..<end]) { (raw) throws(HTTPError) in
        try reader.read(raw, into: &body)
      }
      position += progress.consumed
      precondition(position == end || progress.isComplete)
      if progress.isComplete { break }
    }
    precondition(body.count <= limits.bodyBytes)
    trace.body = body.array()
    trace.end = position
  } catch {
    trace.error = error
  }
  return trace
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let input = Array(UnsafeBufferPointer(start: start, count: count))
  guard let flags = input.first else { return 0 }
  let cutCount = min(Int(flags >> 2 & 7), count - 1)
  let data = input[(1 + cutCount)...]
  let cuts = input[1..<(1 + cutCount)].map { data.startIndex + Int($0) % (data.count + 1) }.sorted()
  if let (user, password) = BasicCredentials.read(data) {
    precondition(!user.contains(UInt8(ascii: ":")))
    let text = Base64.padded.encode(user + [UInt8(ascii: ":")] + password)
    precondition(BasicCredentials.read(text).map { $0 == (user, password) } == true, "what was written is not read")
  }
  let whole = trace(data, ends: [data.endIndex], isResponse: flags & 1 != 0)
  let cut = trace(data, ends: cuts + [data.endIndex], isResponse: flags & 1 != 0)
  precondition(whole == cut, "cuts change nothing")
  return 0
}
