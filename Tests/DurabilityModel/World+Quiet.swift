// The end of a history: everybody comes back, everything arrives, and then all of it must fit together.
import HubBytes
import HubCore
import HubJournal
import HubJournalSupport
import HubMessages

extension World {
  /// Lets all troubles pass, and checks what then must hold.
  mutating func quiet() throws(Violation) {
    disk.callsUntilDeath = nil
    disk.syncsUntilFailure = nil
    disk.room = .max
    disk.isMovedAway = false
    outage = .none
    clear()
    try settle()
    // A last fix of each driver: the newest position, for all that look.
    for driver in 0..<World.drivers {
      time += 1000
      measure(driver)
    }
    try settle()
    try checkViews()
    try checkLists()
    try checkFixes()
    try checkState()
    noteSockets()
  }

  /// Those who came to disturb go, and who was slow reads.
  private mutating func clear() {
    for link in abandoned + visitors.map(\.link) { link.drop(losing: true, reset: true) }
    abandoned.removeAll()
    visitors.removeAll()
    for link in links() { link.isSlow = false }
  }

  /// Turns until nothing is under way, nobody keeps anything, and all who want to are subscribed.
  private mutating func settle() throws(Violation) {
    for _ in 0..<60 {
      time += 1000
      try start()
      for number in clients.indices {
        guard let link = clients[number].link else {
          connect(number)
          continue
        }
        guard clients[number].isOpen else { continue }
        if clients[number].actor.role == .driver { makeBatch(number) }
        for topic in 0..<World.topics where clients[number].views[topic].isWanted { ask(number, topic, link) }
        sendKept(number, link)
      }
      try flow()
      if incarnation?.write(now) == nil { end() }  // the journal has stopped: only a start helps
      // What one loop has left for another comes with the next turn.
      let wasQuiet = isQuiet
      try flow()
      if wasQuiet, isQuiet { return }
    }
    throw Violation(text: "nothing comes to rest: \(whatIsLeft)")
  }

  private var isQuiet: Bool {
    guard let incarnation, incarnation.isIdle else { return false }
    return clients.allSatisfy { client in
      guard let link = client.link, client.isOpen, client.kept.isEmpty, client.backlog.isEmpty else { return false }
      return link.isQuiet && client.views.allSatisfy { $0.isWanted == ($0.phase == .on) }
    }
  }

  private var whatIsLeft: String {
    clients.map { "\($0.number): open \($0.isOpen), kept \($0.kept.count), \($0.views.map(\.phase))" }.joined(
      separator: "; ")
  }

  /// All who follow a channel are at the same event, and see the driver at the same place.
  private func checkViews() throws(Violation) {
    for topic in 0..<World.topics {
      let views = clients.map { $0.views[topic] }.filter { $0.phase == .on }
      guard let first = views.first else { continue }
      for view in views {
        guard view.last == first.last, view.epoch == first.epoch else {
          throw Violation(text: "topic \(topic): one is at \(view.last), another at \(first.last)")
        }
        // Where a position came since the last start, it came to all.
        guard view.newest == nil || first.newest == nil || view.newest == first.newest else {
          throw Violation(text: "topic \(topic): one sees the driver at another time than the other")
        }
      }
    }
  }

  /// Somebody new asks for everything from the first event on.
  private mutating func checkLists() throws(Violation) {
    guard theme == .plain || theme == .damage else { return }
    // Ops sees every channel; this one was never here.
    guard let auditor = open(-1, clients[World.ops].actor) else { return }
    _ = try listen(auditor)
    for topic in 0..<World.topics {
      let channel = Names.channels[topic]
      guard let epoch = clients[World.ops].views.compactMap(\.epoch).last else { return }
      let resume = ResumePoint(since: 0, epoch: epoch)
      auditor.send(
        .subscribe(Subscribe(channel: channel, resume: resume)), Names.anyMessage, at: now.timestamp)
      let (answer, list) = try listen(auditor)
      guard let answer, answer.epoch == epoch else { continue }
      guard answer.recovered, list.count == Int(answer.sequence) else {
        throw Violation(text: "\(channel): \(list.count) events of \(answer.sequence), recovered \(answer.recovered)")
      }
      try ledger.check(complete: list, topic: topic, trip: topic < World.trips ? topic : nil, epoch: epoch)
    }
  }

  /// What an auditor receives: the answer, and the events that follow it.
  private mutating func listen(_ link: Link) throws(Violation) -> (Subscribed?, [Publication]) {
    var answer: Subscribed?
    var list: [Publication] = []
    for _ in 0..<2 {
      arrive(link, .max)
      try turn()
      for heard in try link.hear(.max, reader) {
        switch heard {
        case .message(.reply(.subscribed(let found))): answer = found
        case .message(.publication(let publication)): if publication.sequence != nil { list.append(publication) }
        case .message(.reply): break
        case .message(.unknown), .closed, .refused: throw Violation(text: "an auditor received \(heard)")
        }
      }
    }
    return (answer, list)
  }

  /// Each fix that was promised to be stored was read back at some start, or is on the disk now.
  private mutating func checkFixes() throws(Violation) {
    do throws(JournalError) {
      try HubIncarnation.read(disk, settings, now: now) { _, driver, fix in note(fix, of: driver) }
    } catch {
      throw Violation(text: "the disk cannot be read: \(error)")
    }
    for fix in ledger.promisedFixes where !storedFixes[fix.driver].contains(fix.time) {
      throw Violation(text: "driver \(fix.driver)'s fix of \(fix.time) was promised to be stored and is not")
    }
  }

  /// What the hub holds is what a reading of the disk gives, byte for byte.
  private func checkState() throws(Violation) {
    guard let incarnation else { return }
    var here = incarnation.state()
    var there: [[UInt8]]
    do throws(JournalError) { there = try HubIncarnation.read(disk, settings, now: now) { _, _, _ in } } catch {
      throw Violation(text: "the disk cannot be read: \(error)")
    }
    if incarnation.counters.fixesNotStored > 0 {
      // A trip's way, and its driver, include positions that could not be stored; the next record has both.
      here.removeAll { $0[4] == 2 || $0[4] == 10 }
      there.removeAll { $0[4] == 2 || $0[4] == 10 }
    }
    // A driver's record ends with 24 bytes of how it is tracked, and the disk has those of its newest stored fix: a
    // refused one changes the filter, and any message may show the phone's clock better.
    here = here.map { $0[4] == 10 ? $0.dropLast(24) : $0 }
    there = there.map { $0[4] == 10 ? $0.dropLast(24) : $0 }
    guard here != there else { return }
    let differences = here.filter { !there.contains($0) } + there.filter { !here.contains($0) }
    let shown = differences.prefix(2).map { "kind \($0[4]): \($0)" }.joined(separator: "; ")
    throw Violation(text: "the hub holds \(here.count) records, its disk \(there.count): \(shown)")
  }
}
