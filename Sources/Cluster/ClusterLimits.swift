// All limits of a hub in a cluster, with what happens at each. Times are in nanoseconds of uptime.
import HubBackplane
public import HubTransport

/// Limits of what other hubs may make this one keep and do.
public struct ClusterLimits: Sendable, Equatable {
  // MARK: Frames

  /// Bytes of a frame after which it is sent and another begun; one record may make it longer.
  public var frameBytes = 32 * 1024
  /// Bytes of a frame that is received. Past it: refused, and counted.
  public var largestFrame = 1024 * 1024
  /// Bytes of control records for one peer that wait for the bus. Past it all are dropped, and the peer notices the
  /// gap.
  public var waitingControlBytes = 8 * 1024 * 1024
  /// States for one peer that wait for the bus; a newer one replaces an older one of the same channel and driver. Past
  /// it all are dropped, and the peer notices the gap. Positions of the whole fleet take at most half of it.
  public var waitingStates = 65_536
  /// States for one peer, of each of the two lists, whose memory is kept when they are gone. Past that it is freed.
  static let keptStates = 4096
  /// Bytes of area records that wait for the bus. Past it all states are dropped, and the peer notices the gap.
  public var waitingAreaBytes = 4 * 1024 * 1024
  /// Drivers in one record about an area.
  public var driversPerRecord = 250

  // MARK: Tables

  /// Other hubs. Past it a further one is refused, and named in the log.
  public static let maximumPeers = 127
  /// Hubs that have left and made room for others, whose numbers of frames are kept. Past it the oldest are forgotten:
  /// such a hub, if its process lives after all, hears this one only after as many frames as it has had from it.
  public var forgottenPeers = 1024
  /// Channels of one hub that another follows. Past it `rate_limited`.
  public var followedPerPeer = 60_000
  /// Of each kind, questions of this hub's sessions that other hubs or the ledger have not answered. Past it
  /// `rate_limited`.
  public var pending = 16_384
  /// Requests for one trip or driver of another hub, which go there one after the other. Past it `rate_limited`.
  public var pendingPerReceiver = 256
  /// Of these, those of one rider or driver, a driver's posts included; ops have no part of their own. Past it
  /// `rate_limited`.
  public var pendingPerSender = 8
  /// Posted fixes on their way to other hubs, of some 140 bytes each. Past it `rate_limited`.
  public var pendingFixes = 100_000
  /// Questions of one peer that this hub has not answered. Past it: refused, and the peer asks again.
  public var asksPerPeer = 8192
  /// Drivers or trips of a list that a hub sends at once, and their bytes. Past it: the page is shorter, and continues.
  public var listed = 1000
  public var listedBytes = 512 * 1024
  /// Seconds of this hub's figures that are kept. Past it the oldest are dropped.
  public var figures = 600
  /// Seconds in one record of those before.
  public var figuresPerRecord = 60
  /// Drivers whose newest positions wait for the end of a second, to go to hubs whose sessions watch the whole fleet;
  /// then as many wait for each of these hubs. Past it: further ones wait for the next second; that is counted.
  public var fleetDrivers = 250_000
  /// Cells of this hub that one peer watches. Past it: not sent, and requested again by the watcher.
  public var cellsPerPeer = 16_384
  /// Trips and drivers of this hub that are written to the ledger in one turn.
  public var claimsPerTurn = 256
  /// Claims that the ledger has not answered yet. Past it further ones wait here, so that other questions have room.
  public var claimsAtLedger = 8192
  /// Trips and drivers that are gone and that the ledger still has to forget. Past it: it keeps further ones for its
  /// seven days, and others look for them here in vain.
  public var releases = 65_536
  /// Channels that are requested again in one turn, after a gap; as many cells, and drivers whose hub is gone.
  public var resumesPerTurn = 512
  /// Revocations in one record for a peer that gets all of them; as many in a turn.
  public var revocationsPerRecord = 1000
  /// Ended rights that are repeated to a peer that has missed something, and for how long.
  public var endedRights = 1024
  public var endedRightsTime: Int64 = 30_000_000_000

  // MARK: Time

  /// The shortest time from frames of states to the next: a state after a pause leaves at once, a stream of them
  /// gathers. It is `gatherTime`, or, where that is longer, `peerGatherTime` multiplied by the number of hubs that
  /// follow channels or areas here. A frame and its wake-ups cost both hubs as much as dozens of positions
  /// (loadtest/NOTES.md), so a stream is sent some 1,300 times a second, to all peers together; and where many hubs
  /// follow each other, each sends 2,000 frames a second at most, and each of 50 hubs waits for up to 25 ms. Where half
  /// of what may wait does, it is sent.
  public var gatherTime: Int64 = 750_000
  public var peerGatherTime: Int64 = 500_000
  /// The longest time for which the cluster's thread lets a stream of states gather without looking at what else the
  /// hub has for it.
  public var gatherSleep: Int64 = 1_000_000
  /// The shortest time between two counts of what waits and who follows, for `/metrics`.
  public var countTime: Int64 = 100_000_000
  /// A member's lease in the ledger, and how often it is renewed and the members are read.
  public var lease: Int64 = 6_000_000_000
  public var renewal: Int64 = 2_000_000_000
  /// The longest pause between frames to a peer; a peer that is not heard for the latter is silent.
  public var aliveTime: Int64 = 250_000_000
  public var silence: Int64 = 1_000_000_000
  /// After this silence a hub's drivers are removed from the maps here.
  public var guestTime: Int64 = 2_000_000_000
  /// The time between attempts at an answer, and the number of attempts. Past it `rate_limited`: the session asks
  /// again.
  public var answerTime: Int64 = 1_000_000_000
  public var attempts = 3
  /// While the ledger cannot be asked: for so long (ns) this hub handles requests that follow a trip's beginning.
  var beginningTime: Int64 { answerTime / 10 }
  /// The largest age of a request about a trip or driver when it comes, by the clock of the hub that gets it (ms): as
  /// long as its sender waits. Past it `rate_limited`. Posted fixes may be of any age.
  var requestAge: Int64 { Int64(attempts) * answerTime / 1_000_000 }
  /// The largest age of a question about refresh tokens when it comes, by this hub's clock (ms). Less than
  /// `answerTime`, so that no token is used up for an asker who was refused. Past it: ignored; the asker asks again.
  public var questionAge: Int64 = 900
  /// How long a question to all hubs waits for answers. Past it: answered without the missing ones, and counted.
  public var questionTime: Int64 = 300_000_000
  /// How long a page of a list waits for answers, for which hubs look through everything.
  public var listTime: Int64 = 2_000_000_000
  /// How long a hub's request for figures is valid, and the largest age of another hub's figures that are added to this
  /// hub's.
  public var figuresTime: Int64 = 2_500_000_000
  /// The shortest time between log lines about refused frames; all are counted.
  public var refusalNoticeTime: Int64 = 1_000_000_000
  /// The time after which all owned channels are claimed again, before the ledger forgets them. After half of it, what
  /// sessions wait for is looked for again, before the ledger forgets who waits.
  public var ownerTime: Int64 = 86_400_000_000_000
  /// After a gap what sessions wait for is looked for, at most so often.
  public var waitingTime: Int64 = 5_000_000_000
  /// After a gap drivers are claimed again, at most so often: `checksAtOnce` and `checkTime` bound what that takes, and
  /// a second home has to be found within 3 s.
  public var homesTime: Int64 = 1_000_000_000
  /// Of what is claimed again, to see that it is still this hub's, so many at a time, and the time from one part to the
  /// next: 1000 a second of each hub, of some 40,000 that a ledger takes.
  public var checksAtOnce = 128
  public var checkTime: Int64 = 128_000_000
  /// All channels of a peer are asked for anew at most so often.
  public var restartTime: Int64 = 1_000_000_000

  public init() {}
}

extension ClusterLoop {
  /// Limits of the event loop of the cluster's thread, whose connections are all to the engine.
  public static var loopLimits: EventLoopLimits { BackplaneLimits().loop }
}
