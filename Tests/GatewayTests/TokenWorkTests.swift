// What a token costs the loop that checks it, by turns that the test gives by hand: a public key's signature counts as
// work, and a new token that grants the same asks the hub nothing.
import HubBytes
import HubMessages
import HubSystem
import HubTokens
import HubTransport
import Testing

@testable import HubGateway

@Suite struct TokenWorkTests {
  enum Kind: String, CaseIterable {
    case secret, publicKey

    /// RFC 7515 §A.1.1 and §A.3.1: keys that the whole world knows.
    var text: String {
      switch self {
      case .secret: "0123456789abcdef0123456789abcdef"
      case .publicKey:
        """
        {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}
        """
      }
    }
  }

  private let clock = HandClock()

  private func stage(_ kind: Kind) throws -> (HandDrivenHub, SigningKey) {
    let keys = try KeySet(parsing: Array(kind.text.utf8))
    let hub = try HandDrivenHub(clock: clock) {
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: keys))
      $0.limits.unitsPerPoll = 5
      $0.limits.requestsPerPoll = 16
    }
    return (hub, keys.keys[0])
  }

  private func token(
    _ key: SigningKey, _ id: String, role: Role = .rider, seconds: Int64 = 3600, _ grants: Grants? = nil
  ) throws -> String {
    let expires = Timestamp(milliseconds: clock.reading.unixMilliseconds + seconds * 1000)
    let claims = Claims(subject: try #require(Identifier(id)), role: role, expires: expires, grants: grants)
    return String(decoding: try key.token(TokenRequest(claims: claims)), as: UTF8.self)
  }

  private func frame(_ type: String, _ payload: String) -> [UInt8] {
    HandDrivenPeer.frame(
      #"{"type":"\#(type)","payload":{\#(payload)},"timestamp":1763680000000,"messageId":"m"}"#)
  }

  /// The most that one turn adds to what is counted, until all of it is there.
  private func most(_ hub: HandDrivenHub, of total: UInt64, _ count: () -> UInt64) throws -> UInt64 {
    let start = count()
    var (before, most, turns) = (start, UInt64(0), 0)
    while before < start + total, turns < 1000 {
      hub.loop.runTurn(timeoutMilliseconds: 0)
      most = max(most, count() - before)
      (before, turns) = (count(), turns + 1)
    }
    try #require(before == start + total)
    return most
  }

  @Test(
    "Requests with a public key's signature are checked one or two in a turn, others all at once",
    arguments: Kind.allCases)
  func requests(_ kind: Kind) throws {
    let (hub, key) = try stage(kind)
    let token = try token(key, "o1", role: .ops)
    let requests = try (0..<12).map { _ in try HandDrivenRequest(hub, "/v1/drivers/d1?access_token=\(token)") }
    let most = try most(hub, of: 12) { hub.counters.credentialChecks }
    switch kind {
    case .secret: #expect(most == 12)
    case .publicKey: #expect(most <= 2)
    }
    for request in requests {
      try hub.turn {
        request.ownTurn()
        return request.body != nil
      }
      #expect(request.status == "404")
    }
  }

  @Test(
    "New tokens of many sessions are checked one or two in a turn, by a secret all at once", arguments: Kind.allCases)
  func refreshes(_ kind: Kind) throws {
    let (hub, key) = try stage(kind)
    let peers = try (0..<8).map { try HandDrivenPeer(hub, token: token(key, "r\($0)")) }
    for (number, peer) in peers.enumerated() {
      peer.send(frame("refresh", #""token":"\#(try token(key, "r\(number)", seconds: 7200))""#))
      peer.ownTurn()
    }
    let most = try most(hub, of: 8) { hub.counters.messagesIn }
    switch kind {
    case .secret: #expect(most == 8)
    case .publicKey: #expect(most <= 2)
    }
    for peer in peers {
      peer.turn()
      #expect(peer.messages.contains { $0.contains("\"ack\"") })
    }
  }

  @Test("A session is charged for the check of its new token", arguments: zip(Kind.allCases, [1, 6]))
  func refreshCharge(_ kind: Kind, units: Int) throws {
    let (hub, key) = try stage(kind)
    let peer = try HandDrivenPeer(hub, token: token(key, "r1"))
    peer.send(frame("refresh", #""token":"\#(try token(key, "r1", seconds: 7200))""#))
    var sent = 0
    while hub.counters.ratePauses == 0, sent < 100 {
      peer.turn()
      peer.send(HandDrivenPeer.frame(HandDrivenPeer.ping("")))
      sent += 1
      peer.turn()
    }
    // The last one waits, and the one before it was the first beyond a full bucket.
    #expect(sent == Int(Limits().sessionBurst) - units + 2)
  }

  @Test("A new token asks the hub about each subscription, but not where it opens the same channels as the one before")
  func review() throws {
    let (hub, key) = try stage(.secret)
    func grants(_ trips: [String], id: String, rate: Double? = nil) throws -> Grants {
      Grants(
        trips: try trips.map { try #require(NamePattern($0)) },
        channels: [try #require(ChannelPattern("driver:D*"))], limits: rate.map { SessionLimits(rate: $0) },
        tokenID: InlineText(id))
    }
    let peer = try HandDrivenPeer(hub, token: token(key, "r1", grants(["A", "B"], id: "t0")))
    for channel in ["trip:A", "trip:B", "driver:D1"] { peer.send(frame("subscribe", #""channel":"\#(channel)""#)) }
    try hub.turn {
      peer.ownTurn()
      return peer.messages.count { $0.contains("\"subscribed\"") } == 3
    }
    let slot = try #require(hub.openSlots.first)
    let message = try #require(MessageID("m"))
    func questions(_ grants: Grants?, seconds: Int64) throws -> Int {
      let before = hub.sessions.sessions.pointee.inputs.count
      let request = Refresh(token: try token(key, "r1", seconds: seconds, grants))
      hub.sessions.sessions.pointee.refresh(slot, message, request)
      return hub.sessions.sessions.pointee.inputs.count - before
    }
    #expect(try questions(grants(["A", "B"], id: "t1"), seconds: 4000) == 0, "another jti and time")
    #expect(try questions(grants(["A", "B"], id: "t2", rate: 20), seconds: 4000) == 0, "another rate")
    #expect(try questions(grants(["A"], id: "t3"), seconds: 4000) == 3)
    try hub.turn {
      peer.ownTurn()
      return peer.messages.contains { $0.contains("grant_ended") && $0.contains("trip:B") }
    }
    #expect(peer.messages.count { $0.contains("grant_ended") } == 1)
    #expect(try questions(nil, seconds: 4000) == 2)
  }
}
