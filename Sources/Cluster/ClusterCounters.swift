// A hub's counters of its cluster, and its notices for operators.
public import HubBackplane
import HubMessages

/// Since the start, unless marked as present.
public struct ClusterCounters: Sendable, Equatable {
  public var framesOut: UInt64 = 0
  public var framesIn: UInt64 = 0
  public var bytesOut: UInt64 = 0
  public var bytesIn: UInt64 = 0
  /// Frames of other hubs that did not come.
  public var framesMissed: UInt64 = 0
  /// Frames refused, wholly or a record of them, each once, by the raw value of their `ClusterFrameError.Kind`.
  public var framesRefusedByKind = [UInt64](repeating: 0, count: ClusterFrameError.Kind.allCases.count)
  /// Positions and ETAs that went to other hubs, and those that a newer one had made worthless.
  public var statesOut: UInt64 = 0
  public var statesConflated: UInt64 = 0
  /// Publications of other hubs that sessions of this hub got.
  public var relayed: UInt64 = 0
  /// Drivers in cells sent to other hubs, and received from them, each as often as it changed.
  public var areaDriversOut: UInt64 = 0
  public var areaDriversIn: UInt64 = 0
  /// Cells that another hub requested and this one has no room for.
  public var cellsRefused: UInt64 = 0
  /// Requests for trips and tokens of another hub that were forwarded there.
  public var forwarded: UInt64 = 0
  /// Questions to all hubs, and those answered without a hub that was too slow.
  public var questions: UInt64 = 0
  public var questionsIncomplete: UInt64 = 0
  /// Times that a peer's channels were requested again.
  public var restarts: UInt64 = 0
  /// Times that what waited for a peer was dropped at a limit.
  public var overflows: UInt64 = 0
  /// Sessions' questions that could not be answered.
  public var refusals: UInt64 = 0
  /// Trips that began here though another hub has them.
  public var ownerConflicts: UInt64 = 0
  /// Questions that the ledger has refused, as where it has no memory left.
  public var ledgerRefused: UInt64 = 0
  // Present values.
  public var peers = 0
  public var silentPeers = 0
  public var follows = 0
  public var followed = 0
  /// Channels of trips and drivers that no hub has and sessions here are subscribed to.
  public var awaited = 0
  public var pending = 0
  /// Cells that all other hubs are asked for, and those that others watch here, counted for each.
  public var cellsAsked = 0
  public var cellsWatched = 0
  public var unclaimed = 0
  /// For all peers: bytes of control records and areas, and states, that the bus has not taken.
  public var waitingBytes = 0
  public var waitingStates = 0
  /// For all peers: channels and cells that are to be asked for anew.
  public var waitingResumes = 0
  public var waitingCells = 0
  /// Ended rights that are repeated to a peer that has missed something.
  public var endedRights = 0
  /// Peers that are being sent all revocations, or wait for that.
  public var revocationReceivers = 0
  /// Bytes that the ledger's node uses, and those that it may use; 0 for no limit, or before it was asked.
  public var ledgerMemory: UInt64 = 0
  public var ledgerMemoryLimit: UInt64 = 0
  /// Of the connections to the engine: commands without a reply, and bytes that it has not taken.
  public var engineCommands = 0
  public var engineBytes = 0
  /// Milliseconds since the member was heard that has been silent for longest.
  public var lag: Int64 = 0
  public var isBusUp = false
  public var isLedgerUp = false
  /// It has an incarnation, and no later process its name.
  public var isMember = false
  /// There are other members, and this hub has not heard any since its start.
  public var isDeaf = false

  public init() {}

  /// Why what happens at other hubs does not come here; nil where it does.
  public var isolation: StaticString? {
    if !isBusUp || !isLedgerUp { return "this hub does not reach the cluster's engine" }
    if !isMember { return "this hub is no member of the cluster; its log says why (event=cluster_…)" }
    return isDeaf ? "this hub has heard none of the others yet, as with another key-file" : nil
  }
}

extension ClusterNode {
  /// The counters at this moment. O(peers).
  public var counters: ClusterCounters {
    let (peers, now) = (context.peers, context.now.uptime)
    var counters = context.counters
    counters.peers = peers.count { $0.isMember }
    counters.silentPeers = peers.count { $0.isSilent && $0.isMember }
    counters.follows = following.count
    counters.followed = peers.reduce(0) { $0 + $1.interest.count }
    counters.awaited = following.waiting.count
    counters.pending =
      following.pending.count + forwarding.pending.count + asking.count + familyQuestions.pending.count
    counters.unclaimed = claims.unclaimedCount
    counters.waitingBytes = peers.reduce(0) { $0 + $1.controlBytes + $1.areaBytes }
    counters.cellsAsked = watching.asked.count
    counters.cellsWatched = peers.reduce(0) { $0 + $1.watched.count }
    counters.waitingStates = peers.reduce(0) { $0 + $1.stateCount }
    counters.waitingResumes = peers.reduce(0) { $0 + $1.resumes.count }
    counters.waitingCells = peers.reduce(0) { $0 + $1.areaQueue.count }
    counters.endedRights = context.endedRights.count
    counters.revocationReceivers = revoking.receivers.count + revoking.waiting.count
    counters.lag = peers.reduce(0) { $1.isMember ? max($0, (now - $1.heard) / 1_000_000) : $0 }
    counters.isLedgerUp = context.isLedgerUp
    counters.isMember = context.phase == .member
    counters.isDeaf = counters.peers > 0 && peers.allSatisfy { !$0.isMember || !$0.hasEverRestarted }
    return counters
  }
}

/// Notices for the operator.
public enum ClusterNotice: Sendable, Equatable {
  case busUp(String)
  case busDown(String, reason: String)
  case ledgerUp(String, warnings: [String])
  case ledgerDown(String, reason: String)
  case joined(incarnation: UInt64)
  /// Another process has this hub's name: this one has left the cluster permanently.
  case superseded(by: UInt64)
  case peerJoined(String, incarnation: UInt64)
  case peerLeft(String)
  case peerSilent(String)
  case peerHeard(String)
  case gap(String, missed: UInt64)
  /// `from`: the sender that it names, if any; unauthenticated.
  case frameRefused(ClusterFrameError, from: String?, Lane)
  case ledgerRefused(String)
  case ownerConflict(String, owner: String)
  case tooManyPeers(String)
  /// Another hub signs tokens with another key than this one, or one of the two signs none.
  case tokenKeyDiffers(String)
  /// Another hub's file names other ledgers: the two do not agree on who has a trip or driver.
  case ledgersDiffer(String)
}
