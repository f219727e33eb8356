// What all loops of a server count together: sessions, connections and requests by address, bytes of input that is not
// complete. Each number has its limit in Limits.swift; the loop that reaches it tells the peer.
import Synchronization
import Transport

final class Admissions: Sendable {
  private let addresses: Locked<AddressTable>
  private let openSessions = Atomic<Int>(0)
  private let incompleteBytes = Atomic<Int>(0)
  /// Sessions in total; nobody knows it better than `Server`, which knows the limit of open files.
  let sessionLimit: Int
  private let incompleteLimit: Int

  init(_ limits: Limits, sessionLimit: Int) {
    addresses = Locked(
      AddressTable(
        idleLimit: limits.idleAddresses,
        rate: AddressTable.Rate(perSecond: limits.requestRate, burst: limits.requestBurst)))
    self.sessionLimit = sessionLimit
    incompleteLimit = limits.incompleteBytes
  }

  // MARK: Addresses

  /// A connection of the address comes; gives how many it has now.
  func enter(_ key: UInt64, now: Int64) -> Int { addresses.withLock { $0.enter(key, now: now) } }

  func leave(_ key: UInt64, now: Int64) { addresses.withLock { $0.leave(key, now: now) } }

  /// A request of the address; the nanoseconds that it should wait where it is over the rate.
  func charge(_ key: UInt64, now: Int64) -> Int64? { addresses.withLock { $0.charge(key, now: now) } }

  /// Addresses in the table.
  var addressCount: Int { addresses.withLock { $0.count } }

  // MARK: Sessions

  /// Room for one more session, which `sessionEnded` gives back; false where there is none.
  func sessionBegins() -> Bool {
    if openSessions.add(1, ordering: .relaxed).newValue <= sessionLimit { return true }
    sessionEnded()
    return false
  }

  func sessionEnded() { openSessions.subtract(1, ordering: .relaxed) }

  // MARK: Incomplete input

  /// Notes that a connection keeps so many bytes more (or fewer); false where that passes the limit of all together.
  func keeps(_ more: Int) -> Bool {
    let all = incompleteBytes.add(more, ordering: .relaxed).newValue
    return more <= 0 || all <= incompleteLimit
  }

  var incomplete: Int { incompleteBytes.load(ordering: .relaxed) }
}
