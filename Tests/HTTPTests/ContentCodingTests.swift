// Accept-Encoding and If-None-Match.
import HubBytes
import Testing

@testable import HubHTTP

@Suite struct ContentCodingTests {
  private func fields(_ lines: String) throws -> HeaderFields {
    try #require(try parse("GET / HTTP/1.1\r\nHost: h\r\n\(lines)\r\n")).0.fields
  }

  @Test(
    "gzip is taken where it is named with a weight, or * is and gzip is not",
    arguments: [
      ("gzip", true), ("GZIP", true), ("x-gzip", true), ("deflate, gzip;q=0.5", true), ("gzip ; q=1.0", true),
      ("*", true), ("*;q=0.1", true), ("gzip;q=0", false), ("gzip;Q=0.000", false), ("*, gzip;q=0", false),
      ("gzip, *;q=0", true), ("br, deflate", false), ("identity", false), ("", false), ("gzipped", false),
      ("gzip;level=9", true),
    ])
  func accepts(value: String, isTaken: Bool) throws {
    #expect(try fields("Accept-Encoding: \(value)\r\n").acceptGzip == isTaken)
  }

  @Test("without the field nothing is taken, and several fields are one list")
  func several() throws {
    #expect(try !fields("").acceptGzip)
    #expect(try fields("Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n").acceptGzip)
  }

  @Test(
    "a tag is found in If-None-Match, weak or not",
    arguments: [
      ("\"a\"", true), ("\"b\"", true), ("W/\"a\"", true), ("\"x\", \"b\"", true), ("*", true), ("\"c\"", false),
      ("a", false), ("\"A\"", false), ("", false),
    ])
  func tags(value: String, isThere: Bool) throws {
    #expect(try fields("If-None-Match: \(value)\r\n").ifNoneMatch(has: ["\"a\"", "\"b\""]) == isThere)
  }

  @Test("what stands behind the first elements of a long list is ignored")
  func longLists() throws {
    let others = String(repeating: "\"x\",", count: HTTPLimits.listElements - 1)
    for (before, isRead) in [(others, true), (others + "\"x\",", false)] {
      #expect(try fields("Accept-Encoding: \(before)gzip\r\n").acceptGzip == isRead)
      #expect(try fields("If-None-Match: \(before)\"a\"\r\n").ifNoneMatch(has: ["\"a\""]) == isRead)
    }
  }

  @Test("chunks are read back as the body they were made of")
  func chunks() throws {
    var buffer = ByteBuffer()
    Response(.ok).write(into: &buffer, keepsAlive: true, isChunked: true)
    for (text, isLast) in [("abc", false), ("", false), (String(repeating: "x", count: 17), false), ("end", true)] {
      Array(text.utf8).withUnsafeBytes { Response.writeChunk($0, isLast: isLast, into: &buffer) }
    }
    let text = String(decoding: buffer.array(), as: UTF8.self)
    #expect(text.contains("\r\nTransfer-Encoding: chunked\r\n") && !text.contains("Content-Length"))
    #expect(text.hasSuffix("\r\n\r\n3\r\nabc\r\n11\r\n\(String(repeating: "x", count: 17))\r\n3\r\nend\r\n0\r\n\r\n"))
  }

  @Test("Tags are compared by their bytes")
  func tagsByBytes() throws {
    let fields = try fields("If-None-Match: W/\"e\u{301}\"\r\n")
    #expect(fields.ifNoneMatch(has: ["\"e\u{301}\""]) && !fields.ifNoneMatch(has: ["\"\u{E9}\""]))
  }
}
