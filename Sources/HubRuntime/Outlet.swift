// The receivers of the hub's output, addressed by number: event loops with their sessions, and other threads. The hub
// knows only a mailbox, and how to have it emptied.
import HubCore
package import HubSystem
import Synchronization

/// One receiver of the hub's output.
package final class Outlet: Sendable {
  let mailbox: MixedMailbox<PositionDelivery, HubOutput>
  /// Wakes the thread that empties the mailbox.
  package let waker: Waker
  private let runTurn: @Sendable () -> Void
  private let hasClosed = Atomic(false)
  /// Output without room in the mailbox is dropped, so that the hub never waits.
  let isLossy: Bool
  private let omissions = Atomic<UInt64>(0)

  /// `capacity`: the limit of waiting output. `assist` empties the mailbox on the calling thread if its own thread
  /// sleeps, else wakes that thread; it must not wait for the hub.
  package init(capacity: Int, waker: Waker, assist: @escaping @Sendable () -> Void) {
    mailbox = MixedMailbox(capacity: capacity)
    self.waker = waker
    runTurn = assist
    isLossy = false
  }

  /// A receiver that polls its mailbox and is never woken. `waker`: of a thread, for what concerns all outlets.
  package init(lossyCapacity: Int, waker: Waker) {
    mailbox = MixedMailbox(capacity: lossyCapacity)
    self.waker = waker
    runTurn = {}
    isLossy = true
  }

  func leaveOut(_ count: Int) {
    if count > 0 { omissions.wrappingAdd(UInt64(count), ordering: .relaxed) }
  }

  /// Dropped outputs.
  package var leftOut: UInt64 { omissions.load(ordering: .relaxed) }

  /// Has the mailbox emptied, on this thread if its own sleeps. For a little output, which takes less time to send than
  /// a thread to wake.
  func assist() { runTurn() }

  /// Notes that the mailbox is no longer emptied.
  func close() { hasClosed.store(true, ordering: .releasing) }

  var isClosed: Bool { hasClosed.load(ordering: .acquiring) }
}

/// An `OutletSet` that any thread may add to, and one takes all of.
struct AtomicOutletSet: ~Copyable {
  private let low = Atomic<UInt64>(0)
  private let high = Atomic<UInt64>(0)

  func insert(_ outlet: Int) {
    let bit: UInt64 = 1 << UInt64(outlet & 63)
    if outlet < 64 { low.bitwiseOr(bit, ordering: .releasing) } else { high.bitwiseOr(bit, ordering: .releasing) }
  }

  /// Empties the set and returns what was in it.
  func takeAll() -> OutletSet { OutletSet(low: AtomicOutletSet.take(low), high: AtomicOutletSet.take(high)) }

  private static func take(_ word: borrowing Atomic<UInt64>) -> UInt64 {
    word.load(ordering: .relaxed) == 0 ? 0 : word.exchange(0, ordering: .acquiring)
  }
}
