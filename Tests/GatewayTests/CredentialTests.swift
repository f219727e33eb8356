// Who a peer is, and what it may see.
import HubCore
import HubGeo
import HubHTTP
import HubMessages
import HubTestSupport
import HubTokens
import Testing

@testable import HubGateway

@Suite struct CredentialTests {
  private func read(_ query: String, allowed: Bool = true) throws(CredentialError) -> Credential {
    try Credential(query: Query(Array(query.utf8)[...]), allowsDevelopmentCredentials: allowed)
  }

  @Test("role and id of the query make a credential, in any order and percent-encoded")
  func good() throws {
    #expect(try read("role=driver&id=d-1") == Credential(role: .driver, id: Identifier("d-1")!))
    #expect(try read("id=r%2E2&time=apple&role=rider") == Credential(role: .rider, id: Identifier("r.2")!))
    #expect(try read("role=ops&id=o&role=driver").role == .ops, "the first of a name counts")
  }

  @Test(
    "anything else is refused with a reason that does not repeat what was sent",
    arguments: [
      "", "role=driver", "id=x", "role=admin&id=secretid", "role=driver&id=", "role=driver&id=secret%20id",
      "role=driver&id=%zz", "ROLE=driver&id=secretid", "role=driver&id=\(String(repeating: "a", count: 65))",
    ])
  func bad(query: String) {
    #expect(throws: CredentialError.self) { try read(query) }
    do {
      _ = try read(query)
    } catch {
      #expect(!error.text.isEmpty && !error.text.contains("secret"))
    }
  }

  @Test("development credentials are refused where they are not allowed")
  func notAllowed() {
    #expect(throws: CredentialError.self) { try read("role=ops&id=o", allowed: false) }
  }

  @Test("a token's lists open what they name, for any role, and the fleet stays with ops")
  func tokens() throws {
    let id = { (text: String) in Identifier(text)! }
    let grants = Grants(
      trips: [NamePattern("T1")!], channels: [ChannelPattern("driver:D*")!, ChannelPattern("trip:z*")!])
    for role in [Role.rider, .driver] {
      let granted = Credential(role: role, id: id("me"), authority: .token(grants))
      let bare = Credential(role: role, id: id("me"), authority: .token(nil))
      #expect(granted.names(trip: id("T1")) && !granted.names(trip: id("z1")) && !bare.names(trip: id("T1")))
      for channel in [Channel.trip(id("T1")), .trip(id("z1")), .driver(id("D9"))] {
        #expect(granted.grant(for: channel) == .granted, "\(channel)")
      }
      for trip in [Channel.trip(id("T1")), .trip(id("z1"))] { #expect(bare.grant(for: trip) == .onlyForParties) }
      #expect(granted.grant(for: .trip(id("T2"))) == .onlyForParties)
      for channel in [Channel.fleet, .trips, .raw(id("D1")), .driver(id("E1")), .fence(id("D1"))] {
        #expect(granted.grant(for: channel) == nil && bare.grant(for: channel) == nil, "\(channel)")
      }
      #expect(bare.grant(for: .driver(id("me"))) == (role == .driver ? .granted : nil))
    }
    #expect(Credential(role: .ops, id: id("o"), authority: .token(nil)).grant(for: .fleet) == .granted)
  }

  @Test("a driver sees its own channel, a rider no driver's, and fence and fleet are for ops")
  func channels() {
    let me = Identifier("me")!
    let other = Identifier("other")!
    let rows: [(Channel, driver: ChannelGrant?, rider: ChannelGrant?)] = [
      (.driver(me), .granted, nil), (.driver(other), nil, nil), (.trip(other), .whileUnclaimed, .granted),
      (.fence(me), nil, nil), (.fleet, nil, nil), (.trips, nil, nil), (.raw(me), nil, nil),
      (.box(BoundingBox.world), nil, nil), (.counts(BoundingBox.world), nil, nil),
      (.countsBlock(GeohashCell("u33")!), nil, nil),
      (.area(GeohashCell("u33")!), nil, .granted),
    ]
    for (channel, driver, rider) in rows {
      #expect(Credential(role: .driver, id: me).grant(for: channel) == driver, "driver, \(channel)")
      #expect(Credential(role: .rider, id: me).grant(for: channel) == rider, "rider, \(channel)")
      #expect(Credential(role: .ops, id: me).grant(for: channel) == .granted, "ops, \(channel)")
    }
  }
}
