// modules: HubBytes HubGeo HubMessages HubCore
// libFuzzer's way into the hub: bytes become inputs, and whatever they are, the hub must keep its invariants.
//
// Four bytes an input: what, who, and two for the rest. Names are few and tables small, so that things meet and limits
// are reached. Checked through the public face only: events of a channel come to each loop numbered without a gap; a
// delivery goes only to a loop that has a subscriber; every fix ends in exactly one counter; accepted fixes and
// published positions are the same number; no driver is asked twice by the same offers, has two open ones, or a trip
// that another driver has. The seeded simulation in HubCoreTests checks more, and chooses less.
import HubBytes
import HubCore
import HubGeo
import HubMessages

private let epoch = InlineText("e")!
private let loops = 2
private let ids = (0..<4).map { Identifier("i\($0)")! }
private let messages = (0..<20).map { MessageID("m\($0)")! }
/// Through the places that the fixes are at.
private let route = try? Route(points: (0..<16).map { Coordinate(latitude: Double($0) * 0.0001, longitude: 179.9999)! })
private let middle = Coordinate(latitude: 0.0005, longitude: 179.9999)!
private let parts: [Channel] = (5...8).map { .area(GeohashCell(middle, precision: $0)) }
private let circles: [Channel] = [50, 5000].map { .nearby(middle, radiusMeters: $0) }
private let numbered: [Channel] = ids.map { .trip($0) } + ids.map { .driver($0) }
private let channels: [Channel] = numbered + [.fleet] + parts + circles

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHub(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  var world = FuzzedHub()
  var offset = 0
  while offset + 4 <= size {
    world.step(data[offset], data[offset + 1], data[offset + 2], data[offset + 3])
    offset += 4
  }
  return 0
}

/// What one loop holds of a channel: how many subscriptions, and the newest event it was handed.
private struct Held {
  var count = 0
  var sequence: UInt64 = 0
}

private struct FuzzedHub: ~Copyable {
  private var hub: Hub
  private var uptime: Int64 = 0
  private var generation: UInt32 = 0
  private var sessions = [SessionRef](repeating: SessionRef(outlet: 0, slot: 0, generation: 0), count: 4)
  /// By loop and channel handle.
  private var held: [[UInt32: Held]] = Array(repeating: [:], count: loops)
  /// Areas that sessions have begun to watch and have not asked for yet.
  private var unasked: [(session: SessionRef, cells: [ChannelHandle])] = []
  /// The offers that were shown last.
  private var shown: [OffersReport] = []

  init() {
    var limits = HubLimits(
      drivers: 3, trips: 3, channels: 5, eventsPerChannel: 3, events: 8, queryHits: 4,
      queryBudget: SearchBudget(cells: 50, candidates: 50), fixTimesPerDriver: 4, driversWithFixTimes: 1,
      profiles: 2)
    limits.areas = 4
    hub = Hub(
      limits: limits, timings: HubTimings(), sampling: SamplingRules(), epoch: epoch, seed: 1,
      outlets: loops, now: Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_000_000_000_000)))
  }

  private var now: Moment {
    Moment(uptime: uptime, timestamp: Timestamp(milliseconds: 1_000_000_000_000 + uptime / 1_000_000))
  }

  mutating func step(_ what: UInt8, _ who: UInt8, _ a: UInt8, _ b: UInt8) {
    let input: HubInput
    switch what % 18 {
    case 0:
      uptime += Int64(a) * (b > 250 ? 1_000_000_000_000 : b > 128 ? 1_000_000_000 : 10_000_000)
      return process(b % 64 == 63 ? [.loopStalled] : [])
    case 1: input = connect(who, a)
    case 2: input = .driverDisconnected(sessions[Int(who % 4)])
    case 3, 4: input = fix(who, a, b)
    case 5: input = batch(who, a, b)
    case 6: input = move(who, a, b)
    case 7: input = subscribe(who, a, b)
    case 8: input = driverStatus(who, a, b)
    case 9: input = fence(who, a, b)
    case 11: input = change(who, a, b)
    case 12: input = notify(who, a, b)
    case 13: input = offers(who, a, b)
    case 14:
      input = .offerDecline(
        sessions[Int(who % 4)], messages[Int(b) % messages.count], OfferDecline(tripID: ids[Int(a % 4)]),
        by: ids[Int(who / 4 % 4)])
    case 15: return checkOffers()
    case 10:
      guard let asked = unasked.popLast() else { return }
      input = .areaSnapshots(asked.session, asked.cells)
    default:
      guard let released = release(who, a) else { return }
      input = released
    }
    process([input])
  }

  // MARK: Inputs

  private mutating func connect(_ who: UInt8, _ a: UInt8) -> HubInput {
    generation += 1
    let session = SessionRef(outlet: UInt32(a) % UInt32(loops), slot: UInt32(who % 4), generation: generation)
    sessions[Int(who % 4)] = session
    return .driverConnecting(session, ids[Int(who / 4 % 4)], client: UInt32(who >> 6))
  }

  private func driverStatus(_ who: UInt8, _ a: UInt8, _ b: UInt8) -> HubInput {
    let words = messages.prefix(3).map(\.text)
    let report = DriverStatusReport(
      status: [.available, .unavailable, .background][Int(a % 3)],
      vehicleType: b & 1 == 0 ? nil : words[Int(a / 3) % 3],
      tags: b & 2 == 0 ? nil : Array(words.prefix(Int(b / 4) % 4)))
    return .driverStatus(sessions[Int(who % 4)], messages[0], report)
  }

  /// Near where fixes are, which is at the antimeridian: put, or deleted.
  private func fence(_ who: UInt8, _ a: UInt8, _ b: UInt8) -> HubInput {
    let id = ids[Int(who % 4)]
    guard b % 8 != 0 else { return .fences(sessions[0], .delete(id)) }
    let center = Coordinate(latitude: Double(a % 16) * 0.0001, longitude: b & 64 == 0 ? 179.9999 : -179.9999)!
    let shape =
      b % 8 == 1
      ? Fence.Shape.roaming(meters: Double(a) + 1, others: FenceFilter(status: b & 32 == 0 ? nil : .available))
      : .hazard(.circle(Circle(center: center, radiusMeters: Double(a) * Double(b) + 1)!))
    let fence = Fence(
      id: id, shape: shape, dwell: b % 8 == 1 || b & 16 == 0 ? nil : 2)
    return .fences(sessions[0], .put(fence, FenceCovering(fence)))
  }

  /// From everywhere on Earth and at any time, mostly near what came before.
  private func fix(_ a: UInt8, _ b: UInt8) -> Fix {
    let latitude = a > 250 ? -60.0 : Double(a % 16) * 0.0001
    let time = now.timestamp.milliseconds + (Int64(b) - 200) * (b > 250 ? 100_000 : 100)
    return Fix(
      coordinate: Coordinate(latitude: latitude, longitude: 179.9999)!, timestamp: Timestamp(milliseconds: time),
      accuracy: b % 16 == 0 ? 5000 : Double(b % 32))
  }

  private func fix(_ who: UInt8, _ a: UInt8, _ b: UInt8) -> HubInput {
    let trip = who & 0x10 == 0 ? nil : ids[Int(who >> 6)]
    return .fix(
      FixInput(
        session: sessions[Int(who % 4)], messageID: messages[0], sent: now.timestamp, received: now,
        update: LocationUpdate(tripID: trip, fix: fix(a, b)), tripIsGranted: who & 0x20 == 0))
  }

  private func batch(_ who: UInt8, _ a: UInt8, _ b: UInt8) -> HubInput {
    let fixes: [Result<Fix, ErrorCode>] = [.success(fix(a, b)), .failure(.badMessage), .success(fix(b, a))]
    return .batch(
      BatchInput(
        session: sessions[Int(who % 4)], driverID: who & 0x10 == 0 ? nil : ids[Int(who >> 6)], messageID: messages[1],
        sent: now.timestamp, received: now, batch: LocationBatch(fixes: fixes), tripIsGranted: true))
  }

  private func move(_ who: UInt8, _ a: UInt8, _ b: UInt8) -> HubInput {
    var report = TripStatusReport(
      tripID: ids[Int(a % 4)], status: TripStatus.allCases[Int(a / 4 % 8)], timestamp: now.timestamp,
      expectedStatus: b > 200 ? .accepted : nil, pickup: Coordinate(latitude: 0, longitude: 180),
      dropoff: Coordinate(latitude: 0.01, longitude: -179.999), driverID: b & 1 == 0 ? nil : ids[Int(b / 2 % 4)],
      route: b & 8 == 0 ? nil : route)
    if b & 0x11 == 0x10 { report.offer = criteria(a, b) }
    return .tripStatus(
      TripStatusInput(
        session: SessionRef(outlet: 0, slot: 9, generation: 0),
        actor: Actor(role: Role.allCases[Int(who % 3)], id: ids[Int(who / 4 % 4)]),
        messageID: messages[Int(b) % messages.count], report: report, tripIsGranted: who < 200))
  }

  private func criteria(_ a: UInt8, _ b: UInt8) -> OfferCriteria {
    var criteria = OfferCriteria()
    criteria.atOnce = 1 + Int(a / 64)
    criteria.limit = 1 + Int(b / 32 % 4)
    criteria.seconds = 5
    criteria.vehicleType = a % 8 == 7 ? messages[0].text : nil
    return criteria
  }

  private func offers(_ who: UInt8, _ a: UInt8, _ b: UInt8) -> HubInput {
    let key = b & 2 == 0 ? nil : messages[Int(who) % messages.count]
    let question: OffersQuestion = b % 4 == 0 ? .stop : .begin(criteria(a, b), key: key)
    return .trips(
      SessionRef(outlet: 0, slot: 9, generation: 0),
      .offers(ids[Int(a % 4)], question, Actor(role: who < 200 ? .ops : .rider, id: ids[Int(who / 4 % 4)])))
  }

  private func change(_ who: UInt8, _ a: UInt8, _ b: UInt8) -> HubInput {
    let change = TripChange(
      tripID: ids[Int(a % 4)], pickup: b & 1 == 0 ? nil : Coordinate(latitude: Double(a % 16) * 0.0001, longitude: 180),
      dropoff: b & 2 == 0 ? nil : Coordinate(latitude: 0.01, longitude: -179.998), route: b & 4 == 0 ? nil : route)
    let actor = Actor(role: Role.allCases[Int(who % 3)], id: ids[Int(who / 4 % 4)])
    let session = SessionRef(outlet: 0, slot: 9, generation: 0)
    if b & 8 == 0 { return .trips(session, .change(change, actor)) }
    return .tripChange(
      TripChangeInput(
        session: session, actor: actor, messageID: messages[Int(b) % messages.count], timestamp: now.timestamp,
        change: change))
  }

  private func notify(_ who: UInt8, _ a: UInt8, _ b: UInt8) -> HubInput {
    var post = NotificationPost(
      channel: channels[Int(a) % channels.count], kind: .message, title: "t", body: b & 1 == 0 ? "b" : "c")
    post.messageID = b & 2 == 0 ? nil : messages[Int(who) % messages.count]
    return .notify(SessionRef(outlet: 0, slot: 9, generation: 0), post)
  }

  private func subscribe(_ who: UInt8, _ a: UInt8, _ b: UInt8) -> HubInput {
    // A driver's session, or somebody else's.
    let session =
      who > 200 ? sessions[Int(who % 4)] : SessionRef(outlet: UInt32(who) % UInt32(loops), slot: 20, generation: 0)
    let resume = b < 128 ? ResumePoint(since: UInt64(b), epoch: epoch) : nil
    return .subscribe(
      SubscribeInput(
        session: session, actor: Actor(role: Role.allCases[Int(who / 2 % 3)], id: ids[Int(who / 8 % 4)]),
        messageID: messages[2], request: Subscribe(channel: channels[Int(a) % channels.count], resume: resume),
        grant: ChannelGrant(rawValue: who / 32 % 3) ?? .granted))
  }

  /// One that the loop has: releasing any other is a fault of the loop, which a peer cannot cause.
  private mutating func release(_ who: UInt8, _ a: UInt8) -> HubInput? {
    let loop = Int(who) % loops
    let handles = held[loop].keys.sorted()
    guard !handles.isEmpty else { return nil }
    let handle = handles[Int(a) % handles.count]
    held[loop][handle]!.count -= 1
    if held[loop][handle]!.count == 0 { held[loop][handle] = nil }
    return .released(outlet: UInt32(loop), ChannelHandle(index: handle))
  }

  // MARK: Outputs

  private mutating func process(_ inputs: [HubInput]) {
    hub.process(inputs, now: now)
    for loop in 0..<loops {
      let outputs = hub.drain(loop)
      for output in outputs { check(output, loop) }
    }
    let counters = hub.shownCounters()
    let ended =
      counters.fixesAccepted - counters.fixesReleased + counters.fixesHistory + counters.fixesDuplicate
      + counters.fixesHeld + counters.fixesRefused.reduce(0, +) + counters.fixesUnreadable + counters.fixesForbidden
      + counters.fixesOrphaned + counters.fixesPutOff
    precondition(ended == counters.fixesReceived, "a fix is lost or counted twice")
    precondition(counters.positionsPublished == counters.fixesAccepted, "not one position for each fix")
    precondition(counters.entries(.drivers) <= 3 && counters.entries(.trips) <= 3)
    precondition(counters.entries(.channels) <= 5 && counters.entries(.events) <= 8)
    precondition((0...counters.entries(.drivers)).contains(counters.driversOnline))
  }

  /// What ops are shown of the offers of all trips.
  private mutating func checkOffers() {
    shown.removeAll(keepingCapacity: true)
    let session = SessionRef(outlet: 0, slot: 9, generation: 0)
    process(ids.map { .trips(session, .offers($0, .show, Actor(role: .ops, id: ids[0]))) })
    var open: [Identifier] = []
    for report in shown {
      precondition(Set(report.asked.map(\.driverID)).count == report.asked.count, "a driver is asked twice")
      precondition(report.asked.count <= report.criteria.limit)
      let pending = report.asked.filter { $0.answer == .open }.map(\.driverID)
      precondition(pending.isEmpty || report.end == nil && pending.count <= report.criteria.atOnce)
      let accepted = report.asked.count { $0.answer == .accepted }
      precondition(accepted <= 1 && (accepted == 0 || report.end == .taken), "two drivers have a trip")
      open += pending
    }
    precondition(Set(open).count == open.count, "a driver has two open offers")
  }

  private mutating func check(_ output: HubOutput, _ loop: Int) {
    switch output {
    case .trips(_, .offers(let report, isNew: _), replyTo: _): shown.append(report)
    case .subscribed(_, let handle, let answer, let missed, isParty: _):
      let state = held[loop][handle.index]
      precondition(state == nil || state!.sequence == answer.sequence, "the loop missed an event")
      precondition(answer.recovered || missed.isEmpty)
      held[loop][handle.index] = Held(count: (state?.count ?? 0) + 1, sequence: answer.sequence)
    case .delivery(let delivery):
      guard let state = held[loop][delivery.channel.index] else { preconditionFailure("nobody listens here") }
      switch delivery.publication.body {
      case .driverLocation(let location): precondition(location.after == state.sequence)
      case .etaUpdate(let update): precondition(update.after == state.sequence)
      case .tripUpdate(let update): advance(loop, delivery.channel, state, update.sequence)
      case .notification(let notification): advance(loop, delivery.channel, state, notification.sequence)
      case .offer(let offer): advance(loop, delivery.channel, state, offer.sequence)
      case .rawFix: precondition(delivery.conflationKey != 0)
      case .areaUpdate, .countsUpdate: preconditionFailure("an area update has an output of its own")
      case .stats: break
      }
    case .watching(let session, _, let cells):
      for cell in cells { held[loop][cell.index, default: Held()].count += 1 }
      unasked.append((session, cells))
    case .areaUpdate(let channel, let publication):
      precondition(held[loop][channel.index] != nil, "nobody watches here")
      check(publication, isFull: false)
    case .areaSnapshot(_, _, let parts):
      for (index, part) in parts.enumerated() { check(part, isFull: index == 0) }
    case .subscriptionRefused, .unsubscribed, .channelEnded, .channelClaimed, .named, .notified, .reply, .admitted,
      .conflict,
      .full, .replaced, .queryResult, .trips, .fences, .areaTickEnded, .shareEnded, .viewEnded,
      .channelRestarted, .cluster, .credentials, .revoked:
      break
    }
  }

  /// What an area shows: each driver once, in the cell, and to riders by another name.
  private func check(_ publication: Publication, isFull: Bool) {
    guard case .areaUpdate(let update) = publication.body else { preconditionFailure("it is an area's") }
    precondition(publication.channel == .area(update.cell) && update.isFull == isFull)
    precondition(isFull ? update.left.isEmpty : !(update.drivers.isEmpty && update.left.isEmpty))
    precondition(Set(update.drivers.map(\.driverID)).count == update.drivers.count, "a driver comes twice")
    precondition(Set(update.left).isDisjoint(with: update.drivers.map(\.driverID)), "it came and went")
    for driver in update.drivers {
      precondition(GeohashCell(driver.coordinate, precision: update.cell.precision) == update.cell)
    }
    precondition(update.drivers.count <= 3 && update.left.count <= 100 && (update.more ?? 1) > 0)
  }

  private mutating func advance(_ loop: Int, _ channel: ChannelHandle, _ state: Held, _ sequence: UInt64) {
    precondition(sequence == state.sequence + 1, "a gap between events")
    held[loop][channel.index] = Held(count: state.count, sequence: sequence)
  }
}
