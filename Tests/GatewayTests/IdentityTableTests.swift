// Sessions and watched cells by identity: counted right for each, and nothing is kept of who has gone.
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubGateway

@Suite struct IdentityTableTests {
  private func key(_ role: HubMessages.Role, _ id: String) throws -> IdentityKey {
    IdentityKey(role, try #require(Identifier(id)))
  }

  @Test("questions count for the identity, with a session or without, and the entry goes with the last of both")
  func questions() throws {
    let identities = Identities()
    let key = try key(.rider, "r")
    for _ in 0..<2 { #expect(identities.with(key) { $0.ask(key, limit: 2) }) }
    #expect(!identities.with(key) { $0.ask(key, limit: 2) })
    #expect(identities.with(key) { $0.begin(key, limit: 1) })
    identities.with(key) { $0.answered(key) }
    #expect(identities.with(key) { $0.ask(key, limit: 2) } && identities.count == 1)
    for _ in 0..<2 { identities.with(key) { $0.answered(key) } }
    #expect(identities.count == 1)
    identities.with(key) { $0.end(key, cells: 0) }
    #expect(identities.count == 0)
  }

  @Test("what ended sessions have left is taken once each, and nothing is kept that is over")
  func leftovers() throws {
    let identities = Identities()
    let second: Int64 = 1_000_000_000
    func leftover(_ end: Int64) -> Leftover { Leftover(bucket: TokenBucket(burst: 5, now: 0), end: end * second) }
    let key = try key(.rider, "r")
    for end in [5, 7, 6] { identities.with(key) { $0.keep(leftover(Int64(end)), of: key, now: 0) } }
    let other = try self.key(.driver, "r")
    #expect(identities.with(other, { $0.takeLeftover(of: other, now: 0) }) == nil)
    #expect(identities.with(key, { $0.takeLeftover(of: key, now: 0) }) != nil && identities.leftoverCount == 2)
    #expect(identities.with(key, { $0.takeLeftover(of: key, now: 6 * second) }) != nil)
    #expect(identities.with(key, { $0.takeLeftover(of: key, now: 6 * second) }) == nil && identities.leftoverCount == 0)
    // Who never comes again is forgotten, as others come and go.
    for number in 0..<100_000 {
      let now = Int64(number) * second / 100
      let passing = try self.key(.rider, "r\(number)")
      identities.with(passing) { $0.keep(leftover(Int64(number / 100 + 5)), of: passing, now: now) }
    }
    #expect(identities.leftoverCount <= 64 * 64)
  }

  @Test("an identity is a role and an id: another role of the same name, and a longer name, are others")
  func keys() throws {
    let long = String(repeating: "a", count: 64)
    #expect(try key(.rider, "a") == key(.rider, "a"))
    #expect(try key(.rider, long) == key(.rider, long))
    let all = try [
      key(.rider, "a"), key(.driver, "a"), key(.ops, "a"), key(.rider, "aa"), key(.rider, "a."),
      key(.rider, String(long.dropLast())), key(.rider, long), key(.rider, long.dropLast() + "b"),
    ]
    #expect(Set(all).count == all.count)
  }

  @Test(
    "whatever comes and goes, each has as many sessions and cells as it began and watches, and none is over its limit")
  func oracle() throws {
    let identities = Identities()
    let keys = try (0..<40).map { try key(.rider, "r\($0)") }
    // By identity: the cells of each of its sessions.
    var model = [[Int]](repeating: [], count: keys.count)
    var random = SplitMix64(seed: 17)
    for _ in 0..<20_000 {
      let who = Int(random.next() % UInt64(keys.count))
      let index = model[who].isEmpty ? nil : Int(random.next() % UInt64(model[who].count))
      switch (random.next() % 4, index) {
      case (0, _):
        let began = identities.with(keys[who]) { $0.begin(keys[who], limit: 5) }
        #expect(began == (model[who].count < 5))
        if began { model[who].append(0) }
      case (1, let index?): identities.with(keys[who]) { $0.end(keys[who], cells: model[who].remove(at: index)) }
      case (2, let index?):
        let more = 1 + Int(random.next() % 30)
        let isAllowed = identities.with(keys[who]) { $0.watch(keys[who], more: more, limit: 64) }
        #expect(isAllowed == (model[who].reduce(0, +) + more <= 64))
        if isAllowed { model[who][index] += more }
      case (3, let index?):
        let fewer = Int(random.next() % UInt64(model[who][index] + 1))
        #expect(identities.with(keys[who]) { $0.watch(keys[who], more: -fewer, limit: 64) })
        model[who][index] -= fewer
      case (_, _): break
      }
      #expect(identities.count == model.count { !$0.isEmpty })
    }
    for (key, sessions) in zip(keys, model) {
      for cells in sessions { identities.with(key) { $0.end(key, cells: cells) } }
    }
    #expect(identities.count == 0, "nothing is kept of who has no session")
  }

  @Test("a tenth of all sessions is for ops, and what is not admitted takes nothing")
  func admissions() throws {
    var limits = Limits()
    limits.sessionsPerIdentity = RoleLimits(driver: 2, rider: 3, ops: 100)
    let admissions = Admissions(limits, sessionLimit: 20)
    func begin(_ role: HubMessages.Role, _ id: String) throws -> SessionAdmission {
      let limit = limits.sessionsPerIdentity[role]
      return admissions.sessionBegins(role, try key(role, id), limit: limit)
    }
    for _ in 0..<3 { #expect(try begin(.rider, "r") == .admitted) }
    #expect(try begin(.rider, "r") == .identityFull)
    #expect(try begin(.driver, "r") == .admitted, "a driver of the same name is somebody else")
    for number in 4..<18 { #expect(try begin(.rider, "r\(number)") == .admitted) }
    #expect(try begin(.rider, "late") == .full && begin(.driver, "late") == .full)
    #expect(try begin(.ops, "o") == .admitted && begin(.ops, "o") == .admitted)
    #expect(try begin(.ops, "o") == .full)
    #expect(admissions.identityCount == 17)
    admissions.sessionEnded(try key(.ops, "o"), cells: 0)
    admissions.sessionEnded(try key(.rider, "r"), cells: 0)
    #expect(try begin(.rider, "r") == .full, "nor do riders get the room that ops leave")
    #expect(try begin(.ops, "p") == .admitted)
  }
}
