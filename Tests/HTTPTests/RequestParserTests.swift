import HubHTTP
import HubTestSupport
import Testing

@Suite struct RequestParserTests {
  static let upgrade =
    "GET /v1/ws?role=driver&id=d%2D1 HTTP/1.1\r\nHost: hub.example:8080\r\nUpgrade: websocket\r\n"
    + "Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    + "Sec-WebSocket-Version: 13\r\n\r\n"

  @Test("A request line and fields are read") func wholeHead() throws {
    let (head, consumed) = try #require(try parse(Self.upgrade + "rest"))
    #expect(head.method == .get)
    #expect(head.version == .http11)
    #expect(head.path.elementsEqual("/v1/ws".utf8))
    #expect(!head.path.elementsEqual("/v1/w".utf8))
    #expect(try head.query.string("role") == "driver")
    #expect(try head.query.string("id") == "d-1")
    #expect(head.fields.string("host") == "hub.example:8080")
    #expect(head.fields.contains("connection", token: "upgrade"))
    #expect(head.framing == .none)
    #expect(head.keepsAlive)
    #expect(consumed == Self.upgrade.utf8.count)
  }

  @Test(
    "A head is the same at every split point and byte by byte",
    arguments: [
      upgrade, "\r\n\r\nPOST /v1/locations HTTP/1.1\r\nhost:x\r\ncontent-length:5\r\n\r\nhello",
      "GET / HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\nEmpty:\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\n Folded: y\r\n\r\n",
      "GET / HTTP/1.1\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
    ])
  func everySplit(text: String) {
    let bytes = Array(text.utf8)
    let whole = outcome(bytes, ends: [bytes.count])
    for split in 0...bytes.count {
      #expect(outcome(bytes, ends: [split, bytes.count]) == whole)
    }
    #expect(outcome(bytes, ends: Array(0...bytes.count)) == whole)
  }

  @Test("A parser continues with the next request of the connection") func pipelined() throws {
    var parser = RequestParser()
    let bytes = Array("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
    let (first, consumed) = try #require(try feed(&parser, bytes[...]))
    let (second, _) = try #require(try feed(&parser, bytes[consumed...]))
    #expect(first.path.elementsEqual("/a".utf8))
    #expect(second.path.elementsEqual("/b".utf8))
  }

  @Test("The target may have any form of RFC 9112 §3.2 that fits to its method") func targets() throws {
    let absolute = try #require(try parse("GET HTTP://u.example:80/x?y=1 HTTP/1.1\r\nHost: x\r\n\r\n")).0
    #expect(absolute.path.elementsEqual("/x".utf8))
    #expect(try absolute.query.string("y") == "1")
    let bare = try #require(try parse("GET https://u.example?q HTTP/1.1\r\nHost: x\r\n\r\n")).0
    #expect(bare.path.isEmpty)
    #expect(try bare.query.string("q")?.isEmpty == true)
    #expect(try #require(try parse("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")).0.path.elementsEqual("*".utf8))
    for target in [
      "*", "x", "ftp://a/", "http:/a", "http://", "http:///p", "http://u@h/", "/a#b", "/a\u{80}", "", "/a b",
    ] {
      let error = refusal("GET \(target) HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(error?.status == .badRequest, "\(target)")
    }
  }

  @Test("Path segments are decoded one by one") func segments() throws {
    let head = try #require(try parse("GET /v1/trips/a%2Fb/c HTTP/1.1\r\nHost: x\r\n\r\n")).0
    #expect(try head.pathSegments() == ["v1", "trips", "a/b", "c"])
    let wrong = try #require(try parse("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n")).0
    #expect(throws: HTTPError.malformedPercentEncoding) { try wrong.pathSegments() }
    let long = try #require(try parse("GET \(String(repeating: "/a", count: 3000)) HTTP/1.1\r\nHost: x\r\n\r\n")).0
    let rest = String(repeating: "a/", count: 3000 - HTTPLimits.pathSegments).dropLast()
    #expect(try long.pathSegments() == Array(repeating: "a", count: HTTPLimits.pathSegments) + [String(rest)])
  }

  @Test("A query has a limit of pairs, of which some may be empty") func manyParameters() throws {
    let limit = HTTPLimits.parameters
    for pair in ["", "a"] {
      let most = Array(repeating: pair, count: limit).joined(separator: "&")
      #expect(refusal("GET /?\(most) HTTP/1.1\r\nHost: x\r\n\r\n") == nil)
      let error = refusal("GET /?\(most)& HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(error == .tooManyParameters(limit: limit) && error?.status == .contentTooLarge)
    }
  }

  @Test(
    "A request line that is wrong gets the status for what is wrong",
    arguments: [
      ("GET / HTTP/2.0\r\n\r\n", HTTPError.versionNotSupported(major: 2)),
      ("PRI * HTTP/2.0\r\n\r\n", .versionNotSupported(major: 2)),
      ("GET / HTTP/1.1x\r\n\r\n", .malformedStartLine), ("GET / http/1.1\r\n\r\n", .malformedStartLine),
      ("GET /\r\n\r\n", .malformedStartLine), ("GET\r\n\r\n", .malformedStartLine),
      (" / HTTP/1.1\r\n\r\n", .malformedStartLine), ("G@T / HTTP/1.1\r\n\r\n", .malformedStartLine),
      ("BREW / HTTP/1.1\r\nHost: x\r\n\r\n", .methodNotImplemented),
      ("get / HTTP/1.1\r\nHost: x\r\n\r\n", .methodNotImplemented),
      ("CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n", .methodNotImplemented),
    ])
  func requestLine(text: String, error: HTTPError) {
    #expect(refusal(text) == error)
  }

  @Test("A higher minor version is served as HTTP/1.1") func minorVersion() throws {
    #expect(try #require(try parse("GET / HTTP/1.9\r\nHost: x\r\n\r\n")).0.version == .http11)
  }

  @Test(
    "Field lines that servers read differently are refused",
    arguments: [
      ("A : b", HTTPError.malformedField), (": b", .malformedField), ("A b", .malformedField),
      ("A\u{e9}: b", .malformedField), ("A: b\r\n folded", .obsoleteLineFolding),
      ("A: b\r\n\tfolded", .obsoleteLineFolding),
      ("A: b\u{0}c", .controlByte(0)), ("A: b\u{7f}c", .controlByte(0x7F)), ("A: b\rc", .bareCarriageReturn),
      ("A: b\nC: d", .bareLineFeed), ("A: b\r\r\nC: d", .bareCarriageReturn), ("Host: y", .repeatedHost),
      ("A: b\n", .bareLineFeed),
    ])
  func fieldLines(line: String, error: HTTPError) {
    #expect(refusal("GET / HTTP/1.1\r\nHost: x\r\n\(line)\r\n\r\n") == error)
  }

  @Test(
    "Host is there once and is a host",
    arguments: [
      ("", HTTPError.missingHost), ("Host: a b\r\n", .malformedHost), ("Host: a,b\r\n", .malformedHost),
      ("Host: a@b\r\n", .malformedHost), ("Host: a/b\r\n", .malformedHost), ("Host: a\r\nhOST: a\r\n", .repeatedHost),
    ])
  func host(fields: String, error: HTTPError) {
    #expect(refusal("GET / HTTP/1.1\r\n\(fields)\r\n") == error)
  }

  @Test("HTTP/1.0 needs no Host, and an IPv6 address is a host") func hostsThatAreFine() {
    #expect(refusal("GET / HTTP/1.0\r\n\r\n") == nil)
    #expect(refusal("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n") == nil)
    #expect(refusal("GET / HTTP/1.1\r\nHost:\r\n\r\n") == nil)
  }

  @Test("Each limit is reached with its status") func limits() {
    let limits = HTTPLimits(headBytes: 128, fields: 3, targetBytes: 16)
    let head = "GET / HTTP/1.1\r\nHost: x\r\n"
    #expect(refusal("GET /\(String(repeating: "a", count: 15)) HTTP/1.1\r\nHost: x\r\n\r\n", limits: limits) == nil)
    let long = refusal("GET /\(String(repeating: "a", count: 16)) HTTP/1.1\r\nHost: x\r\n\r\n", limits: limits)
    #expect(long == .targetTooLong(bytes: 17, limit: 16))
    #expect(long?.status == .uriTooLong)
    #expect(refusal(head + "A: 1\r\nB: 2\r\n\r\n", limits: limits) == nil)
    #expect(refusal(head + "A: 1\r\nB: 2\r\nC: 3\r\n\r\n", limits: limits) == .tooManyFields(limit: 3))
    let room = 128 - head.utf8.count - "A: \r\n\r\n".utf8.count
    #expect(refusal(head + "A: \(String(repeating: "a", count: room))\r\n\r\nbody", limits: limits) == nil)
    let over = refusal(head + "A: \(String(repeating: "a", count: room + 1))\r\n\r\n", limits: limits)
    #expect(over == .headTooLarge(limit: 128))
    #expect(over?.status == .headerFieldsTooLarge)
    #expect(refusal(String(repeating: "\r\n", count: 64), limits: limits) == .headTooLarge(limit: 128))
  }

  @Test("What cannot be HTTP is refused at its first bytes") func notHTTP() {
    #expect(refusal("\u{16}\u{3}\u{1}") == .controlByte(0x16))  // a TLS ClientHello on a plain port
  }

  @Test("Random bytes and broken requests never crash and never depend on the splits") func randomBytes() {
    var random = SplitMix64(seed: 1)
    let alphabet = Array("GET / HTTP/1.1\r\n:ax,\t0".utf8)
    for _ in 0..<4_000 {
      var bytes = Array(Self.upgrade.utf8)
      switch UInt8.random(in: 0..<3, using: &random) {
      case 0:
        bytes = (0..<Int.random(in: 0..<60, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      case 1:
        bytes = (0..<Int.random(in: 0..<60, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? 0 }
      default:
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          bytes[Int.random(in: 0..<bytes.count, using: &random)] = alphabet.randomElement(using: &random) ?? 0
        }
      }
      let split = Int.random(in: 0...bytes.count, using: &random)
      #expect(outcome(bytes, ends: [bytes.count]) == outcome(bytes, ends: [split, bytes.count]))
    }
  }
}
