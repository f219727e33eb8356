// How running loops get new settings and keys: a new value is put on a board, the loops are woken, and each takes it.
// Messages take no lock: a loop works with the value that it has.
import HubSystem
import Synchronization

/// The newest value, for loops.
final class Board<Value: Sendable>: Sendable {
  private let value: Locked<Value>
  /// Counts the values, so that a loop sees without the lock that it has the newest.
  private let newest = Atomic<UInt64>(0)

  init(_ value: Value) { self.value = Locked(value) }

  var generation: UInt64 { newest.load(ordering: .acquiring) }

  var current: Value { value.withLock { $0 } }

  func replace(_ new: Value) {
    value.withLock { $0 = new }
    newest.add(1, ordering: .releasing)
  }
}

/// A loop's present value.
struct Current<Value: Sendable> {
  private let board: Board<Value>
  private(set) var generation: UInt64
  private(set) var value: Value

  init(_ board: Board<Value>) {
    self.board = board
    generation = board.generation  // before the value: at worst it is taken twice
    value = board.current
  }

  /// Takes the newest value; false where there is no new one.
  mutating func pickUp() -> Bool {
    let newest = board.generation
    guard newest != generation else { return false }
    generation = newest
    value = board.current
    return true
  }
}
