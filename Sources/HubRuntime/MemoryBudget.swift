// The memory of other threads' answers while they are made, wait and are sent, perhaps to slow readers.
import HubCore
package import HubMessages
import HubSystem

/// The identity that an answer is for, as a number. Each has a limit of its own, so that others have room, too.
package struct MemoryOwner: Sendable {
  fileprivate let number: UInt64
  fileprivate let role: Role

  package init(_ number: UInt64, _ role: Role) { (self.number, self.role) = (number, role) }
}

/// A limit of bytes in use. A tenth is kept for ops, and one owner has at most 1/`RuntimeLimits.memoryParts`.
package final class MemoryBudget: Sendable {
  private struct Use {
    var bytes = 0
    /// Bytes by owner, without those that have none.
    var owned: [UInt64: Int] = [:]
  }

  private let limit: Int
  private let use = Locked(Use())

  package init(bytes: Int) { limit = bytes }

  /// Whether an owner's answer of so many bytes fits. A single one always does, of an owner and of all: its length has
  /// a limit of its own.
  private func hasRoom(_ use: borrowing Use, _ bytes: Int, for owner: MemoryOwner?) -> Bool {
    guard use.bytes == 0 || use.bytes + bytes <= owner?.role.share(of: limit) ?? limit else { return false }
    guard let owned = owner.flatMap({ use.owned[$0.number] }) else { return true }
    return owned + bytes <= limit / RuntimeLimits.memoryParts
  }

  /// Whether an owner's next answer may fit, so that it is worth the work.
  package func hasRoom(for owner: MemoryOwner) -> Bool { use.withLock { hasRoom($0, 1, for: owner) } }

  fileprivate func take(_ bytes: Int, for owner: MemoryOwner?) -> Bool {
    use.withLock { use in
      guard hasRoom(use, bytes, for: owner) else { return false }
      use.bytes += bytes
      if let owner, bytes > 0 { use.owned[owner.number, default: 0] += bytes }
      return true
    }
  }

  fileprivate func release(_ bytes: Int, of owner: MemoryOwner?) {
    use.withLock { use in
      use.bytes -= bytes
      guard let number = owner?.number, let owned = use.owned[number] else { return }
      use.owned[number] = owned == bytes ? nil : owned - bytes
    }
  }

  package var reservedBytes: Int { use.withLock { $0.bytes } }
}

/// The memory of an answer, until it is freed.
package final class MemoryReservation: Sendable {
  private let bytes: Int
  private let owner: MemoryOwner?
  private let budget: MemoryBudget
  /// The question's share of the asker's limit, kept until the memory is free.
  private let question: (any Sendable)?

  /// Nil where the others, or the owner's other answers, leave no room. `question` is freed with it.
  package init?(
    _ bytes: Int, of budget: MemoryBudget, by owner: MemoryOwner? = nil, for question: (any Sendable)? = nil
  ) {
    guard budget.take(bytes, for: owner) else { return nil }
    (self.bytes, self.owner, self.budget, self.question) = (bytes, owner, budget, question)
  }

  deinit { budget.release(bytes, of: owner) }
}
