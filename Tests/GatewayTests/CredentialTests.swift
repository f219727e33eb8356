// Who a peer is, and what it may see.
import HTTP
import Messages
import Testing

@testable import Gateway

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

  @Test("a driver sees its own channel, a rider no driver's, and fence and fleet are for ops")
  func channels() {
    let me = Identifier("me")!
    let other = Identifier("other")!
    let rows: [(Channel, driver: Bool, rider: Bool)] = [
      (.driver(me), true, false), (.driver(other), false, false), (.trip(other), true, true),
      (.fence(me), false, false), (.fleet, false, false), (.area(Identifier("u33")!.text), true, true),
    ]
    for (channel, driver, rider) in rows {
      #expect(Credential(role: .driver, id: me).maySubscribe(to: channel) == driver, "driver, \(channel)")
      #expect(Credential(role: .rider, id: me).maySubscribe(to: channel) == rider, "rider, \(channel)")
      #expect(Credential(role: .ops, id: me).maySubscribe(to: channel), "ops, \(channel)")
    }
  }
}
