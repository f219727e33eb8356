// Bytes of answers that are on their way.
import HubMessages
import HubRuntime
import Testing

@Suite struct MemoryBudgetTests {
  @Test("what is out counts until it goes away, and one alone always fits")
  func room() {
    let budget = MemoryBudget(bytes: 100)
    var held = [MemoryReservation(60, of: budget), MemoryReservation(40, of: budget)]
    #expect(held.allSatisfy { $0 != nil } && budget.reservedBytes == 100)
    #expect(MemoryReservation(1, of: budget) == nil && budget.reservedBytes == 100)
    held.removeLast()
    #expect(budget.reservedBytes == 60 && MemoryReservation(41, of: budget) == nil)
    held = []
    let large = MemoryReservation(500, of: budget)
    #expect(large != nil && MemoryReservation(1, of: budget) == nil && budget.reservedBytes == 500)
  }

  @Test("one identity has a quarter, or a single answer, and a tenth is kept for ops")
  func shares() {
    let budget = MemoryBudget(bytes: 100)
    let (rider, ops) = (MemoryOwner(1, .rider), MemoryOwner(2, .ops))
    var held = [MemoryReservation(15, of: budget, by: rider), MemoryReservation(10, of: budget, by: rider)]
    #expect(held.allSatisfy { $0 != nil } && !budget.hasRoom(for: rider) && budget.hasRoom(for: ops))
    #expect(MemoryReservation(1, of: budget, by: rider) == nil)
    held.removeLast()
    #expect(budget.hasRoom(for: rider) && MemoryReservation(11, of: budget, by: rider) == nil)
    held.append(MemoryReservation(60, of: budget, by: MemoryOwner(3, .driver)))
    held.append(MemoryReservation(15, of: budget, by: MemoryOwner(4, .rider)))
    #expect(held.allSatisfy { $0 != nil } && budget.reservedBytes == 90)
    #expect(!budget.hasRoom(for: MemoryOwner(5, .rider)) && budget.hasRoom(for: ops))
    held.append(MemoryReservation(10, of: budget, by: ops))
    #expect(held.last != nil && budget.reservedBytes == 100 && !budget.hasRoom(for: ops))
    held = []
    #expect(budget.reservedBytes == 0 && MemoryReservation(500, of: budget, by: rider) != nil)
    #expect(budget.hasRoom(for: rider), "nothing of it is left")
  }
}
