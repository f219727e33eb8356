// The list of who is in a cell, against a sorted array.
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct AreaMembersTests {
  private typealias Member = AreaMembers.Member

  private func drivers(_ members: AreaMembers, first limit: Int) -> [UInt32] {
    var list: [UInt32] = []
    members.forEach(ofFirst: limit) { list.append($0) }
    return list
  }

  @Test func crowdsThatComeAndGoStayInOrder() throws {
    var random = SplitMix64(seed: 23)
    var members = AreaMembers()
    var model: [Member] = []
    for step in 0..<20_000 {
      // Grows to some 3,000, shrinks to nobody, and grows again. Few ranks: many are of the same one.
      let grows = step / 5_000 % 2 == 0
      let member = Member(
        rank: UInt32(random.next() % 4_000), driver: UInt32(random.next() % 4), changed: 0, field: 0)
      let (slot, isThere) = members.find(rank: member.rank, driver: member.driver)
      let index = model.firstIndex { ($0.rank, $0.driver) >= (member.rank, member.driver) } ?? model.count
      #expect(isThere == (index < model.count && model[index] == member))
      if isThere {
        #expect(members.isAmongFirst(index + 1, slot) && !members.isAmongFirst(index, slot))
      }
      if grows, !isThere {
        members.insert(member, at: slot)
        model.insert(member, at: index)
      } else if !grows, !model.isEmpty {
        let gone = Int(random.next() % UInt64(model.count))
        members.remove(at: try #require(members.slot(at: gone)))
        model.remove(at: gone)
      }
      #expect(members.count == model.count && members.isEmpty == model.isEmpty)
      guard step % 100 == 0 else { continue }
      #expect(drivers(members, first: .max) == model.map(\.driver))
      #expect(drivers(members, first: 700) == model.prefix(700).map(\.driver))
      #expect(members.slot(at: model.count) == nil)
    }
  }

  @Test func aChangeIsNotedOnceATick() {
    var members = AreaMembers()
    members.insert(Member(rank: 5, driver: 1, changed: 6, field: 3), at: members.find(rank: 5, driver: 1).slot)
    let slot = members.find(rank: 5, driver: 1).slot
    let noted = [7, 7, 8].map { members.note(slot, tick: $0) }
    #expect(noted == [true, false, true])
    let moved = [3, 4, 4, 3].map { members.move(slot, to: $0) }
    #expect(moved == [false, true, false, true])
  }

  @Test func theLastOneGoesFirst() {
    var members = AreaMembers()
    for driver in UInt32(0)..<2_000 {
      members.insert(
        Member(rank: 9, driver: driver, changed: 0, field: 0), at: members.find(rank: 9, driver: driver).slot)
    }
    for driver in (UInt32(0)..<2_000).reversed() {
      let last = members.popLast()
      #expect(last?.driver == driver)
    }
    let behind = members.popLast()
    #expect(behind == nil)
    #expect(members.isEmpty)
  }
}
