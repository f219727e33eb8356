// A seeded random world that drives the hub, and checks after every input that what came out is what the contract
// allows (the idea: tigerbeetle's simulator). This file is the world: who is in it, and what happens in it.
//
// Inputs are handed to the hub one at a time, so that each can be judged by itself (HubSimulationChecks.swift). The
// loops are simulated too (HubSimulationLoop.swift): they drain what came out late, and what they release gets to the
// hub late, as with real mailboxes.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport

@testable import HubCore

/// The first thing that went wrong in a run, with what is needed to see it again.
struct SimulationFailure: Error, CustomStringConvertible {
  var seed: UInt64
  var step: Int
  var text: String
  var description: String { "seed \(seed), step \(step): \(text)" }
}

/// Who and what is in the world. Everything is a small number in the simulation and a name only for the hub.
enum Cast {
  static let drivers = 5
  static let trips = 6
  static let riders = 2
  static let slots = 8
  static let fences = 4
  /// Channels: the drivers', the trips', the fleet, the fences'.
  static let topics = drivers + trips + 1 + fences
  static let fleet = drivers + trips

  static let route = try? Route(points: (0...40).map { at(52.5 + Double($0) * 0.001, 13.4) })

  static let driverIDs = (0..<drivers).map { id("driver-\($0)") }
  static let tripIDs = (0..<trips).map { id("trip-\($0)") }
  static let fenceIDs = (0..<fences).map { id("fence-\($0)") }
  /// Drivers, riders, one of ops.
  static let actors =
    driverIDs.map { Actor(role: .driver, id: $0) }
    + (0..<riders).map { Actor(role: .rider, id: id("rider-\($0)")) } + [Actor(role: .ops, id: id("ops"))]
  static let channels =
    driverIDs.map { Channel.driver($0) } + tripIDs.map { Channel.trip($0) } + [.fleet]
    + fenceIDs.map { Channel.fence($0) }
  static let topicOfChannel = Dictionary(uniqueKeysWithValues: channels.enumerated().map { ($1, $0) })
  /// Few, so that the same one comes again.
  static let messages = (0..<40).map { message("m\($0)") }

  static func topic(ofTrip trip: Int) -> Int { drivers + trip }
}

/// An input, with what the simulation knows of it.
struct SimulatedInput {
  enum Kind {
    case fixes(driver: Int, trip: Int?, isGranted: Bool, count: Int)
    case connecting(driver: Int)
    case disconnected(driver: Int)
    case move(actor: Int, trip: Int, report: TripStatusReport, message: Int, isGranted: Bool)
    case subscribe(topic: Int, resume: ResumePoint?, actor: Int, grant: ChannelGrant)
    case unsubscribe(topic: Int)
    case released(topic: Int)
    case other
  }
  var kind: Kind
  var session: SessionRef?
  var input: HubInput
}

/// How often the rarer rules about subscriptions were put to the test.
struct SimulationReach {
  var forbidden: UInt64 = 0
  /// Parties that recovered something of a closed trip.
  var recoveredAfterEnd: UInt64 = 0
  var claims: UInt64 = 0
  /// Subscriptions that a new token did not name, kept because their session is the trip's.
  var keptAsParty: UInt64 = 0
}

/// A phone: where it is, how wrong its clock is, and what it sent last.
struct SimulatedPhone {
  var place: Coordinate
  var offset: Int64
  var lastSent: Int64 = 0
}

/// A class: the compiler checks each borrow of a structure with a hub in it for minutes.
final class Simulation {
  let seed: UInt64
  let limits: HubLimits
  /// No event is forgotten before its trip is.
  let keepsAllEvents: Bool
  var random: SplitMix64
  var hub: Hub
  var loops: [SimulatedLoop]
  var model: SimulationModel
  var phones: [SimulatedPhone] = []
  var uptime: Int64
  var step = 0
  /// Of everything that came out, in order.
  var digest: UInt64 = 0xCBF2_9CE4_8422_2325
  var lastCounters = HubCounters()
  var reached = SimulationReach()

  init(seed: UInt64) {
    self.seed = seed
    random = SplitMix64(seed: seed)
    let isTight = seed % 4 == 0
    keepsAllEvents = seed % 4 == 1
    limits = HubLimits(
      drivers: isTight ? 4 : 20, trips: isTight ? 4 : 20, channels: isTight ? 9 : 40,
      eventsPerChannel: isTight ? 3 : keepsAllEvents ? 10_000 : 16,
      events: isTight ? 12 : keepsAllEvents ? 100_000 : 60, queryHits: 5, queryBudget: .standard, fixTimesPerDriver: 16,
      driversWithFixTimes: isTight ? 2 : 20, profiles: isTight ? 2 : 20)
    let loopCount = 1 + Int(seed % 3)
    uptime = Int64(seed % 1000) * 1_000_000_007
    hub = Hub(
      limits: limits, timings: HubTimings(), sampling: SamplingRules(), epoch: HubBench.epoch,
      seed: seed, outlets: loopCount,
      now: Moment(uptime: uptime, timestamp: Timestamp(milliseconds: 1_763_680_000_000 + uptime / 1_000_000)))
    loops = (0..<loopCount).map { SimulatedLoop(number: $0) }
    model = SimulationModel(loops: loopCount)
    for number in 0..<Cast.drivers {
      phones.append(
        SimulatedPhone(
          place: at(52.5 + Double(number) * 0.01, 13.4),
          offset: Int64.random(in: -5_000_000...5_000_000, using: &random)))
    }
  }

  var now: Moment {
    Moment(uptime: uptime, timestamp: Timestamp(milliseconds: 1_763_680_000_000 + uptime / 1_000_000))
  }

  func fail(_ text: String) -> SimulationFailure { SimulationFailure(seed: seed, step: step, text: text) }

  /// True once in `count` times.
  func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }
  func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  // MARK: The run

  func run(steps: Int) throws(SimulationFailure) {
    for _ in 0..<steps {
      step += 1
      act()
      if oneIn(3) { try handInputs(all: false) }
      if oneIn(6) { try passTime() }
      if oneIn(3) { try drainSomeLoop() }
      if step % 100 == 0 { try checkTables() }
    }
    try settle()
    try checkViews()
    try end()
  }

  private func act() {
    switch pick(20) {
    case 0..<9: sendFixes()
    case 9..<13: moveTrip()
    case 13..<16: subscribeOrLeave()
    case 16, 17: connectDriver()
    case 18: oneIn(2) ? closeSlot() : refreshToken()
    default: oneIn(2) ? askSomething() : changeFence()
    }
  }

  /// Hands over what loops have for the hub: of each loop in order, but sometimes not yet all.
  private func handInputs(all: Bool) throws(SimulationFailure) {
    for loop in loops.indices {
      if !all, oneIn(4) { continue }
      let waiting = loops[loop].inputs.count
      let count = all || oneIn(2) ? waiting : pick(waiting + 1)
      let inputs = Array(loops[loop].inputs.prefix(count))
      loops[loop].inputs.removeFirst(count)
      for input in inputs { try hand(input) }
    }
  }

  private func passTime() throws(SimulationFailure) {
    switch pick(60) {
    case 0: uptime += (oneIn(2) ? 86_500 : 86_300) * 1_000_000_000
    case 1..<5: uptime += Int64.random(in: 20...70, using: &random) * 1_000_000_000
    default: uptime += Int64.random(in: 0...2_500_000_000, using: &random)
    }
    try hand(nil)
    try checkPresence()
  }

  private func drainSomeLoop() throws(SimulationFailure) {
    let loop = pick(loops.count)
    let count = oneIn(2) ? loops[loop].outputs.count : pick(loops[loop].outputs.count + 1)
    do throws(SimulatedLoop.Violation) { try loops[loop].drain(count) } catch { throw fail(error.text) }
  }

  /// Lets everything that is under way arrive.
  func settle() throws(SimulationFailure) {
    while loops.contains(where: { !$0.inputs.isEmpty || !$0.outputs.isEmpty }) {
      try handInputs(all: true)
      for loop in loops.indices {
        do throws(SimulatedLoop.Violation) { try loops[loop].drain(.max) } catch { throw fail(error.text) }
      }
    }
  }

  /// Everyone leaves, every trip ends, time passes: then nothing may be left.
  private func end() throws(SimulationFailure) {
    for loop in loops.indices {
      for slot in 0..<Cast.slots { loops[loop].close(slot) }
    }
    try settle()
    try endFences()
    try endTrips()
    for _ in 0..<20 where hub.shownCounters().entries(.trips) + hub.shownCounters().entries(.drivers) > 0 {
      uptime += 86_500_000_000_000
      try hand(nil)
    }
    try checkNothingLeft()
  }

  /// Ops cancels every active trip, with a message id that the trip does not remember.
  private func endTrips() throws(SimulationFailure) {
    for trip in 0..<Cast.trips {
      guard let state = model.trips[trip], state.ended == nil else { continue }
      let message = Cast.messages.indices.first { number in
        !state.moves.contains(.init(actor: Cast.actors.count - 1, message: number))
      }
      loops[0].inputs.append(
        move(actor: Cast.actors.count - 1, trip: trip, .cancelled, message: message ?? 0, expected: nil, slot: 0))
      try settle()
    }
  }
}
