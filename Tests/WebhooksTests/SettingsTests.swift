// What a webhook may be set to: its URL, the addresses that it may connect to, the events that it delivers.
import HubGeo
import HubMessages
import HubTransport
import Testing

@testable import HubWebhooks

@Suite struct WebhookURLTests {
  @Test("A URL is taken apart into what is connected to and what is sent")
  func parts() throws {
    let url = try #require(WebhookURL("https://Hooks.Example.com:8443/a/b?c=%20d"))
    #expect(url.isSecure && url.host == "hooks.example.com" && url.port == 8443 && url.target == "/a/b?c=%20d")
    #expect(url.authority == "hooks.example.com:8443" && url.address == nil)
    #expect("\(url)" == "https://hooks.example.com:8443", "a path or a query may hold a secret")
    let bare = try #require(WebhookURL("http://[::1]?x"))
    #expect(
      !bare.isSecure && bare.host == "::1" && bare.port == 80 && bare.target == "/?x" && bare.authority == "[::1]")
    #expect(bare.address == SocketAddress(host: "::1", port: 80))
  }

  @Test(
    "Whatever is no plain URL is refused",
    arguments: [
      "", "ftp://a/", "https://", "https:///x", "https://a b/", "https://user@a/", "https://a/#f", "https://a:0/",
      "https://a:65536/", "https://a:+1/", "https://a:/", "https://[::1/", "https://[1.2.3.4]/", "https://.a/",
      "https://a..b/", "https://ä/", "https://a\r\nx: y/", "https://a/\"", "https://a:1:2/",
    ])
  func refused(text: String) { #expect(WebhookURL(text) == nil) }
}

@Suite struct AddressRuleTests {
  @Test(
    "Addresses inside are refused, in whatever form",
    arguments: [
      "127.0.0.1", "127.255.0.3", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
      "169.254.169.254", "100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::", "::1",
      "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1",
      "64:ff9b::7f00:1", "2002:7f00:1::", "2001::1", "2001:db8::1",
    ])
  func inside(host: String) throws {
    let address = try #require(SocketAddress(host: host, port: 443))
    #expect(!AddressRule().allows(address, isSecure: true))
  }

  @Test("Public addresses are connected to over TLS, and those that are allowed in any way")
  func outside() throws {
    for host in ["1.1.1.1", "172.32.0.1", "192.169.0.1", "2606:4700::1111", "2a00:1450::1"] {
      let address = try #require(SocketAddress(host: host, port: 443))
      #expect(AddressRule().allows(address, isSecure: true) && !AddressRule().allows(address, isSecure: false))
    }
    let block = try #require(AddressBlock("10.0.0.0/8"))
    let rule = AddressRule(allowed: [block])
    let (inside, other) = (SocketAddress(host: "10.2.3.4", port: 80)!, SocketAddress(host: "192.168.1.1", port: 80)!)
    #expect(rule.allows(inside, isSecure: false) && rule.allows(inside, isSecure: true))
    #expect(!rule.allows(other, isSecure: true))
  }
}

@Suite struct EventFilterTests {
  private func event(_ channel: Channel, _ kind: HubMessages.Notification.Kind = .fenceEnter) -> Publication {
    let body = HubMessages.Notification(kind: kind, title: "t", body: "b", driverID: nil, leg: nil, sequence: 1)
    return Publication(
      channel: channel, number: 1, timestamp: Timestamp(milliseconds: 0), body: .notification(body))
  }

  @Test("A filter is for the channels and types that it names")
  func matching() throws {
    let (one, two) = (Identifier("T1")!, Identifier("X2")!)
    let all = try #require(EventFilter(channels: [.all]))
    #expect(all.matches(event(.trip(one))) && all.matches(event(.fence(two))) && !all.matches(event(.trips)))
    let trips = try #require(EventFilter.Channels("trip:T*"))
    let some = try #require(EventFilter(channels: [trips], types: ["notification.fence_enter"]))
    #expect(some.matches(event(.trip(one))) && !some.matches(event(.trip(two))))
    #expect(!some.matches(event(.driver(one))) && !some.matches(event(.trip(one), .fenceExit)))
  }

  @Test("A filter without a channel, or with a type that no event has, is none")
  func refused() {
    #expect(EventFilter(channels: []) == nil && EventFilter(channels: [.all], types: ["trip.moved"]) == nil)
    for text in ["", "fleet", "trip", "trip:", "area:u33", "trip:*x", "**"] {
      #expect(EventFilter.Channels(text) == nil)
    }
  }
}
