// Bytes of answers that are on their way.
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
}
