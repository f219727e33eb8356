import HubMessages
import Testing

@testable import HubClientCore

@Suite struct HubURLTests {
  @Test("Names, numeric IPv4 and IPv6 hosts and localhost, with and without port, path and query")
  func good() throws {
    for (text, host, port, target) in [
      ("ws://127.0.0.1:8080/v1/ws", "127.0.0.1", 8080, "/v1/ws"),
      ("WS://127.0.0.1/", "127.0.0.1", 80, "/"),
      ("ws://[::1]:9000/v1/ws?role=ops&id=a", "::1", 9000, "/v1/ws?role=ops&id=a"),
      ("ws://[::1]", "::1", 80, "/v1/ws"),
      ("ws://localhost:1?id=x", "localhost", 1, "/v1/ws?id=x"),
      ("ws://10.1.2.3:65535/a/b?c", "10.1.2.3", 65535, "/a/b?c"),
      ("wss://hub.example", "hub.example", 443, "/v1/ws"),
      ("ws://my_hub-1.local.:81/", "my_hub-1.local.", 81, "/"),
    ] {
      let url = try HubURL(text)
      #expect(url.host == host && url.port == port, "\(text)")
      #expect(url.target == target, "\(text)")
    }
  }

  @Test("wss has port 443, and the certificate must be for the host as the URL has it")
  func secure() throws {
    for (text, port, name, shown) in [
      ("wss://localhost", 443, "localhost", "wss://localhost/v1/ws"),
      ("wss://localhost:8443/", 8443, "localhost", "wss://localhost:8443/"),
      ("WSS://127.0.0.1/v1/ws", 443, "127.0.0.1", "wss://127.0.0.1/v1/ws"),
      ("wss://[::1]:9000", 9000, "::1", "wss://[::1]:9000/v1/ws"),
      ("wss://127.0.0.1:80", 80, "127.0.0.1", "wss://127.0.0.1:80/v1/ws"),
      ("wss://Hub.example:443", 443, "Hub.example", "wss://Hub.example/v1/ws"),
    ] {
      let url = try HubURL(text).adding("id", "a")
      #expect(url.isSecure)
      #expect(url.port == port && url.host == name, "\(text)")
      #expect(url.description == shown)
    }
    #expect(try !HubURL("ws://localhost").isSecure)
  }

  @Test("Each mistake has its own error")
  func bad() {
    for (text, error) in [
      ("127.0.0.1:8080", HubURLError.noScheme("127.0.0.1:8080")),
      ("", .noScheme("")),
      ("http://127.0.0.1/", .unsupportedScheme("http")),
      ("ws://a:b@127.0.0.1/", .credentialsInURL),
      ("ws://127.0.0.1/#x", .fragment),
      ("ws://hub..example/", .badHost("hub..example")),
      ("ws://hub%2eexample/", .badHost("hub%2eexample")),
      ("ws://[hub.example]/", .badHost("[hub.example]")),
      ("ws://\(String(repeating: "a", count: 64)).example", .badHost("\(String(repeating: "a", count: 64)).example")),
      ("ws:///x", .badHost("")),
      ("ws://::1/", .badHost(":")),
      ("ws://127.0.0.1:0/", .badPort("0")),
      ("ws://127.0.0.1:65536/", .badPort("65536")),
      ("ws://127.0.0.1:/", .badPort("")),
      ("ws://127.0.0.1/a b", .badCharacter),
      ("ws://127.0.0.1/ä", .badCharacter),
      ("ws://127.0.0.1/?time=sundial", .badTimeOption("sundial")),
    ] {
      #expect(throws: error, "\(text)") { try HubURL(text) }
      #expect(!error.description.isEmpty)
    }
  }

  @Test("The time option decides how timestamps are read")
  func time() throws {
    #expect(try HubURL("ws://127.0.0.1/").time == .unixMilliseconds)
    #expect(try HubURL("ws://127.0.0.1/?id=a&time=apple").time == .apple)
    #expect(try HubURL("ws://127.0.0.1/?time=rfc3339").time == .rfc3339)
  }

  @Test("Parameters can be added, and the description hides the query")
  func adding() throws {
    let url = try HubURL("ws://127.0.0.1:8080").adding("role", "ops").adding("id", "x")
    #expect(url.target == "/v1/ws?role=ops&id=x")
    #expect(url.hasParameter("role") && !url.hasParameter("token"))
    #expect(url.description == "ws://127.0.0.1:8080/v1/ws")
  }
}

@Suite struct MessageNumberingTests {
  @Test("An id leads back to its number, and no other id does")
  func roundTrip() throws {
    var random = ClientRandom(seed: 5)
    let numbering = MessageNumbering(random: &random)
    for number in [0, 1, 9, 10, 12_345, UInt64.max] {
      #expect(numbering.number(of: numbering.id(number)) == number)
    }
    for text in ["1", "x-1", "\(numbering.id(1))x", "\(numbering.id(UInt64.max))0"] {
      #expect(numbering.number(of: try #require(MessageID(text))) == nil, "\(text)")
    }
    let other = MessageNumbering(random: &random)
    #expect(other.number(of: numbering.id(1)) == nil)
  }
}
