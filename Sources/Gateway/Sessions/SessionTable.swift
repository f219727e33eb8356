// The sessions of one loop, by connection slot.
import HubBytes
import HubCore
import HubTransport

/// The sessions of one loop, by connection slot: in chunks that never move, so that a table of 100,000 grows without
/// copying and without leaving a hole of its old size.
struct SessionTable: ~Copyable {
  // All its places are initialised when it grows, until `deinit`.
  private var table = ChunkTable<Session>()

  init() {}

  deinit {
    for slot in 0..<endIndex { unsafe table.pointer(slot).deinitialize(count: 1) }
  }

  func isCurrent(_ id: ConnectionID) -> Bool { Int(id.slot) < endIndex && self[Int(id.slot)].connection == id }

  /// The slot of the connection that the hub's answer is for, unless it has gone.
  func slot(of session: SessionRef) -> Int? {
    isCurrent(ConnectionID(slot: session.slot, generation: session.generation)) ? Int(session.slot) : nil
  }

  /// The slot of the open session that the hub's answer is for; nil where it has gone or is closing: one that is
  /// closing gave its subscriptions back already.
  func openSlot(of session: SessionRef) -> Int? { slot(of: session).flatMap { self[$0].phase == .open ? $0 : nil } }

  /// The slot of the session whose message, or of the connection whose request, waits for an answer; nil where nobody
  /// does any more.
  func slot(of asker: Asker) -> Int? {
    if asker.replyTo != nil { return openSlot(of: asker.session) }
    return slot(of: asker.session).flatMap { self[$0].exchange?.waiting != nil ? $0 : nil }
  }

  /// The request that waits for an answer of the hub, and for which; nil where it does no more.
  func waitingRequest(of session: SessionRef) -> (request: HTTPRequest, awaited: Awaited, exchange: Exchange)? {
    guard let exchange = slot(of: session).flatMap({ self[$0].exchange }),
      case .waiting(let request, let awaited) = exchange.state
    else { return nil }
    return (request, awaited, exchange)
  }

  /// One more than the largest slot that may be asked for.
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
