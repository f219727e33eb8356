// What this hub owns, as the ledger has it: a trip or driver that is here is written there, so that other hubs find it.
// A claim whose outcome is not known is made again; so are all, when the ledger was away: what it may have forgotten is
// written back.
import HubBackplane
import HubBytes
import HubCore
public import HubMessages

struct Claims {
  struct Owned {
    /// Of a driver's newest session, as the ledger counts; 0 for trips.
    var generation: UInt64 = 0
    var isClaimed = false
    /// The next claim takes it from whoever has it.
    var takes: Bool
    var isUnderWay = false
    /// A claim that took it has no answer: whose it was before may never be known.
    var isDoubtful = false
    /// The newest claim of another hub.
    var replacedBy: UInt64 = 0
  }

  private var owned: [Channel: Owned] = [:]
  private var unclaimed: [Channel] = []
  /// To be claimed later, with the next renewal.
  private var deferred: [Channel] = []
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }

  var unclaimedCount: Int { unclaimed.count + deferred.count }

  mutating func queueDeferred() {
    unclaimed += deferred
    deferred.removeAll()
  }

  mutating func queueAll() {
    deferred.removeAll()
    unclaimed = Array(owned.keys)
  }

  mutating func own(_ channel: Channel, takes: Bool) {
    if owned[channel] == nil {
      owned[channel] = Owned(takes: takes)
    } else if takes {
      owned[channel]?.takes = true
    }
    unclaimed.append(channel)
  }

  mutating func disown(_ channel: Channel) {
    guard owned.removeValue(forKey: channel) != nil, let key = channel.ledgerKey else { return }
    context.questions.append((.release(key: key, by: context.identity.name), .nothing))
  }

  mutating func claim() {
    guard context.phase == .member else { return }
    for _ in 0..<context.limits.claimsPerTurn {
      guard let channel = unclaimed.popLast() else { return }
      guard let known = owned[channel], !known.isUnderWay, let key = channel.ledgerKey else { continue }
      owned[channel]?.isUnderWay = true
      owned[channel]?.takes = false
      if known.takes { owned[channel]?.isClaimed = false }
      let question = LedgerQuestion.claim(
        key: key, by: context.identity.name, known: known.generation, takes: known.takes)
      context.questions.append((question, .claim(channel)))
    }
  }

  mutating func take(_ answer: LedgerAnswer, of channel: Channel) {
    guard var known = owned[channel] else { return }
    known.isUnderWay = false
    switch answer {
    case .claimed(let generation, let before, let waiting):
      let isDoubtful = known.isDoubtful
      (known.generation, known.isClaimed, known.isDoubtful) = (generation, true, false)
      owned[channel] = known
      for index in context.peers.indices where isDoubtful || context.peers[index].name == before {
        notifyReplaced(channel, generation, index)
      }
      for name in waiting where name != context.identity.name {
        if let index = context.knownPeer(name) {
          context.peers[index].append(.begun) { $0.append(channel, at: context.time) }
        }
      }
      if known.replacedBy > generation {
        lose(channel)
      } else if known.takes {
        unclaimed.append(channel)
      }
    case .held(let owner, _): lost(channel, to: owner, known)
    case .unknown, .refused:
      // Whether it was carried out is not known. To take once more what was taken changes nothing but the number.
      known.takes = known.takes || !known.isClaimed && known.generation == 0 && channel.isTaken
      if !known.isClaimed { known.isDoubtful = true }
      owned[channel] = known
      deferred.append(channel)
    case .incarnation, .renewed, .superseded, .done, .members, .owner: break
    }
  }

  private mutating func lost(_ channel: Channel, to owner: String, _ known: Owned) {
    switch channel {
    case .driver where known.takes:  // a session has begun here since that was asked
      owned[channel] = known
      unclaimed.append(channel)
    case .driver: lose(channel)
    case .trip, .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats:
      owned[channel] = nil
      context.counters.ownerConflicts += 1
      context.notices.append(.ownerConflict("\(channel)", owner: owner))
    }
  }

  /// A driver's newest session is elsewhere.
  private mutating func lose(_ channel: Channel) {
    guard case .driver(let id) = channel else { return }
    owned[channel] = nil
    context.inputs.append(.cluster(.driverElsewhere(id)))
  }

  private func notifyReplaced(_ channel: Channel, _ generation: UInt64, _ index: Int) {
    guard case .driver(let id) = channel else { return }
    context.notifyEnded(index, .replaced) {
      $0.append(varint: generation)
      $0.append(utf8Run: id.description)
    }
  }

  /// Another hub says that it took a driver with this generation.
  mutating func take(replaced reader: inout ClusterFrameReader) throws(ClusterFrameError) {
    let generation = try reader.varint()
    let channel = Channel.driver(try reader.identifier())
    guard let known = owned[channel] else { return }
    owned[channel]?.replacedBy = max(known.replacedBy, generation)
    // While a claim is under way or to be made, its answer decides.
    if known.isClaimed, !known.isUnderWay, !known.takes, generation > known.generation {
      lose(channel)
    }
  }
}

extension Channel {
  /// The name under which the ledger has the owner; nil for channels that every hub has itself.
  public var ledgerKey: String? {
    switch self {
    case .trip(let id): "t:\(id)"
    case .driver(let id), .raw(let id): "d:\(id)"
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .stats: nil
    }
  }

  /// A driver's first claim that has no answer was one that takes.
  fileprivate var isTaken: Bool { if case .driver = self { true } else { false } }
}
