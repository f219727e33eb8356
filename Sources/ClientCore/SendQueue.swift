// A client's messages, in order, until they are confirmed.
//
// One list for everything that is kept: a fix until a pong's `storedThrough` covers it, another message until its ack.
// A cursor marks what this connection has sent. A new connection moves the cursor to the front; runs of fixes then
// become batches, as the protocol asks, which costs the hub least.

import HubMessages

/// A trip's id, shared by its fixes: 8 bytes in each instead of 73.
final class TripName {
  let id: Identifier
  init(_ id: Identifier) { self.id = id }
}

struct SendQueue {
  enum Payload {
    case fix(Fix, TripName?)
    case message(QueuedMessage)
    /// A run of fixes that an earlier connection did not confirm.
    case resentFixes(QueuedMessage)
    /// Confirmed; `compact` removes it.
    case done
  }

  struct Entry {
    enum State {
      case unsent, sent
      /// Not to be sent yet: fixes that the hub has failed at twice, and messages that are postponed or wait for the
      /// answer to an earlier one.
      case held
    }

    /// Ascending; part of the message's id.
    var number: UInt64
    var state = State.unsent
    /// The hub has failed at it, and it was sent once more.
    var isRepeated = false
    var payload: Payload

    var isSent: Bool { state != .unsent }
  }

  static let fixBytes = MemoryLayout<Entry>.stride

  private(set) var entries: [Entry] = []
  /// Entries before `head` are gone, those before `cursor` sent or done.
  private var head = 0
  private var cursor = 0
  private(set) var bytes = 0
  /// Entries that are not done.
  private(set) var count = 0
  /// Sent and unconfirmed fixes and batches.
  private(set) var unconfirmedFixes = 0
  /// Entries not sent on this connection.
  private(set) var unsent = 0
  /// The highest number sent on this connection; entries are sent in order.
  private(set) var sentThrough: UInt64 = 0
  /// Fixes dropped at the limit.
  private(set) var droppedFixes: UInt64 = 0
  /// When the next of the postponed messages is to be sent again (uptime, ns); `.max` where there is none.
  private(set) var postponedUntil = Int64.max
  /// It is a driver's: moves keep their place among fixes, which name trips and must not overtake their moves.
  private var isDrivers = true

  var hasUnsent: Bool { unsent > 0 }

  // MARK: Adding

  /// False when there is no room even after dropping all fixes.
  mutating func append(_ payload: Payload, number: UInt64, limits: ClientLimits) -> Bool {
    let cost = SendQueue.bytes(of: payload)
    while count >= limits.queuedMessages || bytes + cost > limits.queuedBytes {
      guard dropOldestFix() else { return false }
    }
    compact()
    entries.append(Entry(number: number, payload: payload))
    bytes += cost
    count += 1
    unsent += 1
    return true
  }

  private mutating func dropOldestFix() -> Bool {
    for index in head..<entries.count {
      switch entries[index].payload {
      case .done, .message: continue
      case .fix: droppedFixes += 1
      case .resentFixes(let batch):
        if case .locationBatch(let batch) = batch.message { droppedFixes += UInt64(batch.fixes.count) }
      }
      finish(index)
      return true
    }
    return false
  }

  // MARK: Sending

  /// The index of the next entry to send; unchanged until `sent`.
  mutating func next() -> Int? {
    while cursor < entries.count {
      if !SendQueue.isDone(entries[cursor]), !entries[cursor].isSent, !holdBehindOthers(cursor) { return cursor }
      cursor += 1
    }
    return nil
  }

  /// Holds an unsent entry while an earlier one that it waits for is unanswered; false where there is none.
  private mutating func holdBehindOthers(_ index: Int) -> Bool {
    guard let queued = SendQueue.message(of: entries[index]), queued.subject != nil,
      !keepsPlace(entries[index].payload),
      entries[head..<index].contains(where: { SendQueue.message(of: $0).map(queued.waits) ?? false })
    else { return false }
    entries[index].state = .held
    queued.notBefore = .max
    unsent -= 1
    return true
  }

  /// Lets the messages be sent that waited for this one, since it is answered; `next` holds those that wait for others.
  private mutating func release(behind answered: QueuedMessage) {
    for index in head..<entries.count where entries[index].state == .held {
      guard let queued = SendQueue.message(of: entries[index]), queued.notBefore == .max, queued.waits(for: answered)
      else { continue }
      entries[index].state = .unsent
      unsent += 1
      cursor = min(cursor, index)
    }
  }

  /// The known cost of the next entry to send.
  var costOfNext: Double {
    for entry in entries[min(cursor, entries.count)...] {
      switch entry.payload {
      case .message(let message), .resentFixes(let message): if !entry.isSent { return message.cost }
      case .fix: if !entry.isSent { return 1 }
      case .done: break
      }
    }
    return 1
  }

  /// Marks an entry as sent. Without `keeping` it is removed at once.
  mutating func sent(_ index: Int, keeping: Bool) {
    sentThrough = max(sentThrough, entries[index].number)
    guard keeping else { return finish(index) }
    entries[index].state = .sent
    unsent -= 1
    if SendQueue.holdsFixes(entries[index].payload) { unconfirmedFixes += 1 }
  }

  /// A new connection, a driver's or not: all unconfirmed entries are to be sent, fixes in batches of at most
  /// `maximumBatch`.
  mutating func beginConnection(maximumBatch: Int, isDrivers: Bool) {
    self.isDrivers = isDrivers
    entries = entries[head...].flatMap { FixRun.parts(of: $0, atMost: maximumBatch) }
    head = 0
    for index in head..<entries.count {
      entries[index].state = .unsent
      switch entries[index].payload {
      case .message(let message), .resentFixes(let message): message.cost = 1
      case .fix, .done: break
      }
    }
    batchFixes(atMost: maximumBatch) { _ in true }
    sentThrough = 0
    postponedUntil = .max
  }

  /// Fixes up to this number that were sent but not confirmed are to be sent again, in batches of at most
  /// `maximumBatch`: the hub had time to store them.
  mutating func resendFixes(through number: UInt64, maximumBatch: Int) {
    batchFixes(atMost: maximumBatch) { $0.isSent && $0.number <= number }
  }

  /// Makes batches of the selected fixes.
  private mutating func batchFixes(atMost maximum: Int, _ isChosen: (Entry) -> Bool) {
    var rebuilt: [Entry] = []
    var run = FixRun(maximum: max(1, maximum))
    for entry in entries[head...] {
      switch entry.payload {
      case .done: continue
      case .fix(let fix, let trip) where isChosen(entry):
        if !run.takes(trip) { run.finish(into: &rebuilt) }
        run.append(fix, trip, entry.number)
      case .fix, .message, .resentFixes:
        run.finish(into: &rebuilt)
        rebuilt.append(entry)
      }
    }
    run.finish(into: &rebuilt)
    replaceEntries(rebuilt)
  }

  private mutating func replaceEntries(_ rebuilt: [Entry]) {
    entries = rebuilt
    head = 0
    cursor = 0
    count = entries.count
    bytes = entries.reduce(0) { $0 + SendQueue.bytes(of: $1.payload) }
    unsent = entries.count { !$0.isSent }
    unconfirmedFixes = entries.count { $0.isSent && SendQueue.holdsFixes($0.payload) }
  }

  // MARK: Entries that the caller stores, too

  /// The number of the oldest unconfirmed fix, batch or move: all below are confirmed. O(entries before it).
  var oldestDurable: UInt64? {
    for entry in entries[head...] where SendQueue.isDurable(entry.payload) {
      if case .resentFixes(let batch) = entry.payload { return batch.first ?? entry.number }
      return entry.number
    }
    return nil
  }

  /// Drops all fixes, batches and moves, or all others.
  mutating func withdraw(durable: Bool) {
    for index in entries.indices[head...]
    where !SendQueue.isDone(entries[index]) && SendQueue.isDurable(entries[index].payload) == durable { finish(index) }
    compact()
  }

  private static func isDurable(_ payload: Payload) -> Bool {
    switch payload {
    case .fix, .resentFixes: return true
    case .message(let queued):
      switch queued.message {
      case .locationUpdate, .locationBatch, .tripStatus: return true
      case .driverStatus, .tripChange, .offerDecline, .subscribe, .unsubscribe, .ping, .refresh, .query: return false
      }
    case .done: return false
    }
  }

  /// Whether the order is kept while the hub cannot take it: fixes, batches, and a driver's moves.
  private func keepsPlace(_ payload: Payload) -> Bool {
    if case .message(let queued) = payload, case .tripStatus = queued.message { return isDrivers }
    return SendQueue.isDurable(payload)
  }

  // MARK: Confirming

  /// The message with this number is answered. Nil where there is none.
  mutating func confirm(_ number: UInt64) -> Payload? {
    guard let index = find(number) else { return nil }
    let payload = entries[index].payload
    finish(index)
    return payload
  }

  enum Repetition {
    /// It will not be repeated.
    case never
    /// It is the next to be sent, so that the order is kept as far as possible.
    case first
    /// It is sent again at its time, while others are sent before it.
    case postponed
  }

  /// Has a message repeated at `time` (uptime, ns); with `once`, only if it was not repeated with `once` before.
  mutating func retry(_ number: UInt64, once: Bool, at time: Int64) -> Repetition {
    guard let index = find(number), !once || !entries[index].isRepeated else { return .never }
    if once { entries[index].isRepeated = true }
    guard entries[index].isSent else { return .first }
    if case .message(let queued) = entries[index].payload, !keepsPlace(entries[index].payload) {
      entries[index].state = .held
      queued.notBefore = time
      postponedUntil = min(postponedUntil, time)
      return .postponed
    }
    if SendQueue.holdsFixes(entries[index].payload) { unconfirmedFixes -= 1 }
    unsent += 1
    entries[index].state = .unsent
    cursor = min(cursor, index)
    return .first
  }

  /// Postponed messages whose time has come are to be sent.
  mutating func sendPostponed(at now: Int64) {
    guard now >= postponedUntil else { return }
    postponedUntil = .max
    for index in head..<entries.count where entries[index].state == .held {
      guard case .message(let queued) = entries[index].payload, !keepsPlace(entries[index].payload) else { continue }
      guard queued.notBefore <= now else {
        postponedUntil = min(postponedUntil, queued.notBefore)
        continue
      }
      entries[index].state = .unsent
      unsent += 1
      cursor = min(cursor, index)
    }
  }

  /// Holds fixes that the hub has failed at again until `resendHeld`, so that they do not delay others; false for
  /// everything else.
  mutating func hold(_ number: UInt64) -> Bool {
    guard let index = find(number), SendQueue.isDurable(entries[index].payload) else { return false }
    if case .message(let queued) = entries[index].payload, case .tripStatus = queued.message { return false }
    if entries[index].isSent { entries[index].state = .held }
    return true
  }

  /// Fixes and batches that are held are to be sent again, fixes in batches of at most `maximumBatch`.
  mutating func resendHeld(maximumBatch: Int) {
    let held = (head..<entries.count).filter { entries[$0].state == .held && keepsPlace(entries[$0].payload) }
    if held.isEmpty { return }
    for index in held {
      if case .fix = entries[index].payload { continue }
      entries[index].state = .unsent
    }
    batchFixes(atMost: maximumBatch) { $0.state == .held }
  }

  /// Removes and gives the oldest of fixes, batches and moves, if it is held: a driver's move never is.
  mutating func giveUpHeld() -> Payload? {
    guard let entry = entries[head...].first(where: { SendQueue.isDurable($0.payload) }), entry.state == .held else {
      return nil
    }
    return confirm(entry.number)
  }

  /// Confirms the fixes that a pong covers: sent before its ping, and not newer than its `storedThrough`.
  mutating func confirmFixes(through: Timestamp, sentThrough number: UInt64) {
    for index in head..<entries.count {
      guard entries[index].number <= number else { break }
      guard entries[index].state == .sent else { continue }
      if case .fix(let fix, _) = entries[index].payload, fix.timestamp <= through {
        finish(index)
      }
    }
    compact()
  }

  // MARK: Entries

  /// Whether there is an unconfirmed entry of this number.
  func contains(_ number: UInt64) -> Bool { find(number) != nil }

  private func find(_ number: UInt64) -> Int? {
    var low = head
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].number < number { low = middle + 1 } else { high = middle }
    }
    guard low < entries.count, entries[low].number == number else { return nil }
    if case .done = entries[low].payload { return nil }
    return low
  }

  private mutating func finish(_ index: Int) {
    if entries[index].isSent, SendQueue.holdsFixes(entries[index].payload) { unconfirmedFixes -= 1 }
    if !entries[index].isSent { unsent -= 1 }
    bytes -= SendQueue.bytes(of: entries[index].payload)
    count -= 1
    let message = SendQueue.message(of: entries[index])
    entries[index].payload = .done
    if let message, message.subject != nil { release(behind: message) }
  }

  /// Removes confirmed entries: at the front at once, elsewhere when they are more than half of all.
  private mutating func compact() {
    while head < entries.count, case .done = entries[head].payload { head += 1 }
    if head == entries.count {
      entries.removeAll(keepingCapacity: true)
      head = 0
      cursor = 0
    } else if entries.count - head > 2 * count + 64 || head > 64 && head > entries.count / 2 {
      let sentBefore = entries[head..<max(head, min(cursor, entries.count))].count { !SendQueue.isDone($0) }
      entries.removeAll { SendQueue.isDone($0) }
      head = 0
      cursor = sentBefore
    }
  }

  private static func message(of entry: Entry) -> QueuedMessage? {
    if case .message(let queued) = entry.payload { queued } else { nil }
  }

  private static func isDone(_ entry: Entry) -> Bool {
    if case .done = entry.payload { true } else { false }
  }

  private static func holdsFixes(_ payload: Payload) -> Bool {
    switch payload {
    case .fix, .resentFixes: true
    case .message, .done: false
    }
  }

  private static func bytes(of payload: Payload) -> Int {
    switch payload {
    case .fix: fixBytes
    case .message(let message), .resentFixes(let message): fixBytes + message.bytes
    case .done: 0
    }
  }
}
