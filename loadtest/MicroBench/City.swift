// A hub with very many drivers in one city: each connected, with a status and a position, none on a trip.

import Glibc
import HubBytes
import HubCore
import HubGeo
import HubMessages

/// Turns of the hub, by the CPU time that each took.
struct Turns: CustomStringConvertible {
  private var count = 0
  private var all: Int64 = 0
  private(set) var longest: Int64 = 0
  /// What the longest answer took a loop to put in order and write, outside of the hub's turns, and the longest piece
  /// of one.
  private var answer: Int64 = 0
  private var piece: Int64 = 0

  mutating func add(answer pieces: [Int64]) {
    answer = max(answer, pieces.reduce(0, +))
    piece = max(piece, pieces.max() ?? 0)
  }

  mutating func add(_ nanoseconds: Int64) {
    count += 1
    all += nanoseconds
    longest = max(longest, nanoseconds)
  }

  var description: String {
    let written = answer > 0 ? "; its answer \(answer / 1000) us, the longest piece \(piece / 1000) us" : ""
    return "\(all / 1000) us in \(count) turns, the longest \(longest / 1000) us\(written)"
  }
}

struct City: ~Copyable {
  var hub: Hub
  private(set) var outputs: [HubOutput] = []
  private let message: MessageID
  private var now: Moment
  private(set) var places: [Coordinate] = []
  private var state: UInt64 = 1

  /// What all drivers say of themselves, as much of it as they may.
  static let tags = (1...DriverStatusReport.maximumTags).map { number in
    guard let tag = InlineText("a tag that is as long as somebody may make one, number \(number)") else {
      preconditionFailure("it is short enough")
    }
    return tag
  }

  /// `spread`: of the city, in degrees. It lies round 41.15 N, 8.1 W, in the middle of a cell of three characters.
  init(drivers: Int, spread: Double, unixMilliseconds: Int64 = 1_763_680_000_000) {
    now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: unixMilliseconds))
    guard let epoch = InlineText("bench"), let message = MessageID("m") else { preconditionFailure("short texts") }
    self.message = message
    let limits = HubLimits(
      drivers: drivers, trips: 1000, channels: 1000, eventsPerChannel: 16, events: 1000, queryHits: 1000,
      queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 1000, profiles: 1000)
    hub = Hub(
      limits: limits, timings: HubTimings(), sampling: SamplingRules(), epoch: epoch, seed: 1, outlets: 1, now: now)
    for number in 0..<drivers {
      guard let id = Identifier("driver-\(number)") else { preconditionFailure("it is an id") }
      let report = DriverStatusReport(status: .available, vehicleType: InlineText("van"), tags: City.tags)
      places.append(
        Coordinate(clampingLatitude: 41.15 + random() * spread, wrappingLongitude: -8.1 + random() * spread))
      let session = session(number)
      turn([.driverConnecting(session, id), .driverStatus(session, message, report)])
    }
    for _ in 0..<2 {
      for first in stride(from: 0, to: drivers, by: 64) { move(first..<min(first + 64, drivers)) }
      advance(seconds: 1)
    }
  }

  /// −0.5 ..< 0.5.
  private mutating func random() -> Double {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Double(state >> 11) * 0x1p-53 - 0.5
  }

  /// Who asks, each with an identity of its own.
  private func asker(_ number: Int) -> Actor { Actor(role: .ops, id: Identifier("ops-\(number)")!) }
  private func session(_ number: Int) -> SessionRef { SessionRef(outlet: 0, slot: UInt32(number), generation: 1) }

  mutating func advance(seconds: Double) {
    now.uptime += Int64(seconds * 1e9)
    now.timestamp = Timestamp(milliseconds: now.timestamp.milliseconds + Int64(seconds * 1e3))
  }

  var secondsToHour: Int64 { 3600 - now.timestamp.milliseconds / 1000 % 3600 }

  /// One turn. The CPU time that the hub took for it, in nanoseconds.
  @discardableResult
  mutating func turn(_ inputs: [HubInput]) -> Int64 {
    let began = cpuNanoseconds()
    hub.process(inputs, now: now)
    let took = cpuNanoseconds() - began
    outputs = hub.drain(0)
    return took
  }

  /// These drivers send a fix some 10 m on.
  mutating func move(_ numbers: Range<Int>) {
    var inputs: [HubInput] = []
    for number in numbers {
      let place = places[number]
      let next = Coordinate(
        clampingLatitude: place.latitude + random() * 2e-4, wrappingLongitude: place.longitude + random() * 2e-4)
      places[number] = next
      let fix = Fix(coordinate: next, timestamp: now.timestamp, accuracy: 5, heading: 90, speed: 10)
      inputs.append(
        .fix(
          FixInput(
            session: session(number), messageID: message, sent: now.timestamp, received: now,
            update: LocationUpdate(fix: fix), tripIsGranted: false)))
    }
    turn(inputs)
  }

  /// Gives the hub turns until it has nothing more to do at this moment; `first` was the first of them.
  mutating func settle(_ first: Int64? = nil) -> Turns {
    var turns = Turns()
    if let first { turns.add(first) }
    write(&turns)
    repeat {
      turns.add(turn([]))
      write(&turns)
    } while hub.hasMoreDue
    return turns
  }

  /// What a loop does with the answers that have come out: each in pieces of as many drivers as it writes in a turn.
  private func write(_ turns: inout Turns) {
    for case .queryResult(_, .drivers(let list)?, _) in outputs {
      var writer = DriverListWriter(list, form: .json(.unixMilliseconds))
      var body: [UInt8] = []
      body.reserveCapacity(1 << 20)
      var buffer = ByteBuffer(capacity: 1 << 20)
      var pieces: [Int64] = []
      while !writer.isDone {
        let began = cpuNanoseconds()
        _ = writer.write(atMost: DriverSearch.defaultLimit, into: &buffer)
        buffer.withBytes { body.append(contentsOf: $0) }
        buffer.removeAll()
        pieces.append(cpuNanoseconds() - began)
      }
      turns.add(answer: pieces)
    }
  }

  /// Queries that come at once, each of a session of its own. The turns until the last is answered.
  mutating func ask(_ searches: [DriverSearch], _ audience: Audience) -> Turns {
    settle(
      turn(
        searches.enumerated().map { number, search in
          .query(session(number), .drivers(search, audience, by: asker(number)), replyTo: message)
        }))
  }

  /// Somebody begins to watch a channel; a loop's part of it.
  mutating func watch(_ channel: Channel, role: Role, slot: UInt32) -> Int64 {
    guard let id = Identifier("watcher") else { preconditionFailure("it is an id") }
    let session = SessionRef(outlet: 0, slot: slot, generation: 1)
    var took = turn([
      .subscribe(
        SubscribeInput(
          session: session, actor: Actor(role: role, id: id), messageID: message,
          request: Subscribe(channel: channel), grant: .granted))
    ])
    for case .watching(_, _, let handles) in outputs { took = max(took, turn([.areaSnapshots(session, handles)])) }
    return took
  }

}

/// CPU time of this thread. A call of the kernel: some 300 ns.
func cpuNanoseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
