// The sessions of one loop, by connection slot.
import HubBytes
import HubCore
import HubTransport

/// The sessions of one loop, by connection slot, in chunks that never move: a table of 100,000 grows without copying
/// and without leaving a hole of its old size.
struct SessionTable: ~Copyable {
  // All its slots are initialised when it grows, until `deinit`.
  private var table = ChunkTable<Session>()

  init() {}

  deinit {
    for slot in 0..<endIndex { unsafe table.pointer(slot).deinitialize(count: 1) }
  }

  func isCurrent(_ id: ConnectionID) -> Bool { Int(id.slot) < endIndex && self[Int(id.slot)].connection == id }

  /// The slot of a session that the hub answers; nil where its connection has ended.
  func slot(of session: SessionRef) -> Int? {
    isCurrent(ConnectionID(slot: session.slot, generation: session.generation)) ? Int(session.slot) : nil
  }

  /// The slot of an open session that the hub answers; nil where it has ended or is closing, and so has released its
  /// subscriptions.
  func openSlot(of session: SessionRef) -> Int? { slot(of: session).flatMap { self[$0].phase == .open ? $0 : nil } }

  /// The slot of the session or the waiting request of an asker; nil where neither waits any more.
  func slot(of asker: Asker) -> Int? {
    if asker.replyTo != nil { return openSlot(of: asker.session) }
    return slot(of: asker.session).flatMap { self[$0].exchange?.waiting != nil ? $0 : nil }
  }

  /// The request that waits for the hub's answer, and what it awaits; nil where none waits.
  func waitingRequest(of session: SessionRef) -> (request: HTTPRequest, awaited: Awaited, exchange: Exchange)? {
    guard let exchange = slot(of: session).flatMap({ self[$0].exchange }),
      case .waiting(let request, let awaited) = exchange.state
    else { return nil }
    return (request, awaited, exchange)
  }

  /// One more than the largest valid slot.
  var endIndex: Int { table.capacity }

  mutating func makeRoom(for slot: Int) {
    while endIndex <= slot {
      let first = endIndex
      table.grow()
      for slot in first..<endIndex { unsafe table.pointer(slot).initialize(to: Session()) }
    }
  }

  /// In-place access. (A coroutine accessor would cost a heap allocation where it is not inlined.)
  subscript(slot: Int) -> Session {
    @inline(__always) unsafeAddress { unsafe UnsafePointer(pointer(slot)) }
    @inline(__always) unsafeMutableAddress { unsafe pointer(slot) }
  }

  @inline(__always)
  private func pointer(_ slot: Int) -> UnsafeMutablePointer<Session> {
    precondition(slot >= 0 && slot < endIndex)
    return unsafe table.pointer(slot)
  }
}
