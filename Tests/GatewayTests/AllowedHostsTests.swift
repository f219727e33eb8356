// The host of a request, as it is compared with those that are allowed.
import Testing

@testable import HubGateway

@Suite struct AllowedHostsTests {
  @Test(
    "the host of an authority is in lower case, without port and brackets",
    arguments: [
      ("localhost", "localhost"), ("LOCALHOST:8080", "localhost"), ("127.0.0.1:1", "127.0.0.1"), ("hub:", "hub"),
      ("[::1]:80", "::1"), ("[2001:DB8::1]", "2001:db8::1"), ("a_b-c.example", "a_b-c.example"),
    ])
  func host(authority: String, host: String) {
    #expect(AllowedHosts.host(of: authority) == host)
  }

  @Test(
    "what is no authority has no host",
    arguments: [
      "", ":80", "::1", "[::1", "[::1]x", "[hub]", "hub:80x", "a:1:2", "user@hub", "hub/path", "hub name", "h\u{e9}",
    ])
  func none(authority: String) {
    #expect(AllowedHosts.host(of: authority) == nil)
  }

  @Test("an operator allows names and addresses, without port or scheme")
  func allowing() {
    var hosts = AllowedHosts()
    let taken = ["hub.example", "Hub2", "192.0.2.1", "[2001:db8::1]"].map { hosts.allow($0) }
    #expect(taken.allSatisfy { $0 })
    let refused = ["", "hub:80", "http://hub", "*", "[hub]", "a b"].map { hosts.allow($0) }
    #expect(refused.allSatisfy { !$0 })
  }
}
