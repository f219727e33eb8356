// Whom a request counts for, behind proxies that are believed and others.
import HubBytes
import HubHTTP
import HubTransport
import Testing

@testable import HubGateway

@Suite struct ClientAddressTests {
  private func client(_ lines: [String], peer: String, trusted: [String]) throws -> ClientAddress {
    let text = "GET / HTTP/1.1\r\nHost: h\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n"
    var parser = RequestParser()
    let parsed = try Array(text.utf8).withUnsafeBytes { (bytes: UnsafeRawBufferPointer) throws(HTTPError) in
      try parser.parse(bytes, limits: HTTPLimits())
    }
    guard case .request(let head, consumed: _) = parsed else { throw HTTPError.malformedStartLine }
    return ClientAddress(
      of: head.fields, peer: try #require(SocketAddress(host: peer, port: 4711)),
      trusted: try trusted.map { try #require(AddressBlock($0)) })
  }

  private func host(_ forwarded: String..., peer: String = "10.0.0.1", trusted: [String] = ["10.0.0.0/8"]) throws
    -> String
  {
    try client(forwarded.map { "X-Forwarded-For: \($0)" }, peer: peer, trusted: trusted).address.host
  }

  @Test("the right-most address that is no trusted proxy's is the client, whatever it says to the left of that")
  func rightMost() throws {
    #expect(try host("192.0.2.7") == "192.0.2.7")
    #expect(try host("127.0.0.1, 192.0.2.7") == "192.0.2.7")
    #expect(try host("198.51.100.1, 192.0.2.7, 10.1.1.1, 10.2.2.2") == "192.0.2.7")
    #expect(try host("198.51.100.1", "192.0.2.7", "10.1.1.1") == "192.0.2.7", "all lines are one list")
    #expect(try host("10.3.3.3, 10.1.1.1") == "10.3.3.3", "where all are trusted, the first in the chain")
    #expect(try host(" , 192.0.2.7 ,, ") == "192.0.2.7", "empty elements are none (RFC 9110 §5.6.1.2)")
  }

  @Test("IPv6 and ports are read as proxies write them")
  func forms() throws {
    #expect(try host("2001:db8::7") == "2001:db8::7")
    #expect(try host("[2001:db8::7]:4711") == "2001:db8::7")
    #expect(try host("[2001:db8::7]") == "2001:db8::7")
    #expect(try host("192.0.2.7:4711") == "192.0.2.7")
    #expect(try host("::ffff:192.0.2.7") == "192.0.2.7")
    #expect(try host("192.0.2.7, fd00::1", peer: "fd00::2", trusted: ["fd00::/8"]) == "192.0.2.7")
    #expect(try host("192.0.2.7", peer: "::ffff:10.0.0.1") == "192.0.2.7")
  }

  @Test(
    "what is malformed is not believed, and the socket's address counts",
    arguments: [
      "unknown", "localhost", "192.0.2.7, x", "_hidden", "192.0.2", "192.0.2.7:", "192.0.2.7:70000", "[2001:db8::7",
      "[2001:db8::7]4711", "[192.0.2.7]x", "192.0.2.7;10.0.0.1", "256.0.0.1", "192.0.2.7, 10.0.0.1, 1.2.3.4.5",
    ])
  func malformed(value: String) throws {
    let client = try client(["X-Forwarded-For: \(value)"], peer: "10.0.0.1", trusted: ["10.0.0.0/8"])
    #expect(client.address.host == "10.0.0.1")
    #expect(!client.isKnown)
  }

  @Test("nobody but a trusted proxy is believed")
  func untrusted() throws {
    #expect(try host("127.0.0.1", peer: "192.0.2.1") == "192.0.2.1")
    #expect(try host("127.0.0.1", peer: "192.0.2.1", trusted: []) == "192.0.2.1")
  }

  @Test("this machine is who comes from it, and not who comes by a proxy on it")
  func thisMachine() throws {
    func isLocal(_ lines: [String], peer: String = "127.0.0.1", trusted: [String] = []) throws -> Bool {
      try client(lines, peer: peer, trusted: trusted).isThisMachine
    }
    #expect(try isLocal([]))
    #expect(try isLocal([], peer: "::1"))
    #expect(try !isLocal([], peer: "192.0.2.1"))
    // A proxy that nobody named leaves its marks.
    for mark in [
      "X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "X-Real-IP: 127.0.0.1", "Via: 1.1 proxy",
      "X-Forwarded-Host: hub", "X-Forwarded-Proto: https",
    ] {
      #expect(try !isLocal([mark]), "\(mark)")
    }
    // One that is named says for whom, or it is not known.
    let proxy = ["127.0.0.0/8"]
    #expect(try !isLocal([], trusted: proxy))
    #expect(try !isLocal(["X-Forwarded-For: nonsense"], trusted: proxy))
    #expect(try !isLocal(["X-Forwarded-For: 127.0.0.1, 192.0.2.7"], trusted: proxy))
    #expect(try isLocal(["X-Forwarded-For: 127.0.0.1"], trusted: proxy), "asked from here, through the proxy")
  }
}
