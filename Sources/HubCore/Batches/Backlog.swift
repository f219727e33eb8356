// The second lane: large work that can wait, so that a thousand drivers who leave a tunnel, or a thousand riders who
// reconnect at once, do not delay live positions.
//
// A turn handles its live inputs first. Batches and resumes are paid for with credit, counted in fixes: each live input
// earns a third of one, each turn a fixed amount, up to a limit. A turn without live inputs handles one entry even
// without credit, and the credit is full again when nothing waits any more.
// What the credit covers is handled at once, in order; the rest waits here, oldest first. So under live load the second
// lane takes at most a quarter of the time, and without load nothing waits. Credit is counted, not measured, so that a
// run can be repeated.
//
// A driver's messages keep their order: those behind a waiting batch wait, too (Hub+Backlog.swift).

/// Inputs that wait, oldest first, and their credit.
struct Backlog {
  /// An input, and the driver it came from: its session may have ended, and its fixes are still valid.
  struct Entry {
    var input: HubInput
    var driver: Handle?
    var cost: Int
  }

  /// Credit for a turn itself: with its system calls it costs as much as some 50 live inputs, each of which earns a
  /// third.
  static let creditOfTurn = 16

  private var batches = FirstInFirstOut<Entry>()
  private var resumes = FirstInFirstOut<Entry>()
  private(set) var credit = HubLimits.backlogCredit
  /// Live inputs of this turn.
  private var live = 0
  /// Batches and resumes alternate: whether a resume was preferred last.
  private var prefersResume = false
  private var servedOneThisTurn = false
  /// Fixes in batches that wait.
  private(set) var fixes = 0

  var isEmpty: Bool { batches.isEmpty && resumes.isEmpty }
  var hasResumes: Bool { !resumes.isEmpty }
  /// Resumes and other subscriptions that wait.
  var waitingResumes: Int { resumes.count }

  @inline(__always)
  mutating func countLive() { live += 1 }

  mutating func spend(_ cost: Int) { credit -= cost }

  /// Whether an input is handled at once, deferred or refused.
  enum Admission {
    case now, waits, refused
  }

  /// Decides about a batch of `new` fixes, of whose driver `waiting` messages wait; pays for one that is handled now.
  mutating func admit(fixes new: Int, behind waiting: Int, _ limits: HubLimits) -> Admission {
    if batches.isEmpty, credit > 0 {
      spend(new)
      return .now
    }
    return fixes + new <= limits.waitingFixes && waiting < limits.waitingPerDriver ? .waits : .refused
  }

  /// Decides about a subscription, which may not overtake others. One that resumes is refused behind `limit` of them.
  func admit(resuming: Bool, limit: Int) -> Admission {
    if !hasResumes, !resuming || credit > 0 { return .now }
    return !resuming || waitingResumes < limit ? .waits : .refused
  }

  mutating func append(batch entry: Entry) {
    fixes += entry.cost
    batches.append(entry)
  }

  mutating func append(resume entry: Entry) { resumes.append(entry) }

  /// Adds the credit that a turn has earned, after all its live inputs.
  mutating func endLive() { credit = min(credit + live / 3 + Backlog.creditOfTurn, HubLimits.backlogCredit) }

  /// Takes the oldest entry of the one kind or the other, alternately; nil where none is left, or no credit. A turn
  /// without live inputs gets its first entry without credit.
  mutating func next() -> Entry? {
    guard !isEmpty, credit > 0 || (live == 0 && !servedOneThisTurn) else { return nil }
    prefersResume = !prefersResume
    let takesResume = resumes.isEmpty ? false : batches.isEmpty || prefersResume
    guard let entry = takesResume ? resumes.next() : batches.next() else { return nil }
    if !takesResume { fixes -= entry.cost }
    credit -= entry.cost
    servedOneThisTurn = true
    return entry
  }

  /// Ends the turn.
  mutating func endTurn() {
    if live == 0, isEmpty { credit = HubLimits.backlogCredit }
    (live, servedOneThisTurn) = (0, false)
  }
}

extension HubInput {
  /// What an input may not overtake.
  enum Lane {
    /// Waiting messages of the session's driver.
    case ofDriver(SessionRef)
    /// Waiting subscriptions, one of which it may end.
    case ofSubscriptions
    /// Nothing; the order of batches and subscriptions is decided where they are admitted.
    case free
  }

  var lane: Lane {
    switch self {
    case .fix(let fix): .ofDriver(fix.session)
    case .driverStatus(let session, _, _, _, _), .ping(let session, _, _, _): .ofDriver(session)
    case .tripStatus(let move): .ofDriver(move.session)
    case .tripChange(let change): .ofDriver(change.session)
    case .offerDecline(let session, _, _, _): .ofDriver(session)
    case .unsubscribe, .leaveView: .ofSubscriptions
    case .batch, .subscribe, .driverConnecting, .driverDisconnected, .vehicle, .loopStalled, .released, .name, .query,
      .trips, .offer, .notify, .fences, .credentials, .audit, .knownFixes, .areaSnapshots, .figures, .cluster:
      .free
    }
  }
}

extension FirstInFirstOut {
  /// Continues the work of the elements, oldest first, until `budget` is used up; gives those that are done. `advance`
  /// takes from the budget what it uses; true where the element is done. One that is not goes to the end of the queue,
  /// so that a short one need not wait for a long one.
  mutating func advance(_ budget: Int, _ advance: (inout Element, inout Int) -> Bool) -> [Element] {
    var (budget, done): (Int, [Element]) = (budget, [])
    while budget > 0, var element = next() {
      if advance(&element, &budget) { done.append(element) } else { append(element) }
    }
    return done
  }
}

/// A queue in an array, whose front is freed in large pieces.
package struct FirstInFirstOut<Element> {
  private var elements: [Element?] = []
  private var head = 0

  package init() {}

  var count: Int { elements.count - head }
  var isEmpty: Bool { count == 0 }
  package var first: Element? { head < elements.count ? elements[head] : nil }

  package mutating func append(_ element: Element) { elements.append(element) }

  /// O(1), amortised.
  package mutating func next() -> Element? {
    guard head < elements.count else { return nil }
    let element = elements[head]
    elements[head] = nil
    head += 1
    if head == elements.count {
      elements.removeAll(keepingCapacity: elements.capacity <= 4096)
      head = 0
    } else if head >= 4096, head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }
}
