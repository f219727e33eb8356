// What waits in the second lane (Backlog.swift), and what waits behind it. Invariants:
// - A live input is handled in the turn in which it came, unless its own driver has a waiting batch: then it waits
//   behind that, and so does the rest of the driver's session. A fix that overtook its driver's batch would make it
//   history, and the trip would be measured in a straight line; a move that overtook it would end the trip before its
//   last fixes.
// - Batches are handled oldest first, and so are resumes. While resumes wait, other subscriptions wait behind them, so
//   that no session is unsubscribed before it is subscribed.
// - The lane is bounded (`HubLimits.waitingFixes`, `waitingResumes`): beyond that a batch or a resume is refused with
//   `rate_limited`, and live fixes overtake their driver's batch.
import HubMessages

extension Hub {
  /// Handles a batch, or defers it. One that was posted for another hub's driver goes there.
  mutating func admit(_ input: BatchInput, _ mustHandleLocally: Bool = false) {
    if let driver = input.driverID, forwardIfRemote(.batch(input, of: driver), mustHandleLocally) { return }
    let count = input.batch.fixes.count
    guard let driver = driver(of: input) else {
      counters.fixesReceived += UInt64(count)
      counters.fixesOrphaned += UInt64(count)
      return refuseReplaced(input.session, input.messageID)
    }
    switch backlog.admit(fixes: count, behind: Int(drivers[driver].waiting), limits) {
    case .now: handle(input, driver: driver)
    case .waits: deferInput(.batch(input), driver: driver, cost: count)
    case .refused:
      counters.fixesReceived += UInt64(count)
      refuseOverloaded(input)
    }
  }

  private mutating func driver(of input: BatchInput) -> Int? {
    guard let id = input.driverID else { return drivers.driver(of: input.session) }
    let wasHere = isHere(.driver(id))
    guard let driver = findOrInsertDriver(id) else {
      refuse(input.session, input.messageID, .rateLimited, "this hub's driver table is full", retryAfter: 60)
      return nil
    }
    if channels.isInCluster, !wasHere { arrive(driver, seizes: input.seizesDriver) }
    return driver
  }

  private mutating func deferInput(_ input: HubInput, driver: Int, cost: Int) {
    drivers.count(waiting: 1, of: driver)
    backlog.append(batch: Backlog.Entry(input: input, driver: drivers.handle(of: driver), cost: cost))
  }

  /// Defers an input that must wait behind others; false where it need not.
  mutating func deferIfBehind(_ input: HubInput) -> Bool {
    switch input.lane {
    case .ofDriver(let session):
      guard let driver = drivers.driver(of: session), drivers[driver].waiting > 0, backlog.fixes < limits.waitingFixes
      else { return false }
      deferInput(input, driver: driver, cost: 1)
      return true
    case .ofSubscriptions:
      guard backlog.hasResumes else { return false }
      backlog.append(resume: Backlog.Entry(input: input, driver: nil, cost: 1))
      return true
    case .free: return false
    }
  }

  /// Handles a subscription, or defers it: one that resumes, and what comes behind that.
  mutating func admit(_ input: SubscribeInput) {
    let limit = input.actor.role.share(of: limits.waitingResumes)
    switch backlog.admit(resuming: input.request.resume != nil, limit: limit) {
    case .now: subscribe(input)
    case .waits: backlog.append(resume: Backlog.Entry(input: .subscribe(input), driver: nil, cost: 1))
    case .refused: refuseSubscription(input, counters.refuseResume())
    }
  }

  /// Handles what the credit covers, at the end of a turn.
  @inline(__always)
  mutating func handleBacklog() {
    backlog.endLive()
    if !backlog.isEmpty { handleWaiting() }
    backlog.endTurn()
  }

  @inline(never)
  private mutating func handleWaiting() {
    while let entry = backlog.next() { handle(entry) }
    if !backlog.isEmpty { hasMoreDue = true }
  }

  private mutating func handle(_ entry: Backlog.Entry) {
    // A driver is forgotten only a day after its last message, long after this.
    guard let driver = entry.driver.flatMap({ drivers.current($0) }) else { return dispatch(entry.input) }
    drivers.count(waiting: -1, of: driver)
    // A driver that has left for another hub has no session here: its client sends again there, and posts follow it.
    let isElsewhere = drivers[driver].isElsewhere
    if case .batch(let input) = entry.input, !isElsewhere || input.session.outlet == channels.clusterOutlet {
      return self.handle(input, driver: driver)
    }
    guard case .fix(let input) = entry.input, !isElsewhere else { return dispatch(entry.input) }
    unsafe withUnsafePointer(to: input) { unsafe self.handle(FixInPlace($0), driver: driver) }
  }
}
