import HubBytes
import HubHTTP
import HubTestSupport
import Testing

@Suite struct BodyFramingTests {
  private func framing(_ fields: String, version: String = "1.1") throws(HTTPError) -> BodyFraming? {
    try parse("POST / HTTP/\(version)\r\nHost: x\r\n\(fields)\r\n")?.0.framing
  }

  @Test("The body's length is known from the fields") func framings() throws {
    #expect(try framing("") == BodyFraming.none)
    #expect(try framing("Content-Length: 0\r\n") == BodyFraming.none)
    #expect(try framing("Content-Length:  42 \r\n") == .length(42))
    #expect(try framing("Transfer-Encoding: Chunked\r\n") == .chunked)
    #expect(try framing("Transfer-Encoding: , chunked ,\r\n") == .chunked)
  }

  @Test(
    "A request whose length two servers could see differently is refused",
    arguments: [
      ("Content-Length: 5\r\nContent-Length: 5\r\n", HTTPError.malformedContentLength),
      ("Content-Length: 5, 5\r\n", .malformedContentLength), ("Content-Length: +5\r\n", .malformedContentLength),
      ("Content-Length: -1\r\n", .malformedContentLength), ("Content-Length: 0x5\r\n", .malformedContentLength),
      ("Content-Length:\r\n", .malformedContentLength), ("Content-Length: 5 5\r\n", .malformedContentLength),
      ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", .contentLengthWithTransferEncoding),
      ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", .contentLengthWithTransferEncoding),
      ("Transfer-Encoding: gzip, chunked\r\n", .transferCodingNotImplemented),
      ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", .transferCodingNotImplemented),
      ("Transfer-Encoding: chunked, gzip\r\n", .malformedTransferEncoding),
      ("Transfer-Encoding: chunked, chunked\r\n", .malformedTransferEncoding),
      ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", .malformedTransferEncoding),
      ("Transfer-Encoding: xchunked\r\n", .malformedTransferEncoding),
      ("Transfer-Encoding: \"chunked\"\r\n", .malformedTransferEncoding),
      ("Transfer-Encoding:\r\n", .malformedTransferEncoding),
      ("Transfer-Encoding : chunked\r\n", .malformedField),
    ])
  func smuggling(fields: String, error: HTTPError) {
    #expect(throws: error) { try framing(fields) }
  }

  @Test("Transfer-Encoding in HTTP/1.0 is refused") func oldVersion() {
    #expect(throws: HTTPError.malformedTransferEncoding) {
      try framing("Transfer-Encoding: chunked\r\n", version: "1.0")
    }
  }

  @Test(
    "A connection stays open by the rules of RFC 9112 §9.3",
    arguments: [
      ("1.1", "", true), ("1.1", "Connection: close\r\n", false), ("1.1", "Connection: x, CLOSE\r\n", false),
      ("1.1", "Connection: keep-alive\r\n", true), ("1.0", "", false), ("1.0", "Connection: Keep-Alive\r\n", true),
      ("1.0", "Connection: keep-alive\r\nConnection: close\r\n", false), ("1.1", "Connection: disclose\r\n", true),
    ])
  func keepsAlive(version: String, fields: String, expected: Bool) throws {
    let (head, _) = try #require(try parse("GET / HTTP/\(version)\r\nHost: x\r\n\(fields)\r\n"))
    #expect(head.keepsAlive == expected)
  }

  @Test("A client that waits for 100 Continue is recognised") func expectation() throws {
    let text = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"
    #expect(try #require(try parse(text)).0.expectsContinue)
    let old = text.replacing("HTTP/1.1", with: "HTTP/1.0")
    #expect(try #require(try parse(old)).0.expectsContinue == false)
    let empty = text.replacing("Content-Length: 1", with: "Content-Length: 0")
    #expect(try #require(try parse(empty)).0.expectsContinue == false)
  }

  @Test("Any other expectation is refused, but in HTTP/1.0", arguments: ["x", "100-continue, x", "100-continue=1"])
  func otherExpectations(value: String) throws {
    let text = "POST / HTTP/1.1\r\nHost: x\r\nExpect: \(value)\r\nContent-Length: 1\r\n\r\n"
    #expect(throws: HTTPError.unknownExpectation) { try parse(text) }
    #expect(try parse(text.replacing("HTTP/1.1", with: "HTTP/1.0")) != nil)
  }
}

@Suite struct BodyReaderTests {
  static let chunked = "5\r\nhello\r\n00A;name=\"v\"\r\n, world!!\n\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\nGET"

  @Test("A body of known length ends where it ends") func length() throws {
    let result = try readBody(.length(5), "helloGET")
    #expect(result == ("hello", 5, true))
    #expect(try readBody(.length(5), "hel") == ("hel", 3, false))
  }

  @Test("A chunked body is decoded, whatever the pieces") func chunks() throws {
    for step in 1...Self.chunked.utf8.count {
      #expect(
        try readBody(.chunked, Self.chunked, step: step) == ("hello, world!!\n", Self.chunked.utf8.count - 3, true))
    }
  }

  @Test("A body to the end of the connection is never complete") func untilClose() throws {
    #expect(try readBody(.untilClose, "abc") == ("abc", 3, false))
  }

  @Test(
    "Chunks that servers read differently are refused",
    arguments: [
      ("\r\n", HTTPError.malformedChunk), ("g\r\n", .malformedChunk), ("-1\r\n", .malformedChunk),
      ("0x5\r\n", .malformedChunk),
      ("5\nhello", .malformedChunk), ("5\r\nhelloX", .malformedChunk), ("5\r\nhello\n", .malformedChunk),
      ("5\r\nhello\rX", .malformedChunk), ("5\rX", .malformedChunk), ("5;a\nb\r\n", .malformedChunk),
      (";a\r\n", .malformedChunk),
      ("0000000000000000\r\n", .malformedChunk), ("0\r\nA: b\n\r\n", .bareLineFeed),
      ("0\r\nA: b\rX", .bareCarriageReturn),
      ("0\r\n\rX", .bareCarriageReturn), ("0\r\nA: \u{0}\r\n", .controlByte(0)),
    ])
  func malformed(text: String, error: HTTPError) {
    #expect(throws: error) { try readBody(.chunked, text) }
    #expect(throws: error) { try readBody(.chunked, text, step: 1) }
  }

  @Test("A body over the limit is refused before it is kept") func bodyLimit() throws {
    let limits = HTTPLimits(bodyBytes: 10)
    #expect(throws: HTTPError.bodyTooLarge(limit: 10)) { try readBody(.length(11), "", limits: limits) }
    #expect(try readBody(.length(10), "0123456789", limits: limits).isComplete)
    #expect(throws: HTTPError.bodyTooLarge(limit: 10)) { try readBody(.chunked, "b", limits: limits) }
    #expect(throws: HTTPError.bodyTooLarge(limit: 10)) {
      try readBody(.chunked, "6\r\n012345\r\n5", limits: limits)
    }
    #expect(throws: HTTPError.bodyTooLarge(limit: 10)) { try readBody(.untilClose, "0123456789a", limits: limits) }
    let (head, _) = try #require(
      try parse("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n"))
    #expect(throws: HTTPError.bodyTooLarge(limit: 1 << 20)) { try BodyReader(head.framing) }
  }

  @Test("Chunk extensions and trailers are bounded") func otherLimits() throws {
    let limits = HTTPLimits(headBytes: 20, chunkExtensionBytes: 8)
    #expect(try readBody(.chunked, "1;1234567\r\n", limits: limits).isComplete == false)
    #expect(throws: HTTPError.chunkExtensionsTooLong(limit: 8)) {
      try readBody(.chunked, "1;12\r\na\r\n1;1234567\r\n", limits: limits)
    }
    #expect(throws: HTTPError.trailersTooLarge(limit: 20)) {
      try readBody(.chunked, "0\r\nA: 0123456789\r\nB: 1\r\n\r\n", limits: limits)
    }
  }

  @Test("Random chunked bodies survive random pieces") func randomBodies() throws {
    var random = SplitMix64(seed: 2)
    for _ in 0..<300 {
      var text = ""
      var encoded = ""
      for _ in 0..<Int.random(in: 0..<6, using: &random) {
        let chunk = String(repeating: "x", count: Int.random(in: 1..<40, using: &random))
        text += chunk
        encoded += String(chunk.count, radix: 16, uppercase: Bool.random(using: &random)) + "\r\n\(chunk)\r\n"
      }
      encoded += "0\r\n\r\n"
      let step = Int.random(in: 1...20, using: &random)
      #expect(try readBody(.chunked, encoded, step: step) == (text, encoded.utf8.count, true))
    }
  }
}
