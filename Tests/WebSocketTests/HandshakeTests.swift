import HubBytes
import HubHTTP
import HubTestSupport
import HubWebSocket
import Testing

@Suite struct HandshakeTests {
  static let protocols: [StaticString] = ["locationhub.v1.json", "locationhub.v1.binary"]
  /// RFC 6455 §1.3.
  static let fields = [
    "Host: server.example.com", "Upgrade: websocket", "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
  ]

  private func request(_ fields: [String], line: String = "GET /chat HTTP/1.1") throws -> RequestHead {
    var parser = RequestParser()
    let bytes = Array(([line] + fields + ["", ""]).joined(separator: "\r\n").utf8)
    guard case .request(let head, _) = try bytes.withUnsafeBytes({ try parser.parse($0) }) else {
      throw HTTPError.malformedStartLine
    }
    return head
  }

  private func response(_ text: String) throws -> ResponseHead {
    var parser = ResponseParser()
    guard case .response(let head, _) = try Array(text.utf8).withUnsafeBytes({ try parser.parse($0) }) else {
      throw HTTPError.malformedStartLine
    }
    return head
  }

  private func refusal(_ fields: [String], line: String = "GET /chat HTTP/1.1") throws -> UpgradeRefusal? {
    let head = try request(fields, line: line)
    do throws(UpgradeRefusal) {
      _ = try ServerHandshake(head, subprotocols: Self.protocols)
      return nil
    } catch { return error }
  }

  private func replacing(_ name: String, with line: String?) -> [String] {
    Self.fields.filter { !$0.hasPrefix(name + ":") } + (line.map { [$0] } ?? [])
  }

  @Test("The example of RFC 6455 §1.3 is accepted") func example() throws {
    let handshake = try ServerHandshake(
      try request(Self.fields + ["Sec-WebSocket-Protocol: chat, locationhub.v1.binary, locationhub.v1.json"]),
      subprotocols: Self.protocols)
    #expect(handshake.subprotocol == 1)
    var buffer = ByteBuffer()
    handshake.write(into: &buffer, subprotocols: Self.protocols)
    #expect(
      String(decoding: buffer.array(), as: UTF8.self)
        == "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        + "Sec-WebSocket-Protocol: locationhub.v1.binary\r\n\r\n")
  }

  @Test("Tokens match in any case and inside lists") func tokens() throws {
    let fields = [
      "host: x", "UPGRADE: foo, WebSocket", "connection: keep-alive, uPGRADE",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version: 13",
    ]
    #expect(try refusal(fields) == nil)
  }

  @Test("A client that asks for no known subprotocol gets none") func subprotocols() throws {
    let none = try ServerHandshake(try request(Self.fields), subprotocols: Self.protocols)
    #expect(none.subprotocol == nil)
    #expect(!none.offersSubprotocols)
    let unknown = try ServerHandshake(
      try request(Self.fields + ["Sec-WebSocket-Protocol: LOCATIONHUB.v1.json"]), subprotocols: Self.protocols)
    #expect(unknown.subprotocol == nil)
    #expect(unknown.offersSubprotocols)
  }

  @Test("Each check of RFC 6455 §4.2.1 refuses with its status") func refusals() throws {
    let cases: [([String], String, UpgradeRefusal, Status)] = [
      (Self.fields, "POST / HTTP/1.1", .methodNotAllowed, .methodNotAllowed),
      (Self.fields, "GET / HTTP/1.0", .versionTooOld, .badRequest),
      (Self.fields + ["Content-Length: 1"], "GET / HTTP/1.1", .hasBody, .badRequest),
      (Self.fields + ["Transfer-Encoding: chunked"], "GET / HTTP/1.1", .hasBody, .badRequest),
      (replacing("Upgrade", with: nil), "GET / HTTP/1.1", .upgradeMissing, .upgradeRequired),
      (replacing("Upgrade", with: "Upgrade: h2c"), "GET / HTTP/1.1", .upgradeMissing, .upgradeRequired),
      (replacing("Connection", with: nil), "GET / HTTP/1.1", .connectionMissing, .badRequest),
      (replacing("Connection", with: "Connection: close"), "GET / HTTP/1.1", .connectionMissing, .badRequest),
      (replacing("Sec-WebSocket-Version", with: nil), "GET / HTTP/1.1", .malformedVersion, .badRequest),
      (Self.fields + ["Sec-WebSocket-Version: 13"], "GET / HTTP/1.1", .malformedVersion, .badRequest),
      (
        replacing("Sec-WebSocket-Version", with: "Sec-WebSocket-Version: 8"), "GET / HTTP/1.1", .unsupportedVersion,
        .upgradeRequired
      ),
      (replacing("Sec-WebSocket-Key", with: nil), "GET / HTTP/1.1", .malformedKey, .badRequest),
      (Self.fields + ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="], "GET / HTTP/1.1", .malformedKey, .badRequest),
    ]
    for (fields, line, expected, status) in cases {
      #expect(try refusal(fields, line: line) == expected)
      #expect(expected.status == status)
    }
  }

  @Test(
    "A key that is not 16 bytes in base64 is refused",
    arguments: [
      "", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ===", "dGhlIHNhbXBsZSBub25jZQAA",
      "dGhlIHNhbXBsZSBub25j*Q==",
      "dGhlIHNhbXBsZSBub25jZ===", "dGhlIHNhbXBsZSBub25jZQ=A", "dGhlIHNhbXBsZSBub25-ZQ==",
    ])
  func keys(key: String) throws {
    #expect(try refusal(replacing("Sec-WebSocket-Key", with: "Sec-WebSocket-Key: \(key)")) == .malformedKey)
  }

  @Test("A refusal for the version says which one is spoken, one for the method which one is allowed")
  func refusalFields() {
    var buffer = ByteBuffer()
    UpgradeRefusal.unsupportedVersion.response.write(into: &buffer, keepsAlive: false)
    let text = String(decoding: buffer.array(), as: UTF8.self)
    #expect(text.hasPrefix("HTTP/1.1 426 Upgrade Required\r\n"))
    #expect(text.contains("\r\nSec-WebSocket-Version: 13\r\n"))
    #expect(text.contains("\r\nUpgrade: websocket\r\n"))
    buffer.removeAll()
    UpgradeRefusal.methodNotAllowed.response.write(into: &buffer, keepsAlive: false)
    #expect(String(decoding: buffer.array(), as: UTF8.self).contains("\r\nAllow: GET\r\n"))
  }

  /// The nonce of the example: "the sample nonce".
  private func client(_ subprotocols: [String] = []) -> ClientHandshake {
    let words = Array("the sample nonce".utf8).withUnsafeBytes { $0.load(as: (UInt64, UInt64).self) }
    return ClientHandshake(nonce: words, subprotocols: subprotocols)
  }

  @Test("A client's request is what a server accepts, and the server's answer what the client accepts")
  func bothEnds() throws {
    let client = client(["locationhub.v1.binary", "locationhub.v1.json"])
    var buffer = ByteBuffer()
    client.writeRequest(
      host: "hub.example:8080", target: "/v1/ws?time=apple", fields: [OutgoingField("Authorization", "Bearer x")],
      into: &buffer)
    var parser = RequestParser()
    guard
      case .request(let head, let consumed) = try buffer.withBytes({ (raw) throws(HTTPError) in try parser.parse(raw) })
    else {
      Issue.record("incomplete request")
      return
    }
    #expect(consumed == buffer.count)
    #expect(head.path.elementsEqual("/v1/ws".utf8))
    #expect(head.fields.string("authorization") == "Bearer x")
    #expect(head.fields.string("sec-websocket-key") == "dGhlIHNhbXBsZSBub25jZQ==")
    let server = try ServerHandshake(head, subprotocols: Self.protocols)
    buffer.removeAll()
    server.write(into: &buffer, subprotocols: Self.protocols)
    let answer = try response(String(decoding: buffer.array(), as: UTF8.self))
    #expect(try client.check(answer).subprotocol == 0)
  }

  @Test("Each check of RFC 6455 §4.1 fails the client's handshake") func clientChecks() throws {
    let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
    let both = "Upgrade: WebSocket\r\nConnection: upgrade\r\n"
    let start = "HTTP/1.1 101 Switching Protocols\r\n"
    let cases: [(String, HandshakeError?)] = [
      (start + both + accept, nil),
      ("HTTP/1.1 401 Unauthorized\r\n" + both + accept, .refused(.unauthorized)),
      (start + "Connection: upgrade\r\n" + accept, .upgradeMissing),
      (start + "Upgrade: websocket\r\n" + accept, .connectionMissing),
      (start + both, .acceptMismatch), (start + both + accept + accept, .acceptMismatch),
      (start + both + "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", .acceptMismatch),
      (start + both + accept + "Sec-WebSocket-Extensions: permessage-deflate\r\n", .unexpectedExtension),
      (start + both + accept + "Sec-WebSocket-Protocol: b\r\n", .unexpectedSubprotocol),
      (start + both + accept + "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: a\r\n", .unexpectedSubprotocol),
    ]
    for (text, expected) in cases {
      let head = try response(text + "\r\n")
      do throws(HandshakeError) {
        #expect(try client(["a"]).check(head).subprotocol == nil)
        #expect(expected == nil)
      } catch {
        #expect(error == expected)
      }
    }
  }

  @Test("A key's base64 decodes to the nonce, for random nonces") func base64() throws {
    var random = SplitMix64(seed: 11)
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    for _ in 0..<200 {
      let nonce = (random.next(), random.next())
      var buffer = ByteBuffer()
      ClientHandshake(nonce: nonce).writeRequest(host: "x", target: "/", into: &buffer)
      let head = try request(
        ["Host: x"]
          + String(decoding: buffer.array(), as: UTF8.self).split(separator: "\r\n")
          .filter { $0.hasPrefix("Sec-WebSocket-Key") }.map(String.init))
      let key = try #require(head.fields["sec-websocket-key"])
      var bits: [UInt8] = []
      for character in key where character != 0x3D {
        let value = try #require(alphabet.firstIndex(of: character))
        for bit in (0..<6).reversed() { bits.append(UInt8(value >> bit & 1)) }
      }
      let decoded = (0..<16).map { index in bits[(index * 8)..<(index * 8 + 8)].reduce(0) { $0 << 1 | $1 } }
      #expect(withUnsafeBytes(of: nonce) { Array($0) } == decoded)
    }
  }
}
