// Fences in the simulated world: ops put and delete them where the drivers are. A driver published as inside is in the
// hub's list, once.
import HubGeo
import HubMessages
import HubTestSupport

@testable import HubCore

extension Simulation {
  /// Another shape, or none any more, for one of the fences; the last one is about two drivers.
  func changeFence() {
    let number = pick(Cast.fences)
    let id = Cast.fenceIDs[number]
    let filter = FenceFilter(status: oneIn(4) ? .available : nil)
    let question: FenceQuestion
    if oneIn(6) {
      question = .delete(id)
    } else if number == Cast.fences - 1 {
      question = put(roaming("\(id)", 200 + Double(pick(700)), others: filter))
    } else {
      let center = phones[pick(Cast.drivers)].place.moved(Double(pick(360)), Double(pick(200)))
      question = put(
        circle("\(id)", center, 20 + Double(pick(300)), drivers: filter, dwell: oneIn(2) ? 60 : nil, speedLimit: 2))
    }
    ask(question, loop: pick(loops.count))
  }

  private func put(_ fence: Fence) -> FenceQuestion { .put(fence, FenceCovering(fence)) }

  func ask(_ question: FenceQuestion, loop: Int) {
    let session = SessionRef(outlet: UInt32(loop), slot: 99, generation: 1)
    loops[loop].inputs.append(SimulatedInput(kind: .other, session: nil, input: .fences(session, question)))
  }

  /// Each stay is in its driver's list and counted once, each pair in both lists, and nothing else is there.
  func checkFences() throws(SimulationFailure) {
    var stays = 0
    var ends = 0
    var inside = [Int: Int]()
    for id in Cast.driverIDs {
      guard let driver = hub.drivers.find(id) else { continue }
      var seen: Set<UInt32> = []
      var isTwice = false
      hub.fences.stays.forEach(of: driver) { stay in
        stays += 1
        guard hub.fences.table.isCurrent(stay.fence) else { return }
        if !seen.insert(stay.fence.index).inserted { isTwice = true }
        inside[Int(stay.fence.index), default: 0] += 1
      }
      if isTwice { throw fail("\(id) is in one fence twice") }
      hub.fences.pairs.forEach(of: driver) { pair in
        ends += 1
        if hub.fences.table.isCurrent(pair.fence), Int(pair.ends.0.driver) == driver {
          inside[Int(pair.fence.index), default: 0] += 1
        }
      }
    }
    guard stays == hub.fences.stays.count, ends == 2 * hub.fences.pairs.count else {
      throw fail("\(hub.fences.stays.count) stays and \(hub.fences.pairs.count) pairs, lists have \(stays), \(ends)")
    }
    for fence in hub.fences.table.order where hub.fences.table[Int(fence)].inside != inside[Int(fence), default: 0] {
      throw fail("\(hub.fences.table[Int(fence)].fence.id) counts wrongly")
    }
    if keepsAllEvents { try checkAlternation() }
  }

  /// Where all events are kept: enters and exits of a driver, or of two, take turns, and the last one says where it is.
  private func checkAlternation() throws(SimulationFailure) {
    for (number, id) in Cast.fenceIDs.enumerated() {
      guard let fence = hub.fences.find(id), let channel = hub.channels.find(Cast.channels[Cast.fleet + 1 + number])
      else { continue }
      var inside: Set<Set<Identifier>> = []
      let kept = hub.channels.record(channel).events
      for event in kept.suffix(kept.count) {
        guard let made = event.notification, let driver = made.driverID else { continue }
        let who = Set([driver, made.fence?.otherID ?? driver])
        switch made.kind {
        case .fenceEnter:
          guard inside.insert(who).inserted else { throw fail("\(who) entered \(id) twice") }
        case .fenceExit:
          guard inside.remove(who) != nil else { throw fail("\(who) left \(id) without having entered") }
        default:
          guard inside.contains(who) else { throw fail("\(made.kind) of \(who), who is not in \(id)") }
        }
      }
      guard inside.count == hub.fences.table[fence].inside else {
        throw fail("\(inside.count) were published as in \(id), \(hub.fences.table[fence].inside) are")
      }
    }
  }

  /// All fences go.
  func endFences() throws(SimulationFailure) {
    for id in Cast.fenceIDs { ask(.delete(id), loop: 0) }
    try settle()
  }
}
