// Random histories of offers: drivers that accept, decline, are silent, leave and come back, trips that are cancelled,
// and a hub that dies at any moment and continues from its journal. Whatever happens: no driver is asked twice for one
// trip, none has two open offers, each offer ends once, no trip has two winners, and each search ends.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct OfferHistoryTests {
  @Test("Histories of offers keep what is promised, and reach each end of an offer and of a search")
  func histories() throws {
    var reached: [String: Int] = [:]
    for seed in 0..<64 as Range<UInt64> {
      var history = OfferHistory(seed: seed)
      do { try history.run(steps: 220) } catch { throw Broken("seed \(seed): \(error)") }
      for (word, count) in history.reached { reached[word, default: 0] += count }
    }
    let words = [
      "offer accepted", "offer declined", "offer expired", "offer taken", "offer cancelled", "offer unavailable",
      "search taken", "search unserved", "search cancelled", "deaths", "records lost",
    ]
    for word in words { #expect(reached[word, default: 0] >= 10, "\(word): \(reached)") }
  }
}

private struct OfferHistory {
  static let drivers = 8
  static let trips = 6

  private var random: SplitMix64
  private var bench: DurableBench
  /// What was stored in all incarnations.
  private var kept: [[UInt8]] = []
  /// By driver and trip: how its offer stands, from the events of its channel in their order.
  private var offers: [String: String] = [:]
  private var winners: [String: String] = [:]
  private var ends: [String: String] = [:]
  private var begun: Set<String> = []
  private var sessions: [Int: SessionRef] = [:]
  private var generation: UInt32 = 0
  private var seen: [Channel: UInt64] = [:]
  private var deaths = 0
  private var lost = 0

  /// How often each end was reached.
  var reached: [String: Int] {
    var counts = ["deaths": deaths, "records lost": lost]
    for state in offers.values { counts["offer \(state)", default: 0] += 1 }
    for end in ends.values { counts["search \(end)", default: 0] += 1 }
    return counts
  }

  init(seed: UInt64) {
    random = SplitMix64(seed: seed &+ 77)
    bench = try! DurableBench()
  }

  private mutating func whole(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

  mutating func run(steps: Int) throws {
    try follow()
    for number in 1...Self.drivers { try connect(number) }
    for _ in 0..<steps { try step() }
    // Everybody hangs up: what is open ends by itself.
    for _ in 0..<900 where begun.contains(where: { ends[$0] == nil }) { try pass(seconds: 1) }
    for trip in begun { #expect(ends[trip] != nil, "\(trip) never ended: \(offers)") }
    for (offer, state) in offers { #expect(state != "made", "\(offer) is open for ever") }
  }

  private mutating func step() throws {
    let (driver, trip) = (whole(1...Self.drivers), "T\(whole(1...Self.trips))")
    switch whole(0...15) {
    case 0...2: try request(trip)
    case 3...4: try accept(driver, trip)
    case 5...7: try decline(driver, trip)
    case 8: try status(driver)
    case 9: if sessions[driver] == nil { try connect(driver) } else { try leave(driver) }
    case 10: try cancel(trip)
    case 11: try die()
    case 12: try move(driver)
    case _: try pass(seconds: Double(whole(1...9)))
    }
  }

  // MARK: What happens

  private mutating func turn(_ inputs: HubInput...) throws {
    try hear(bench.turn(inputs))
    if whole(0...3) > 0 { try hear(bench.store()) }
  }

  private mutating func pass(seconds: Double) throws {
    bench.advance(seconds: seconds)
    try turn()
    try hear(bench.store())
  }

  private mutating func request(_ trip: String) throws {
    guard !begun.contains(trip) else { return }
    let criteria = OfferCriteria(atOnce: whole(1...4), seconds: whole(5...20), limit: whole(1...6))
    try turn(
      requested(
        trip, by: Actor(role: .ops, id: id("o")), criteria, at: bench.now, message: bench.freshMessage()))
  }

  private mutating func accept(_ driver: Int, _ trip: String) throws {
    try turn(
      .tripStatus(
        TripStatusInput(
          session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .driver, id: id("D\(driver)")),
          messageID: bench.freshMessage(),
          report: TripStatusReport(tripID: id(trip), status: .accepted, timestamp: bench.now.timestamp),
          tripIsGranted: false)))
  }

  private mutating func decline(_ driver: Int, _ trip: String) throws {
    try turn(
      .offerDecline(
        SessionRef(outlet: 0, slot: 90, generation: 1), bench.freshMessage(), OfferDecline(tripID: id(trip)),
        by: id("D\(driver)")))
  }

  private mutating func cancel(_ trip: String) throws {
    try turn(
      .tripStatus(
        TripStatusInput(
          session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .ops, id: id("o")),
          messageID: bench.freshMessage(),
          report: TripStatusReport(tripID: id(trip), status: .cancelled, timestamp: bench.now.timestamp),
          tripIsGranted: true)))
  }

  private mutating func connect(_ driver: Int) throws {
    generation += 1
    let session = SessionRef(outlet: 0, slot: UInt32(driver), generation: generation)
    sessions[driver] = session
    try turn(.driverConnecting(session, id("D\(driver)")))
    try move(driver)
  }

  private mutating func leave(_ driver: Int) throws {
    guard let session = sessions.removeValue(forKey: driver) else { return }
    try turn(.driverDisconnected(session))
  }

  private mutating func status(_ driver: Int) throws {
    guard let session = sessions[driver] else { return }
    let report = DriverStatusReport(status: whole(0...2) == 0 ? .unavailable : .available)
    try turn(.driverStatus(session, bench.freshMessage(), report))
  }

  private mutating func move(_ driver: Int) throws {
    guard let session = sessions[driver] else { return }
    bench.advance(seconds: 1)
    let place = offerPickup.moved(90, Double(driver) * 100 + Double(whole(0...40)))
    try turn(
      .fix(
        FixInput(
          session: session, messageID: bench.freshMessage(), sent: bench.now.timestamp, received: bench.now,
          update: LocationUpdate(fix: Fix(coordinate: place, timestamp: bench.now.timestamp, accuracy: 5)),
          tripIsGranted: false)))
  }

  /// The hub dies: what was handed over and not stored may be there or not, in whole groups.
  private mutating func die() throws {
    let stored = bench.stored
    let there = stored + whole(0...(bench.submitted.count - stored))
    kept += bench.submitted.prefix(there)
    deaths += 1
    lost += bench.submitted.count - there
    let uptime = bench.now.uptime + Int64(whole(1...30)) * 1_000_000_000
    bench = try DurableBench(reading: kept, uptime: uptime)
    sessions = [:]
    try hear(bench.store())
    try follow()
    for number in 1...Self.drivers where whole(0...3) > 0 { try connect(number) }
  }

  /// Subscribes to all channels from where each was heard last.
  private mutating func follow() throws {
    let channels: [Channel] =
      (1...Self.drivers).map { .driver(id("D\($0)")) } + (1...Self.trips).map { .trip(id("T\($0)")) }
    for (slot, channel) in channels.enumerated() {
      try hear(bench.store())
      let outputs = bench.turn([bench.subscribe(channel, since: seen[channel, default: 0], slot: UInt32(slot) + 200)])
      let all = outputs + bench.store()
      for case .subscribed(_, _, let answer, let missed, _) in all {
        guard answer.recovered else { continue }
        for publication in missed { try hear(publication) }
      }
      try hear(all)
    }
  }

  // MARK: What is heard

  private mutating func hear(_ outputs: [HubOutput]) throws {
    for case .delivery(let delivery) in outputs { try hear(delivery.publication) }
  }

  private mutating func hear(_ publication: Publication) throws {
    let channel = publication.channel
    switch publication.body {
    case .offer(let offer):
      try count(offer.sequence, channel)
      guard case .driver(let driver) = channel else { throw Broken("an offer on \(channel)") }
      try hear(offer, "\(driver)")
    case .tripUpdate(let update):
      try count(update.sequence, channel)
      guard case .trip = channel else { return }
      if update.status == .requested { begun.insert("\(update.tripID)") }
      if update.status == .accepted, let driver = update.driverID {
        if let winner = winners["\(update.tripID)"] { throw Broken("\(update.tripID): \(winner) and \(driver)") }
        winners["\(update.tripID)"] = "\(driver)"
        end("\(update.tripID)", "taken")
        let key = "\(driver) \(update.tripID)"
        if offers[key] != "made" { throw Broken("\(key) accepted without an offer: \(offers[key] ?? "none")") }
        offers[key] = "accepted"
      } else if update.status == .cancelled {
        end("\(update.tripID)", "cancelled")
      }
    case .notification(let made):
      try count(made.sequence, channel)
      if made.kind == .unserved, case .trip(let trip) = channel {
        if ends["\(trip)"] == "unserved" { throw Broken("\(trip) is unserved twice") }
        end("\(trip)", "unserved")
      }
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats: break
    }
  }

  private mutating func end(_ trip: String, _ how: String) { if ends[trip] == nil { ends[trip] = how } }

  private mutating func count(_ sequence: UInt64, _ channel: Channel) throws {
    guard sequence == seen[channel, default: 0] + 1 else {
      throw Broken("\(channel) \(sequence) behind \(seen[channel, default: 0])")
    }
    seen[channel] = sequence
  }

  private mutating func hear(_ offer: Offer, _ driver: String) throws {
    let key = "\(driver) \(offer.tripID)"
    switch offer.state {
    case .made:
      if let state = offers[key] { throw Broken("\(key) is asked twice; before \(state)") }
      if let open = offers.first(where: { $0.key.hasPrefix(driver + " ") && $0.value == "made" }) {
        throw Broken("\(key) while \(open.key) is open")
      }
      offers[key] = "made"
    case .withdrawn(let reason):
      guard offers[key] == "made" else { throw Broken("\(key) \(reason) behind \(offers[key] ?? "nothing")") }
      offers[key] = "\(reason.name)"
    }
  }
}

private struct Broken: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}
