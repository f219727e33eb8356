import HubBytes
import HubHTTP
import Testing

@Suite struct ResponseTests {
  private func written(_ response: Response, keepsAlive: Bool = true, toHead: Bool = false) -> String {
    var buffer = ByteBuffer()
    response.write(into: &buffer, keepsAlive: keepsAlive, toHead: toHead)
    return String(decoding: buffer.array(), as: UTF8.self)
  }

  private func read(_ text: String) throws(HTTPError) -> (ResponseHead, Int)? {
    var parser = ResponseParser()
    let bytes = Array(text.utf8)
    let result = try bytes.withUnsafeBufferPointer { (raw) throws(HTTPError) in
      try parser.parse(UnsafeRawBufferPointer(raw))
    }
    switch result {
    case .incomplete: return nil
    case .response(let head, let consumed): return (head, consumed)
    }
  }

  @Test("A response has its length, its type and whether the connection stays open") func plain() {
    let response = Response(.unauthorized, contentType: "application/json", body: Array("{}".utf8))
    #expect(
      written(response, keepsAlive: false)
        == "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        + "Connection: close\r\n\r\n{}"
    )
  }

  @Test("The response to HEAD has the length and not the body") func toHead() {
    #expect(
      written(Response(.ok, body: [1, 2, 3]), toHead: true)
        == "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n")
  }

  @Test("204 has no length") func noContent() {
    #expect(written(Response(.noContent)) == "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n")
  }

  @Test("A value cannot begin a line of its own") func injection() {
    let response = Response(.ok, fields: [OutgoingField("X", "a\r\nEvil: 1\u{0}")])
    #expect(written(response).contains("\r\nX: a  Evil: 1 \r\n"))
  }

  @Test("Retry-After is in whole seconds") func retryAfter() {
    #expect(written(Response(.serviceUnavailable).retryAfter(seconds: 30)).contains("\r\nRetry-After: 30\r\n"))
  }

  @Test("The answer to an error names it and closes") func refusing() {
    #expect(written(Response(refusing: .repeatedHost), keepsAlive: false).hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
  }

  @Test("What is written can be read, at every split") func roundTrip() throws {
    let text = written(Response(.conflict, contentType: "text/plain", body: Array("busy".utf8)).retryAfter(seconds: 30))
    let bytes = Array(text.utf8)
    for split in 0...bytes.count {
      var parser = ResponseParser()
      var result = try bytes[..<split].withUnsafeBufferPointer { (raw) throws(HTTPError) in
        try parser.parse(UnsafeRawBufferPointer(raw))
      }
      if case .incomplete = result {
        result = try bytes.withUnsafeBufferPointer { (raw) throws(HTTPError) in
          try parser.parse(UnsafeRawBufferPointer(raw))
        }
      }
      guard case .response(let head, let consumed) = result else {
        Issue.record("incomplete at \(split)")
        continue
      }
      #expect(head.status == .conflict)
      #expect(head.framing == .length(4))
      #expect(head.fields.string("retry-after") == "30")
      #expect(consumed == bytes.count - 4)
    }
  }

  @Test("Status lines are read as RFC 9112 §4 has them") func statusLines() throws {
    #expect(try read("HTTP/1.1 101\r\n\r\n")?.0.status == .switchingProtocols)
    #expect(try read("HTTP/1.0 200 \r\n\r\n")?.0.framing == .untilClose)
    #expect(try read("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n")?.0.framing == BodyFraming.none)
    #expect(try read("HTTP/1.1 299 Ödd reason\r\n\r\n")?.0.status.code == 299)
    for line in [
      "HTTP/1.1 20 OK", "HTTP/1.1 2000", "HTTP/1.1  200", "HTTP/1.1 2x0 OK", "HTTP/1.1 099 OK", "ICY 200 OK...",
    ] {
      #expect(throws: HTTPError.malformedStartLine, "\(line)") { try read(line + "\r\n\r\n") }
    }
    #expect(throws: HTTPError.versionNotSupported(major: 2)) { try read("HTTP/2.0 200 OK\r\n\r\n") }
  }
}
