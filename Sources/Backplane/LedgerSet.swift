// Several ledgers as one, for more claims than one engine takes: each trip, driver and key is in the one whose address
// weighs most for it (rendezvous hashing), and the members, whom all hubs must see, in that of a fixed word.
//
// It is up only while all of them are: without one, a hub would take the keys in that one for unowned. So all hubs name
// the same ledgers, in any order; each sends the others a digest of its own (`MemberStatus.ledgers`).

/// The ledgers of a cluster that has several. Only the thread of their event loop uses it.
public final class LedgerSet: Ledger {
  private struct Part {
    let ledger: any Ledger
    /// Its event `up`, held back until all ledgers are up.
    var up: LedgerEvent?
    var memory = LedgerMemory()
  }

  private let names: [String]
  private var parts: [Part]

  /// Ledgers with their names, by which all hubs find the same one for each key.
  public init(_ ledgers: [(name: String, ledger: any Ledger)]) {
    precondition(!ledgers.isEmpty)
    names = ledgers.map(\.name)
    parts = ledgers.map { Part(ledger: $0.ledger) }
  }

  public var isUp: Bool { parts.allSatisfy { $0.ledger.isUp } }

  /// The index of the ledger that has what a question is about. O(n log n) of the ledgers.
  func home(of question: LedgerQuestion) -> Int {
    let key =
      switch question {
      case .incarnation, .renew, .leave, .members: "members"
      case .claim(let key, _, _, _, _), .locate(let key, _), .owner(let key), .release(let key, _),
        .concede(let key, _):
        key
      }
    return Rendezvous.order(names, for: key)[0]
  }

  public func ask(_ question: LedgerQuestion, ticket: UInt64) -> Bool {
    isUp && parts[home(of: question)].ledger.ask(question, ticket: ticket)
  }

  public func takeEvents(into events: inout [LedgerEvent]) {
    var own: [LedgerEvent] = []
    for index in parts.indices {
      parts[index].ledger.takeEvents(into: &own)
      for event in own {
        switch event {
        case .answer: events.append(event)
        case .up: parts[index].up = event
        case .down:
          (parts[index].up, parts[index].memory) = (nil, LedgerMemory())
          events.append(event)
        case .memory(let memory):
          parts[index].memory = memory
          // The one that is nearest to its limit is full first.
          let fullest = parts.map(\.memory).max { ($0.share, $0.used) < ($1.share, $1.used) }
          if let fullest { events.append(.memory(fullest)) }
        }
      }
      own.removeAll(keepingCapacity: true)
    }
    guard isUp else { return }
    for index in parts.indices {
      if let up = parts[index].up { events.append(up) }
      parts[index].up = nil
    }
  }
}
