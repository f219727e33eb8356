// What goes wrong: connections, the process, the power, the disk.
import Glibc  // errno
import HubBytes
import HubCore
import HubJournal
import HubJournalSupport
import HubMessages
import HubSystem
import HubTransport
import HubTransportSupport
import HubWebSocket

extension World {
  // MARK: Connections

  /// A connection breaks: a part of what was under way arrives. The client notices at once, the hub some time later.
  mutating func cut() throws(Violation) {
    guard let link = links().randomElement(using: &random) else { return }
    diary.note("cut of client", link.client)
    let (sent, arriving) = (link.upward, pick(link.upward + 1))
    arrive(link, arriving)
    try hear(link, pick(link.downward + 1))
    guard clients[link.client].link === link else { return }
    clients[link.client].lose()
    reach[.cuts] += 1
    if arriving > 0, arriving < sent { reach[.cutsInFrame] += 1 }
    link.far.peer?.lose(keeping: 0)
    if oneIn(2) { link.drop(losing: true, reset: oneIn(2)) } else { abandoned.append(link) }
  }

  /// The hub notices that a client is gone, if it has not yet.
  mutating func notice() {
    guard !abandoned.isEmpty else { return }
    abandoned.remove(at: pick(abandoned.count)).drop(losing: true, reset: oneIn(2))
    reach[.unnoticed] += 1
  }

  /// A client stops reading, or reads again.
  mutating func slowDown() {
    if let slow = links().first(where: \.isSlow), oneIn(3) {
      slow.isSlow = false
      return
    }
    guard let link = links().randomElement(using: &random) else { return }
    link.isSlow = true
    reach[.slowClients] += 1
    diary.note("client stops reading", link.client)
  }

  // MARK: The process and the machine

  /// Something happens to the hub or its disk.
  mutating func fail() throws(Violation) {
    switch pick(10) {
    case 0: end()
    case 1:
      outage = .power
      end()
    case 2, 3:
      outage = oneIn(2) ? .kill : .power
      disk.callsUntilDeath = pick(8)
    case 4: if oneIn(3) { disk.syncsUntilFailure = pick(3) }
    case 5, 6: disk.room = disk.room == .max ? pick(600) : .max
    // Not `toggle()`: with the thread sanitizer Swift 6.3.1 makes code of it that LLVM refuses.
    case 7: if oneIn(2) { disk.isMovedAway = !disk.isMovedAway }
    default: break
    }
  }

  /// The incarnation ends: now, where it has not in a call to the disk. What left it before may still reach its
  /// clients.
  mutating func end() {
    diary.note("the hub ends by \(outage)")
    if outage == .power { reach[.powerCuts] += 1 } else { reach[.kills] += 1 }
    noteSockets()
    // A process that dies closes its sockets; a machine without power says nothing.
    let all = links() + abandoned + visitors.map(\.link)
    for link in all { link.far.lose(keeping: pick(link.downward + 1)) }
    incarnation = nil
    for link in all {
      link.isHungUp = true
      if outage == .power { link.far.lose(keeping: .max) }
    }
    abandoned.removeAll()
    loseMachine()
  }

  /// What clients that read too slowly have led to.
  mutating func noteSockets() {
    for counters in incarnation?.socketCounters ?? [] {
      reach[.conflated] += Int(counters.conflated)
      reach[.slowConsumer] += Int(counters.overflowed)
    }
  }

  /// The process is no more, and with the power all that was not synchronised.
  private mutating func loseMachine() {
    disk.revive()
    disk.isMovedAway = false  // a start without it would begin anew, and be right to
    disk.syncsUntilFailure = nil
    if outage == .power {
      disk.cutPower(&random)
      boot = time
    }
    outage = .none
    if theme == .damage, oneIn(3) { spoil() }
  }

  /// A byte of something that was stored changes, where that can be distinguished from a write that was cut.
  private mutating func spoil() {
    guard let name = disk.files.keys.filter({ !$0.hasPrefix("damaged-") }).sorted().randomElement(using: &random),
      let content = disk.files[name]
    else { return }
    let end = name == newestSegment() ? StoredSegment.startOfLastButOne(content.bytes) : content.bytes.count
    guard end > 0 else { return }
    let offset = pick(end)
    // The version: with another byte of the header it would be a newer program's file, which is left alone.
    if (8..<12).contains(offset) { return }
    diary.note("spoils \(name) at, of, last group at", offset, content.bytes.count, end)
    disk.spoil(name, offset, UInt8(1 + pick(255)))
    reach[.spoiled] += 1
  }

  private func newestSegment() -> String? {
    disk.files.keys.filter { $0.hasSuffix(".segment") && !$0.hasPrefix("damaged-") }.max()
  }

  /// The hub is started, by somebody who accepts a loss where there is one.
  mutating func start() throws(Violation) {
    guard incarnation == nil else { return }
    starts += 1
    var policy = DamagePolicy.refuse
    while true {
      var read: [ReadFix] = []
      do throws(JournalError) {
        let incarnation = try HubIncarnation(
          settings, disk: disk, damage: policy, epoch: InlineText("e\(starts)")!, seed: starts &* 0x9E37_79B9_7F4A_7C15,
          now: now, drivers: clients.prefix(World.drivers).map(\.actor.id)
        ) { read.append(($0, $1, $2)) }
        diary.note("the hub starts", Int(starts), incarnation.loss == nil ? 0 : 1)
        self.incarnation = incarnation
        lastTurn = time
        reach[.starts] += 1
        note(read, behind: incarnation.snapshot)
        break
      } catch {
        diary.note("start: \(error)")
        if disk.isDead { return loseMachine() }
        switch (error, policy) {
        case (.damaged, .refuse) where theme == .damage:
          policy = .moveAside
          ledger.forgive()
          // What the hub sent before is void.
          for link in links() where link.isHungUp { link.far.lose(keeping: 0) }
          reach[.losses] += 1
        case (.system(let error, _), _) where error.errno == EIO: disk.syncsUntilFailure = nil  // another try
        // What is moved aside is copied first: somebody makes room for that.
        case (.system(let error, _), .moveAside) where error.errno == ENOSPC: disk.room = .max
        default: throw Violation(text: "the hub does not start: \(error)")
        }
      }
    }
    if let incarnation { try checkPlaces(incarnation) }
  }

  /// After a start each driver is where its newest stored fix has it, unless it was forgotten.
  private mutating func checkPlaces(_ incarnation: HubIncarnation) throws(Violation) {
    for driver in 0..<World.drivers {
      guard let last = storedPlaces[driver].last?.fix, let expected = last.position else { continue }
      let id = clients[driver].actor.id
      guard let position = incarnation.reports[driver]?.position else {
        if theme == .days { continue }
        throw Violation(text: "\(id) has no position after a start, and had one at \(expected.coordinate)")
      }
      reach[.places] += 1
      if hasUnstoredFixes, let time = position.timestamp, time > last.measured.timestamp { continue }
      guard position.timestamp == last.measured.timestamp, position.coordinate == expected.coordinate else {
        throw Violation(text: "\(id) is at \(position) after a start, and was at \(last)")
      }
    }
  }
}
