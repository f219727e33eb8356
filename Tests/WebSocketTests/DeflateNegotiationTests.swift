// Sec-WebSocket-Extensions: what is agreed on, declined and refused (RFC 6455 §9.1; RFC 7692 §5, §7.1).

import HubBytes
import HubHTTP
import Testing

@testable import HubWebSocket

@Suite struct DeflateNegotiationTests {
  private static let keeping = DeflatePolicy(keepsContexts: true, windowBits: 9...15)
  private static let shared = DeflatePolicy(keepsContexts: false, windowBits: 12...12)
  private static let name = "permessage-deflate"

  private func request(_ extensions: [String]) throws -> RequestHead {
    var parser = RequestParser()
    let lines = ["GET / HTTP/1.1"] + HandshakeTests.fields + extensions.map { "Sec-WebSocket-Extensions: " + $0 }
    let bytes = Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
    guard case .request(let head, _) = try bytes.withUnsafeBytes({ try parser.parse($0) }) else {
      throw HTTPError.malformedStartLine
    }
    return head
  }

  /// The value of the field in the answer; nil where there is none.
  private func answer(_ offers: [String], _ policy: DeflatePolicy?) throws -> String? {
    let handshake = try ServerHandshake(try request(offers), subprotocols: [], compression: policy)
    var buffer = ByteBuffer()
    handshake.write(into: &buffer, subprotocols: [])
    let text = String(decoding: buffer.array(), as: UTF8.self)
    #expect(text.hasSuffix("\r\n\r\n"))
    let lines = text.split(separator: "\r\n").filter { $0.hasPrefix("Sec-WebSocket-Extensions: ") }
    #expect(lines.count <= 1)
    return lines.first.map { String($0.dropFirst("Sec-WebSocket-Extensions: ".count)) }
  }

  @Test("Each offer gets the answer that both policies have for it") func answers() throws {
    let none = "; server_no_context_takeover; client_no_context_takeover"
    let cases: [(offer: String, keeping: String?, shared: String?)] = [
      ("", "", none),
      ("; client_max_window_bits", "", none),
      ("; client_max_window_bits=9", "", none),
      ("; server_no_context_takeover", "; server_no_context_takeover", none),
      ("; client_no_context_takeover", "; client_no_context_takeover", none),
      ("; server_max_window_bits=15", "; server_max_window_bits=15", none + "; server_max_window_bits=12"),
      ("; server_max_window_bits=12", "; server_max_window_bits=12", none + "; server_max_window_bits=12"),
      ("; server_max_window_bits=\"1\\2\"", "; server_max_window_bits=12", none + "; server_max_window_bits=12"),
      ("; server_max_window_bits=11", "; server_max_window_bits=11", nil),
      ("; server_max_window_bits=9", "; server_max_window_bits=9", nil),
      ("; server_max_window_bits=8", nil, nil),
    ]
    for (offer, keeping, shared) in cases {
      #expect(try answer([Self.name + offer], Self.keeping) == keeping.map { Self.name + $0 }, "\(offer)")
      #expect(try answer([Self.name + offer], Self.shared) == shared.map { Self.name + $0 }, "\(offer)")
      #expect(try answer([Self.name + offer], nil) == nil)
    }
  }

  @Test("Unknown, repeated and impossible parameters decline the offer")
  func declined() throws {
    let parameters = [
      "; x", "; x=1", "; server_no_context_takeover=1", "; client_no_context_takeover=true",
      "; server_max_window_bits", "; server_max_window_bits=7", "; server_max_window_bits=16",
      "; server_max_window_bits=08", "; server_max_window_bits=+9", "; server_max_window_bits=x",
      "; client_max_window_bits=16", "; client_max_window_bits=010", "; client_max_window_bits=99999999999999999999",
      "; server_no_context_takeover; server_no_context_takeover", "; client_max_window_bits; client_max_window_bits=9",
      "; client_no_context_takeover; client_no_context_takeover",
      "; server_max_window_bits=9; server_max_window_bits=9",
    ]
    for parameter in parameters {
      #expect(try answer([Self.name + parameter], Self.keeping) == nil, "\(parameter)")
      // RFC 7692 §5.1: the next offer may do.
      #expect(try answer([Self.name + parameter + ", " + Self.name], Self.keeping) == Self.name, "\(parameter)")
      #expect(try answer([Self.name + parameter, Self.name], Self.keeping) == Self.name, "\(parameter)")
    }
    #expect(try answer(["x-webkit-deflate-frame"], Self.keeping) == nil)
  }

  @Test("Of several offers the first that is acceptable is taken, in any case and spacing") func first() throws {
    let offers = [
      " foo;bar=\"baz\" ,,PerMessage-Deflate ;  Server_Max_Window_Bits = 10;client_max_window_bits , permessage-deflate",
      "permessage-deflate",
    ]
    #expect(try answer(offers, Self.keeping) == "permessage-deflate; server_max_window_bits=10")
    #expect(try answer([offers[0]], Self.shared)?.contains("max_window_bits") == false)
    #expect(Self.keeping.compressorWindowBits(DeflateParameters()) == 15)
  }

  @Test("What does not fit the grammar of RFC 6455 §9.1 fails the handshake") func malformed() throws {
    let values = [
      "permessage-deflate;", "permessage-deflate; =1", "permessage-deflate; a=", "; a", "a b", "a; b c", "a; b=c d",
      "a; b=\"", "a; b=\"c", "a; b=\"\"", "a; b=\"c,d\"", "a; b=\"c d\"", "a; b=\"c\\", "a; b=\"c\"d", "a/b", "a; b=ä",
      "\"a\"",
    ]
    for value in values {
      let head = try request([value])
      for policy in [nil, Self.keeping] {
        #expect(throws: UpgradeRefusal.malformedExtensions, "\(value)") {
          _ = try ServerHandshake(head, subprotocols: [], compression: policy)
        }
      }
    }
    #expect(UpgradeRefusal.malformedExtensions.status == .badRequest)
    #expect(try answer(["", ", ,"], Self.keeping) == nil)
  }

  // MARK: The client

  private func agreed(_ offer: DeflateParameters?, _ answer: [String]) throws -> DeflateParameters? {
    let words = Array("the sample nonce".utf8).withUnsafeBytes { $0.load(as: (UInt64, UInt64).self) }
    let client = ClientHandshake(nonce: words, compression: offer)
    var text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    text += "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
    for line in answer { text += "Sec-WebSocket-Extensions: \(line)\r\n" }
    var parser = ResponseParser()
    guard case .response(let head, _) = try Array((text + "\r\n").utf8).withUnsafeBytes({ try parser.parse($0) })
    else { throw HTTPError.malformedStartLine }
    return try client.check(head).compression
  }

  @Test("A client takes the answers that its offer allows, and fails on all others") func client() throws {
    var modest = DeflateParameters()
    modest.serverNoContextTakeover = true
    modest.serverMaxWindowBits = .bits(12)
    var able = DeflateParameters()
    able.clientMaxWindowBits = .unspecified
    var narrow = DeflateParameters()
    narrow.clientMaxWindowBits = .bits(10)
    let plain = DeflateParameters()
    let good: [(DeflateParameters, String)] = [
      (plain, ""), (plain, "; server_no_context_takeover; client_no_context_takeover"),
      (plain, "; server_max_window_bits=8"), (able, "; client_max_window_bits=9"),
      (narrow, "; client_max_window_bits=10"), (narrow, ""),
      (modest, "; server_max_window_bits=12; server_no_context_takeover"),
    ]
    for (offer, answer) in good { #expect(try agreed(offer, [Self.name + answer]) != nil, "\(answer)") }
    #expect(try agreed(plain, []) == nil)
    let bad: [(DeflateParameters?, [String])] = [
      (nil, [Self.name]), (plain, ["x"]), (plain, [Self.name, Self.name]), (plain, [Self.name + ", x"]),
      (plain, [Self.name + "; x"]), (plain, [Self.name + "; client_max_window_bits=9"]),
      (plain, [Self.name + "; server_max_window_bits=16"]), (able, [Self.name + "; client_max_window_bits"]),
      (narrow, [Self.name + "; client_max_window_bits=11"]), (modest, [Self.name]),
      (modest, [Self.name + "; server_no_context_takeover"]),
      (modest, [Self.name + "; server_no_context_takeover; server_max_window_bits=13"]), (plain, [Self.name + ";"]),
    ]
    for (offer, answer) in bad {
      #expect(throws: HandshakeError.unexpectedExtension, "\(answer)") { try agreed(offer, answer) }
    }
  }

  @Test("An offer goes out as it is, and the server reads the same") func offer() throws {
    var offer = DeflateParameters()
    offer.serverNoContextTakeover = true
    offer.clientNoContextTakeover = true
    offer.serverMaxWindowBits = .bits(12)
    offer.clientMaxWindowBits = .unspecified
    var buffer = ByteBuffer()
    ClientHandshake(nonce: (1, 2), compression: offer).writeRequest(host: "x", target: "/", into: &buffer)
    var parser = RequestParser()
    guard case .request(let head, _) = try buffer.withBytes({ (raw) throws(HTTPError) in try parser.parse(raw) })
    else {
      Issue.record("incomplete request")
      return
    }
    let read = try #require(ExtensionListParser.parse(head.fields))
    #expect(read.count == 1 && DeflateParameters(read[0]) == offer)
  }
}
