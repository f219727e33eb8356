// Which pages may, and which may not.
import HubBytes
import HubHTTP
import HubTestSupport
import Testing

@testable import HubGateway

@Suite struct AllowedOriginsTests {
  private func fields(_ lines: [String]) throws -> HeaderFields {
    let text = "GET / HTTP/1.1\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n"
    var parser = RequestParser()
    let parsed = try Array(text.utf8).withUnsafeBytes { (bytes: UnsafeRawBufferPointer) throws(HTTPError) in
      try parser.parse(bytes, limits: HTTPLimits())
    }
    guard case .request(let head, consumed: _) = parsed else { throw HTTPError.malformedStartLine }
    return head.fields
  }

  private func verdict(_ origins: AllowedOrigins, _ origin: String, host: String = "hub.example") throws
    -> AllowedOrigins.Verdict
  {
    origins.verdict(on: try fields(["Host: \(host)", "Origin: \(origin)"]))
  }

  private func origins(_ list: String...) -> AllowedOrigins {
    var origins = AllowedOrigins()
    for text in list {
      let isTaken = origins.allow(text)
      #expect(isTaken, "\(text)")
    }
    return origins
  }

  @Test("who sends no origin is no browser")
  func none() throws {
    #expect(AllowedOrigins().verdict(on: try fields(["Host: hub"])) == .noOrigin)
  }

  @Test("an origin is taken in any case and with or without its scheme's own port, and nothing else is")
  func listed() throws {
    let origins = origins("https://App.example", "http://localhost:3000", "capacitor://localhost", "http://[::1]:80")
    for good in [
      "https://app.example", "HTTPS://APP.EXAMPLE", "https://app.example:443", "http://localhost:3000",
      "capacitor://localhost", "http://[::1]",
    ] {
      #expect(try verdict(origins, good) == .allowed(good))
    }
    for bad in [
      "http://app.example", "https://app.example:8443", "https://app.example.evil.example", "https://evil-app.example",
      "https://xapp.example", "http://localhost", "http://localhost:30001", "null", "", "https://", "app.example",
      "https://app.example/", "https://app.example https://app.example", "https://user@app.example", "file://",
    ] {
      #expect(try verdict(origins, bad) == .refused, "\(bad)")
    }
  }

  @Test("the hub's own origin may where the hub is named by its address, not by a name that anyone can point here")
  func own() throws {
    let origins = AllowedOrigins()
    for host in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "192.0.2.1", "[2001:db8::1]", "LOCALHOST:1"] {
      #expect(try verdict(origins, "http://\(host)", host: host) == .allowed("http://\(host)"))
      #expect(try verdict(origins, "https://\(host)", host: host) == .allowed("https://\(host)"))
    }
    #expect(try verdict(origins, "http://127.0.0.1:8081", host: "127.0.0.1:8080") == .refused)
    #expect(try verdict(origins, "http://127.0.0.1", host: "127.0.0.1:8080") == .refused)
    #expect(try verdict(origins, "http://127.0.0.1", host: "127.0.0.1:80") == .allowed("http://127.0.0.1"))
    #expect(try verdict(origins, "ftp://127.0.0.1:8080", host: "127.0.0.1:8080") == .refused)
    for name in ["evil.example:8080", "hub.example", "127.0.0.1.evil.example", "127.1.evil:80"] {
      #expect(try verdict(origins, "http://\(name)", host: name) == .refused, "\(name)")
    }
    #expect(origins.verdict(on: try fields(["Host: ", "Origin: http://"])) == .refused)
  }

  @Test("with * every page may, and two origins are none")
  func all() throws {
    let origins = origins("*")
    #expect(try verdict(origins, "null") == .allowed("null"))
    let two = try fields(["Host: h", "Origin: https://a.example", "Origin: https://a.example"])
    #expect(origins.verdict(on: two) == .refused)
    #expect(AllowedOrigins().isEmpty && !origins.isEmpty)
  }

  @Test(
    "what is no origin cannot be allowed",
    arguments: [
      "", "null", "app.example", "https://", "https://a/b", "https://a/", "//a", "https://*.a", "a b://c", "1a://b",
    ])
  func malformed(text: String) {
    var origins = AllowedOrigins()
    let isTaken = origins.allow(text)
    #expect(!isTaken && origins.isEmpty)
  }

  @Test("an origin and a host of other characters are refused, and in a time that grows with their length alone")
  func otherCharacters() throws {
    let long = combiningMarks(bytes: 200_000)
    let seconds = try processorSeconds { () throws in
      #expect(try verdict(origins("https://a.example"), "http:\(combiningMarks(bytes: 3500))") == .refused)
      #expect(AllowedHosts.host(of: "\(long):1") == nil && AllowedHosts.host(of: "[\(long)") == nil)
      #expect(try verdict(origins("https://a.example"), "http://\u{E9}.example") == .refused)
    }
    #expect(seconds < 30, "minutes, were it the square")
  }
}
