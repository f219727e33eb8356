// The clients: pairs of a driver and a rider. The driver begins trips, takes them through all their states, and sends
// where it is, half of the drivers in batches of ten, the others live. Its rider follows each trip from before it
// begins.
import HubClientLoop
import HubDurabilityModel
import HubGeo
import HubMessages
import HubSystem
import HubTransport

final class Crowd: ClientLoopDelegate {
  private struct Pair {
    let driverID: Identifier
    let driver: ClientID
    let rider: ClientID
    var tripNumber = 0
    var status: TripStatus?
    /// The rider's subscription to the trip was answered: it may begin.
    var isFollowed = false
    /// The move on its way.
    var move: (message: MessageID, status: TripStatus)?
    var batch: [Fix] = []
    var batches: [MessageID: [Fix]] = [:]
    var lastTime: Int64 = 0

    var trip: Identifier { Identifier("\(driverID)-\(tripNumber)")! }
  }

  private static let order: [TripStatus] = [
    .requested, .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed,
  ]

  let loop: ClientLoop
  var findings = Findings()
  private(set) var promisedFixes: Set<DrivenFix> = []
  /// Every fix that a driver handed to its client.
  private(set) var allFixes: Set<DrivenFix> = []
  private(set) var opened = 0
  private let seed: UInt64
  private let count: Int
  private var pairs: [Pair] = []
  private var address: SocketAddress?
  private var began: Int64 = 0
  private var lastTick: Int64 = 0
  private var isStopped = false
  private var witnesses: [Int: Witness] = [:]

  init(pairs: Int, seed: UInt64) throws(SystemError) {
    count = pairs
    self.seed = seed
    loop = try ClientLoop()
    loop.delegate = self
  }

  var resent: UInt64 { pairs.reduce(0) { $0 + loop.session($1.driver).counters.fixesResent } }

  // MARK: Beginning and end

  func connect(to address: SocketAddress) throws {
    self.address = address
    began = ClockReading.read().unixMilliseconds
    for number in 0..<count {
      let driver = try add("role=driver&id=d\(number)", number: UInt64(number) * 2)
      let rider = try add("role=rider&id=r\(number)", number: UInt64(number) * 2 + 1)
      pairs.append(Pair(driverID: Identifier("d\(number)")!, driver: driver, rider: rider))
      loop.subscribe(rider, to: .trip(pairs[number].trip))
    }
  }

  private func add(_ query: String, number: UInt64) throws -> ClientID {
    var configuration = ClientConfiguration(url: try HubURL(address: address!, target: "/v1/ws?\(query)"))
    configuration.limits.firstDelay = 0.02
    configuration.limits.longestDelay = 0.1
    configuration.limits.spreadSeconds = 0.05
    configuration.limits.resubscribeSeconds = 0.05
    configuration.limits.queuedMessages = 1 << 16
    configuration.limits.queuedBytes = 64 << 20
    configuration.seed = seed &+ number
    return loop.add(configuration)
  }

  /// Drivers begin nothing new.
  func stop() { isStopped = true }

  /// Nothing waits to be sent, acked or heard.
  var isAtRest: Bool {
    pairs.allSatisfy { $0.move == nil && $0.batches.isEmpty && loop.session($0.driver).unconfirmed == 0 }
      && witnesses.values.allSatisfy(\.isDone)
  }

  /// What is not at rest, for who has to find out why.
  private var restless: String {
    let waiting = pairs.filter { $0.move != nil || !$0.batches.isEmpty || loop.session($0.driver).unconfirmed > 0 }
    let texts = waiting.prefix(5).map { pair in
      "\(pair.driverID): move \(pair.move != nil), \(pair.batches.count) batches, "
        + "\(loop.session(pair.driver).unconfirmed) unconfirmed, \(loop.session(pair.driver).state)"
    }
    return "\(waiting.count) drivers (\(texts.joined(separator: "; "))), "
      + "\(witnesses.values.count { !$0.isDone }) witnesses"
  }

  func noteRest() {
    if !isAtRest { findings.fail("after a minute of quiet something is still not acked or not shown: \(restless)") }
    for pair in pairs where loop.session(pair.driver).counters.fixesDropped > 0 {
      findings.fail("\(pair.driverID)'s client dropped fixes")
    }
  }

  // MARK: Driving

  func tick(interval: Int64) {
    let now = ClockReading.read()
    guard now.uptimeNanoseconds >= lastTick + interval else { return }
    lastTick = now.uptimeNanoseconds
    for number in pairs.indices {
      if loop.session(pairs[number].driver).state == .open, !isStopped { loop.ping(pairs[number].driver) }
      if !isStopped { drive(number, now.unixMilliseconds) }
      if isStopped { flushBatch(number) }
      move(number, now.unixMilliseconds)
    }
  }

  private func drive(_ number: Int, _ milliseconds: Int64) {
    guard milliseconds > pairs[number].lastTime else { return }
    pairs[number].lastTime = milliseconds
    let meters = Double(milliseconds - began) / 1000 * KillRun.metersPerSecond
    let place = Coordinate(latitude: 10 + Double(number) + meters / 111_195, longitude: 13)!
    let fix = Fix(coordinate: place, timestamp: Timestamp(milliseconds: milliseconds), accuracy: 5)
    allFixes.insert(DrivenFix(driver: pairs[number].driverID, time: milliseconds))
    if number % 2 == 0 {
      pairs[number].batch.append(fix)
      if pairs[number].batch.count == 10 { flushBatch(number) }
    } else {
      loop.send(fix, trip: pairs[number].status == nil ? nil : pairs[number].trip, from: pairs[number].driver)
    }
  }

  private func flushBatch(_ number: Int) {
    let fixes = pairs[number].batch
    guard !fixes.isEmpty else {
      // Live fixes are known to be stored by the next pong.
      if loop.session(pairs[number].driver).unconfirmed > 0 { loop.ping(pairs[number].driver) }
      return
    }
    let trip = pairs[number].status == nil ? nil : pairs[number].trip
    let batch = LocationBatch(tripID: trip, fixes: fixes.map { .success($0) })
    guard let message = loop.send(batch, from: pairs[number].driver) else { return }
    pairs[number].batch.removeAll()
    pairs[number].batches[message] = fixes
  }

  private func move(_ number: Int, _ milliseconds: Int64) {
    guard pairs[number].move == nil else { return }
    let status: TripStatus
    if let last = pairs[number].status, let index = Self.order.firstIndex(of: last) {
      status = Self.order[index + 1]
    } else {
      guard !isStopped, pairs[number].isFollowed else { return }
      status = Self.order[0]
    }
    let report = TripStatusReport(
      tripID: pairs[number].trip, status: status, timestamp: Timestamp(milliseconds: milliseconds),
      riderID: Identifier("r\(number)"))
    guard let message = loop.send(report, from: pairs[number].driver) else { return }
    pairs[number].move = (message, status)
  }

  private func acked(_ number: Int, _ message: MessageID) {
    if let fixes = pairs[number].batches.removeValue(forKey: message) {
      findings.ackedBatches += 1
      for fix in fixes {
        promisedFixes.insert(DrivenFix(driver: pairs[number].driverID, time: fix.timestamp.milliseconds))
      }
    } else if let move = pairs[number].move, move.message == message {
      findings.acked(pairs[number].trip, move.status)
      pairs[number].move = nil
      pairs[number].status = move.status
      guard move.status == .completed else { return }
      pairs[number].status = nil
      pairs[number].tripNumber += 1
      pairs[number].isFollowed = false
      loop.subscribe(pairs[number].rider, to: .trip(pairs[number].trip))
    }
  }

  // MARK: Witnesses

  /// Somebody new asks for the present trips of all, and those before them.
  func beginAudit() {
    var trips: [Identifier] = []
    for pair in pairs {
      trips.append(pair.trip)
      if pair.tripNumber > 0 { trips.append(Identifier("\(pair.driverID)-\(pair.tripNumber - 1)")!) }
    }
    witness(trips)
  }

  /// … and for every trip that there was.
  func auditAll() {
    let trips = findings.tripIDs.sorted { "\($0)" < "\($1)" }
    for start in stride(from: 0, to: trips.count, by: 200) {
      witness(Array(trips[start..<min(start + 200, trips.count)]))
    }
  }

  private func witness(_ trips: [Identifier]) {
    // The numbers' epoch, as riders got it.
    guard let epoch = pairs.compactMap({ loop.session($0.rider).resumePoint(of: .trip($0.trip))?.epoch }).first,
      let client = makeWitness()
    else { return }
    let known = trips.map { ($0, findings.known(of: $0)) }
    witnesses[client.index] = Witness(waiting: Set(trips), known: Dictionary(uniqueKeysWithValues: known))
    for trip in trips { loop.subscribe(client, to: .trip(trip), resume: ResumePoint(since: 0, epoch: epoch)) }
  }

  private func makeWitness() -> ClientID? {
    do { return try add("role=ops&id=witness", number: 1_000_000 + UInt64(loop.count)) } catch {
      findings.fail("no witness: \(error)")
      return nil
    }
  }

  // MARK: Hearing

  func opened(_ client: ClientID, _ connected: Connected) { opened += 1 }

  func closed(_ client: ClientID, _ disconnection: Disconnection) {
    // It saw a hub that is no more: the next one gets its own witness.
    if witnesses.removeValue(forKey: client.index) != nil { loop.close(client) }
  }

  func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {
    if witnesses[client.index] != nil { return hear(witness: client, envelope) }
    let number = client.index / 2
    guard number < pairs.count else { return }
    switch envelope.message {
    case .publication(let publication):
      guard client == pairs[number].rider, let sequence = publication.sequence,
        case .trip(let trip) = publication.channel
      else { return }
      findings.saw(publication, sequence, of: trip)
    case .reply(.ack(let ack)): acked(number, ack.replyTo)
    case .reply(.subscribed(let answer)):
      guard client == pairs[number].rider, case .trip(let trip) = answer.channel else { return }
      if trip == pairs[number].trip { pairs[number].isFollowed = true }
      if !answer.recovered, answer.sequence > 0 {
        findings.fail("\(trip): a rider was not recovered, at \(answer.sequence)")
      }
    case .reply(.error(let error)):
      if error.code != .storageFull, error.code != .rateLimited {
        findings.fail("\(pairs[number].driverID): \(error.code) \(error.message)")
      }
    case .reply, .unknown: break
    }
  }

  private func hear(witness client: ClientID, _ envelope: borrowing ServerEnvelope) {
    switch envelope.message {
    case .reply(.subscribed(let answer)):
      guard case .trip(let trip) = answer.channel else { return }
      if !answer.recovered { findings.fail("\(trip): a witness was not shown its events, hub at \(answer.sequence)") }
      witnesses[client.index]!.expects[trip] = Int(answer.sequence)
    case .publication(let publication):
      guard publication.sequence != nil, case .trip(let trip) = publication.channel else { return }
      witnesses[client.index]!.lists[trip, default: []].append(publication)
    case .reply, .unknown: break
    }
    let witness = witnesses[client.index]!
    for (trip, count) in witness.expects {
      let list = witness.lists[trip, default: []]
      guard list.count >= count else { continue }
      findings.audit(trip, list, since: witness.known[trip] ?? Findings.Known())
      witnesses[client.index]!.expects[trip] = nil
      witnesses[client.index]!.waiting.remove(trip)
    }
    if witnesses[client.index]!.isDone { loop.close(client) }
  }
}

/// Somebody who asks for the events of trips from the first on.
private struct Witness {
  var waiting: Set<Identifier>
  /// What was known of each when it asked.
  let known: [Identifier: Findings.Known]
  /// How many events there are of each.
  var expects: [Identifier: Int] = [:]
  var lists: [Identifier: [Publication]] = [:]

  var isDone: Bool { waiting.isEmpty }
}
