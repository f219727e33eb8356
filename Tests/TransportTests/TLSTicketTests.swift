// The change of the keys that session tickets are sealed with. The loops' time is moved by hand; a ticket's own two
// hours go by OpenSSL's clock, in which next to nothing passes meanwhile.

import HubSystem
import HubTestCertificates
import Testing

@testable import HubTransport

@Suite struct `Keys of TLS tickets` {
  private static let periodMilliseconds = TicketKeys.period / 1_000_000

  /// Connects, gets a ticket and goes; true where the session before was resumed.
  private func visit(_ pair: Pair, _ peer: TLSPeer) throws -> Bool {
    let before = pair.server.counters.tlsHandshakesResumed
    let (atClient, atServer) = try pair.connect(peer)
    // TLS 1.3's ticket comes behind the handshake: what comes behind it shows that it is there.
    pair.atServer.send([1], to: atServer)
    pair.turn(until: { pair.atClient.received[atClient] == [1] })
    pair.client.close(atClient)
    pair.turn(until: { pair.atClient.closed[atClient] != nil && pair.atServer.closed[atServer] != nil })
    return pair.server.counters.tlsHandshakesResumed > before
  }

  @Test(arguments: tlsVersions)
  func `a ticket is good for a period after its key was changed, and no longer`(version: Int32) throws {
    let clock = HandClock()
    let pair = try Pair(tls: makeServer(), clock: clock)
    let client = try makeClient(version)
    let early = TLSPeer(client, name: "localhost")
    let late = TLSPeer(client, name: "localhost")
    for peer in [early, late] { #expect(try !visit(pair, peer), "the first time") }
    clock.advance(milliseconds: Self.periodMilliseconds)
    #expect(try visit(pair, early), "the key before still opens")
    clock.advance(milliseconds: Self.periodMilliseconds - 1)
    #expect(try visit(pair, early), "by the new ticket that it got")
    clock.advance(milliseconds: 1)
    #expect(try !visit(pair, late), "its key is gone")
    #expect(try visit(pair, early))
    clock.advance(milliseconds: 3 * Self.periodMilliseconds)
    #expect(try !visit(pair, early), "while nobody came time has passed, too")
    #expect(try visit(pair, early))
  }

  @Test func `a reload changes the keys, and so many of those before still open`() throws {
    let (certificate, key) = authority.issue(for: ["localhost"])
    let server = try TLSServer([TLSCertificate(certificate: certificate, key: key)])
    let pair = try Pair(tls: server)
    let client = try makeClient()
    let one = TLSPeer(client, name: "localhost")
    let two = TLSPeer(client, name: "localhost")
    for peer in [one, two] { #expect(try !visit(pair, peer), "the first time") }
    func reload() throws {
      try server.replace([TLSCertificate(certificate: certificate, key: key)])
      #expect(try !visit(pair, TLSPeer(client, name: "localhost")))
    }
    for _ in 0..<TicketKeys.maximumRetired { try reload() }
    #expect(try visit(pair, one))
    try reload()
    #expect(try !visit(pair, two), "one reload too many")
    #expect(try visit(pair, one), "by the ticket of its last visit")
  }

  private func pair(_ secrets: [[UInt8]], _ clock: HandClock = HandClock()) throws -> Pair {
    let (certificate, key) = authority.issue(for: ["localhost"])
    let server = try TLSServer([TLSCertificate(certificate: certificate, key: key)], ticketSecrets: secrets)
    return try Pair(tls: server, clock: clock)
  }

  private static let old = [UInt8](repeating: 1, count: 32)
  private static let new = [UInt8](repeating: 2, count: 32)

  @Test(arguments: tlsVersions)
  func `servers that share a secret resume each other's sessions, also while it is replaced, and others do not`(
    version: Int32
  ) throws {
    let client = try makeClient(version)
    let (old, new) = (Self.old, Self.new)
    for (one, other, isResumed) in [
      ([old], [old], true), ([old], [new], false), ([old], [], false), ([old], [old, new], true),
      ([old, new], [old], true), ([old, new], [new, old], true), ([new, old], [old, new], true),
      ([new, old], [new], true),
    ] as [([[UInt8]], [[UInt8]], Bool)] {
      let peer = TLSPeer(client, name: "localhost")
      #expect(try !visit(pair(one), peer), "the first time")
      #expect(try visit(pair(other), peer) == isResumed, "\(one.count) and \(other.count) secrets")
    }
  }

  @Test func `derived keys are those of the wall clock's period and of the one before, at each server`() throws {
    let client = try makeClient()
    let (one, other) = (HandClock(), HandClock())
    other.reading.uptimeNanoseconds = 7_000_000_000
    let (first, second) = (try pair([Self.old], one), try pair([Self.old], other))
    let (early, late) = (TLSPeer(client, name: "localhost"), TLSPeer(client, name: "localhost"))
    for peer in [early, late] { #expect(try !visit(first, peer), "the first time") }
    for clock in [one, other] { clock.advance(milliseconds: Self.periodMilliseconds) }
    #expect(try visit(second, early), "the keys before still open")
    #expect(try visit(first, early), "by the new ticket that it got")
    for clock in [one, other] { clock.advance(milliseconds: Self.periodMilliseconds) }
    #expect(try !visit(second, late), "its key is gone")
    #expect(try visit(second, early))
  }

  @Test func `files that cannot be used change no keys`() throws {
    let (certificate, key) = authority.issue(for: ["localhost"])
    let server = try TLSServer([TLSCertificate(certificate: certificate, key: key)])
    let pair = try Pair(tls: server)
    let peer = TLSPeer(try makeClient(), name: "localhost")
    #expect(try !visit(pair, peer))
    for _ in 0...TicketKeys.maximumRetired {
      #expect(throws: TLSError.noKey) { try server.replace([TLSCertificate(certificate: certificate, key: [])]) }
      _ = try visit(pair, TLSPeer(makeClient(), name: "localhost"))
    }
    #expect(try visit(pair, peer))
  }
}
