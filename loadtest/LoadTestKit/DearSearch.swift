// Looks for messages that cost the hub more than they are charged for: keeps those that cost most for each unit,
// changes them, measures the changed ones, and so climbs. What a message costs is measured by whoever drives the
// search.

/// A message and what it cost the hub for each unit that it is charged (µs of CPU).
package struct PricedMessage: Sendable {
  package var message: DearMessage
  package var cost: Double
}

package struct DearSearch {
  /// Dear messages that are kept, and of one name (the kind that a message descends from) as many: else the first kind
  /// that is dear would be all there is.
  private static let kept = 48
  private static let keptOfOneName = 6

  /// The threshold: so many times the median cost of ordinary messages.
  package static let maximumTimesMedian = 20.0

  /// Dearest first.
  package private(set) var dearest: [PricedMessage] = []
  package private(set) var measured = 0
  private var mutator: MessageMutator
  private let seeds: [DearMessage]
  private var nextSeed = 0

  /// `limit`: bytes of a message.
  package init(seeds: [DearMessage], seed: UInt64, limit: Int = DearMessage.bytes) {
    precondition(!seeds.isEmpty)
    self.seeds = seeds
    mutator = MessageMutator(seed: seed, limit: limit)
  }

  /// The next message to be measured: first each seed as it is, then changed ones.
  package mutating func next() -> DearMessage {
    if nextSeed < seeds.count {
      nextSeed += 1
      return seeds[nextSeed - 1]
    }
    let other = seeds[mutator.pick(seeds.count)]
    guard !dearest.isEmpty, mutator.pick(4) > 0 else {
      return mutator.mutated(seeds[mutator.pick(seeds.count)], with: other)
    }
    // The better of two: the dearest have more children, and no kind dies out.
    let index = min(mutator.pick(dearest.count), mutator.pick(dearest.count))
    return mutator.mutated(dearest[index].message, with: other)
  }

  /// What the message cost for each unit.
  package mutating func note(_ message: DearMessage, cost: Double) {
    measured += 1
    let index = dearest.firstIndex { $0.cost < cost } ?? dearest.count
    guard index < Self.kept else { return }
    dearest.insert(PricedMessage(message: message, cost: cost), at: index)
    if dearest.count(where: { $0.message.name == message.name }) > Self.keptOfOneName,
      let last = dearest.lastIndex(where: { $0.message.name == message.name })
    {
      dearest.remove(at: last)
    }
    if dearest.count > Self.kept { dearest.removeLast() }
  }

  /// What the dearest of each name cost, dearest first.
  package var dearestByName: [PricedMessage] {
    var seen: Set<String> = []
    return dearest.filter { seen.insert("\($0.message.name) \($0.message.carrier)").inserted }
  }
}
