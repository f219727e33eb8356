// Every limit of a hub among hubs, in one place, with what happens at it. Times are in nanoseconds of uptime.

/// What other hubs may make this one keep and do.
public struct ClusterLimits: Sendable, Equatable {
  // MARK: Frames

  /// Bytes of a frame after which it is sent and another begun; one record may make it longer.
  public var frameBytes = 32 * 1024
  /// Bytes of a frame that is received. Past it: refused, and counted.
  public var largestFrame = 1024 * 1024
  /// Bytes of control records for one peer that wait for the bus. Past it all are dropped, and the peer notices the
  /// gap.
  public var waitingControlBytes = 8 * 1024 * 1024
  /// States for one peer that wait for the bus; a newer one takes the place of an older one of the same channel and
  /// driver. Past it all are dropped, and the peer notices the gap.
  public var waitingStates = 65_536
  /// Bytes of what is told of areas that wait for the bus. Past it all states are dropped, and the peer notices the
  /// gap.
  public var waitingAreaBytes = 4 * 1024 * 1024
  /// Drivers in one record about an area.
  public var driversPerRecord = 250

  // MARK: Tables

  /// Other hubs. Past it a further one is refused, and named in the log.
  public static let maximumPeers = 127
  /// Channels of one hub that another follows. Past it `rate_limited`.
  public var follows = 60_000
  /// Of each kind, questions of this hub's sessions that other hubs or the ledger have not answered. Past it
  /// `rate_limited`.
  public var pending = 16_384
  /// Questions of one peer that this hub has not answered. Past it: refused, and the peer asks again.
  public var asksPerPeer = 8192
  /// Drivers or trips that a hub tells of a list at once, and their bytes. Past it: the page is shorter, and goes on.
  public var listed = 1000
  public var listedBytes = 512 * 1024
  /// Seconds of this hub's figures that are kept. Past it the oldest go.
  public var figures = 600
  /// Seconds in one record of those before.
  public var figuresPerRecord = 60
  /// Drivers whose newest positions wait for the end of a second, to go to hubs whose sessions watch the whole fleet.
  /// Past it: further ones wait for the next second; that is counted.
  public var fleetDrivers = 250_000
  /// Cells of this hub that one peer watches. Past it: not told of, and asked for again by who wants them.
  public var cellsPerPeer = 16_384
  /// Trips and drivers of this hub that are written to the ledger in one turn.
  public var claimsPerTurn = 256
  /// Trips and drivers that are gone and are still to be forgotten by the ledger. Past it: it keeps further ones for
  /// its seven days, and others look for them here in vain.
  public var releases = 65_536
  /// Channels that are asked for anew in one turn, after a gap; as many cells, and of drivers whose hub is gone.
  public var resumesPerTurn = 512
  /// Revocations in one record, of those that a peer is told all together; as many in a turn.
  public var revocationsPerRecord = 1000
  /// Ended rights that are said again to a peer that has missed something, and for how long.
  public var endedRights = 1024
  public var endedRightsTime: Int64 = 30_000_000_000

  // MARK: Time

  /// A member's lease in the ledger, and how often it is renewed and the members are read.
  public var lease: Int64 = 6_000_000_000
  public var renewal: Int64 = 2_000_000_000
  /// Without another frame, a peer hears this hub so often; one that is not heard so long is silent.
  public var aliveTime: Int64 = 250_000_000
  public var silence: Int64 = 1_000_000_000
  /// A hub that is not heard so long has its drivers taken from the maps here.
  public var guestTime: Int64 = 2_000_000_000
  /// From one attempt at an answer to the next, and how many there are. Past it `service unavailable`: the session asks
  /// again.
  public var answerTime: Int64 = 1_000_000_000
  public var attempts = 3
  /// How old a question about refresh tokens may be when it comes, by this hub's clock (ms). Less than `answerTime`, so
  /// that nothing is used up for somebody who has been told that it was not. Past it: not heard; the asker asks again.
  public var questionAge: Int64 = 900
  /// How long a question to all hubs waits for those that do not answer. Past it: answered without them, and counted.
  public var questionTime: Int64 = 300_000_000
  /// How long a page of a list, for which a hub looks through all it has, waits for hubs that do not answer.
  public var listTime: Int64 = 2_000_000_000
  /// A hub that wants figures is told them so long after it has last said so, and so old are those of another that are
  /// added to this hub's.
  public var figuresTime: Int64 = 2_500_000_000
  /// Refused frames are logged at most so often; all are counted.
  public var refusalNoticeTime: Int64 = 1_000_000_000
  /// All that is owned is claimed again so often, before the ledger forgets it.
  public var ownerTime: Int64 = 86_400_000_000_000
  /// After a gap drivers are claimed again, and what sessions wait for is looked for, at most so often.
  public var homesTime: Int64 = 5_000_000_000
  /// Of what is claimed again, to see that it is still this hub's, so many at a time, and the time from one part to the
  /// next: 1000 a second of each hub, of some 40,000 that a ledger takes.
  public var checksAtOnce = 128
  public var checkTime: Int64 = 128_000_000
  /// All channels of a peer are asked for anew at most so often.
  public var restartTime: Int64 = 1_000_000_000

  public init() {}
}
