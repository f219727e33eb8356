// Every limit of a server, in one place: what it bounds, its default, and what happens at it. What is bounded neither
// here nor in `HubLimits` is not bounded. Those that operators change have a row among the settings of `serve`; the
// rest is reached by tests through this type.
public import HubCore
import HubMessages
import HubTransport
import HubWebSocket

/// The limits of one hub process. At each of them the peer is told, and a counter goes up.
public struct Limits: Sendable {
  // MARK: Admission

  /// Bytes of an HTTP request head. Past it: 431.
  public var requestHeadBytes = 8 * 1024
  /// Bytes of an HTTP request body. Past it: 413.
  public var requestBodyBytes = 256 * 1024
  /// Bytes of an HTTP request body where none is wanted, or from someone without a credential: 20,000 strangers may not
  /// make the hub keep 256 KiB of each. Past it: 413.
  public var unwantedBodyBytes = 4 * 1024
  /// Seconds for a connection to send a whole request. Past it: closed.
  public var handshakeSeconds = 10.0
  /// Seconds that an idle HTTP connection is kept for the next request. Past it: closed.
  public var keepAliveSeconds = 30.0
  /// HTTP requests of one connection that are handled in one turn, and bytes of their answers, the last of which may go
  /// beyond; the rest waits for the next turn, and while the answers are unsent nothing more is read.
  public var requestsPerTurn = 16
  public var answerBytesPerTurn = 64 * 1024
  /// HTTP requests, and units of work (`WorkUnits`), of all connections, that a loop does from one look at its sockets
  /// to the next, and as many for those who have waited: what other sessions wait for at most, but for the last message
  /// or request, which may go beyond and is then made up for by the looks that follow. At the units, what riders and
  /// ops send waits, in order, and at either, requests do; drivers' sessions, which are few for one identity, do not.
  /// Eight units take some 0.2 ms. Here the bytes of replies count, too, and of messages and replies all but those of
  /// at most `freeBytesPerMessage`.
  public var requestsPerPoll = 16
  public var unitsPerPoll = 8
  static let freeBytesPerMessage = 1024
  /// Bytes of an answer over HTTP up to which it is not compressed: below it fits a packet as it is. And bytes of one
  /// that are compressed in one turn, which takes some 0.05 ms; the rest goes on in the next ones.
  public var gzipFreeBytes = 1024
  public var gzipPieceBytes = 16 * 1024
  /// Seconds for which a page of metrics waits for a loop that is held up. Past it: it has that loop's counters of up
  /// to a second before, which is counted.
  public var metricsSeconds = 0.5
  /// Connections of one loop; nil for what the limit of open files allows. Past it a newcomer is closed at once.
  public var connectionsPerLoop: Int?
  /// Sessions of all loops; nil for 15/16 of the connections that fit, so that the rest is left for HTTP and for
  /// telling newcomers. Past it an upgrade gets 503 with `Retry-After`, and whoever is inside notices nothing.
  public var sessions: Int?
  /// Connections of one client address (of IPv6, one /64) on all loops; behind a trusted proxy, sessions. 0 for any
  /// number. A carrier's NAT has some hundred to a few thousand subscribers behind one address, of whom few use the
  /// same hub at a time. Past it: 429 with `Retry-After`.
  public var connectionsPerAddress = 1000
  /// Connections beyond that which are let in to be told so. Past it: reset at once.
  public var refusalsPerAddress = 32
  /// HTTP requests a second of one client address, upgrades among them, on average and at once; 0 for any number. One
  /// with a large body counts as many (`WorkUnits`). 1,000 phones without a socket that report every 2 s are behind one
  /// address. Past it: 429 with `Retry-After`.
  public var requestRate = 500.0
  public var requestBurst = 1000.0
  /// Whether the limits above hold for loopback addresses too. By default they do not: behind a proxy on this machine
  /// that nobody named with `--trusted-proxy`, all the world has one loopback address.
  public var countsLoopbackConnections = false
  public var countsLoopbackRequests = false
  /// Addresses without a connection whose requests are remembered. Past it those that asked little are forgotten.
  public var idleAddresses = 65_536
  /// Sessions of one identity (`sub` and role), those being admitted included, on all loops. Past it an upgrade gets
  /// 429 with `Retry-After`. A driver has one at a time; the others are such that it has just replaced.
  public var sessionsPerIdentity = RoleLimits(driver: 4, rider: 16, ops: 256)
  /// Sessions of the holders of all shares that one rider has made; of those that ops make, of one trip's. Past it an
  /// upgrade gets 429.
  public var sessionsPerSharer = 64
  /// What `Retry-After` says at these limits.
  public var retryAfterSeconds = 10.0
  /// Connections accepted in a second by one loop; 0 for any number. More than a core can serve the handshakes of. Past
  /// it newcomers wait in the kernel's queue.
  public var acceptsPerSecond = 5000
  /// Connections accepted in one turn of a loop; the rest waits in the kernel's queue.
  public var acceptsPerTurn = 16
  /// The kernel's queue of connections that are not accepted yet.
  public var acceptBacklog: Int32 = 4096
  /// Steps of TLS handshakes in one turn of a loop; the next connection waits for the next turn, which is counted.
  public var tlsHandshakesPerTurn = 16
  /// Vehicles of a GTFS-realtime feed, some 70 bytes each. Past it: 413.
  static let vehiclesPerFeed = 50_000
  /// Drivers that a loop writes into a feed in one turn. What is left goes on in the next turn.
  public var vehiclesPerTurn = 500
  /// How long a feed is good for: whoever asks within that time has the same bytes.
  static let vehicleFeedSeconds = 5.0
  /// Certificates that a server may have; each is read at the start and on SIGHUP.
  public static let certificates = 100
  /// TLS key updates of one connection without data between them. Past it: closed.
  public var tlsKeyUpdates = 32
  /// Bytes of TLS's own answers, and of a record, that one connection leaves unread. Past it: closed.
  public var tlsUnsentBytes = 64 * 1024

  // MARK: A session

  /// Bytes of a WebSocket message. Past it: 1009.
  public var messageBytes = 256 * 1024
  /// Seconds for a message of more than `incompleteFreeBytes` from its first byte to its last. Past it, looked at with
  /// the session's heartbeat: 4408.
  public var messageSeconds = 60.0
  /// Bytes of messages, heads and bodies that are not complete, of all connections together but for the first of each.
  /// Past it, who sends more gets 1013, and an HTTP request 503.
  public var incompleteBytes = 64 * 1024 * 1024
  public var incompleteFreeBytes = 1024
  /// Fragments of a WebSocket message. Past it: 1009.
  public var fragments = 1024
  /// Bytes that a compressed message may become for each of its own, and up to which size that does not matter. Past
  /// it, and past `messageBytes`: 1009.
  public var inflateRatio = 200
  public var inflateFreeBytes = 64 * 1024
  /// Messages under this size go out uncompressed: what deflate would save is less than what it costs.
  public var compressedBytes = 256
  /// Sessions of one loop that keep their deflate contexts from message to message, where the client can too; those
  /// being admitted at that moment come on top. Each costs some 80 KiB, and a compression of its own of all that it
  /// gets. Past it, and so with 0 always, the answer has `server_no_context_takeover` and `client_no_context_takeover`.
  public var compressionContexts = 0
  /// Units of work a second (`WorkUnits`: a short message is one, and so is a WebSocket ping or pong), on average; 0
  /// for no limit. A session may owe what its last message cost. Past it: what comes then waits, and nothing more is
  /// read, until the session is level; then `rate_limited`, then 4429.
  public var sessionRate = 10.0
  /// Units that may come at once.
  public var sessionBurst = 50.0
  /// Seconds over the rate after which the session is told, and after which it is closed.
  public var rateWarningSeconds = 5.0
  public var rateCloseSeconds = 60.0
  /// Messages at fault within the window below that close a session with 4400: one more than this.
  public var badMessages = 10
  public var badMessageWindowSeconds = 60.0
  /// Sessions that are looked at in one step for whether their token was revoked, or a larger part of them all; how
  /// many steps that are at most, and the pause between two (ns).
  static let sessionsPerSweep = 512
  static let sweepSteps = 128
  static let sweepPause: Int64 = 2_000_000
  /// Subscriptions of one session, the unanswered ones included. Past it: `rate_limited`.
  public var subscriptionsPerSession = 256
  /// Subscriptions of one session that are under way at once: each may bring `eventsPerChannel` missed events. Past it
  /// the session's further messages wait until these are answered and read.
  public var unansweredSubscriptions = 2
  /// Channels of one stream of events. Past it: 400.
  public var channelsPerStream = 16
  /// Seconds between two comments on a stream of events, by which proxies and clients see that it is there: one each
  /// 15 s is promised (protocol/events.md).
  static let streamCommentSeconds = 12.0
  /// Seconds after which a client is told to open its stream again: at random between these.
  static let streamRetrySeconds = 1.0..<5.0
  /// Seconds for the peer to answer a close frame, and for the last bytes to leave. Past it: aborted.
  public var closingSeconds = 3.0

  // MARK: What waits to be sent

  /// Unsent bytes of one session. Past it: 4413.
  public var outboxBytesPerSession = 512 * 1024
  /// Unsent bytes of all sessions, shared out evenly among the loops, so that none has to ask the others with each
  /// frame. Past its share: the session that asks for more gets 4413.
  public var outboxBytes = 256 * 1024 * 1024
  /// Output of one turn; past it what there is is written at once. It keeps offsets within 32 bits, whatever comes at
  /// once.
  public var arenaFlushBytes = 16 * 1024 * 1024
  /// Memory that a loop keeps for the next turn's output, and at most as much for the next inflated message.
  public var arenaKeepBytes = 1024 * 1024
  /// Bytes read from one socket in one turn. TLS needs 32 KiB or more: a record, and what came with it.
  public var readBufferBytes = 64 * 1024
  /// Bytes read from all sockets of a loop in one turn, inflated ones counted twice: as much as 300 fixes. What is
  /// ready besides comes first in the next turn, and what was read so far goes out before it: the fixes of those who
  /// behave do not wait until a hundred others have been heard who send all that the kernel holds.
  public var readBytesPerTurn = 64 * 1024
  /// Microseconds for which a loop under load lets its sockets gather before it looks at them again; 0 for never.
  public var turnPaceMicroseconds = 300
  /// Timers of connections that fire in one turn, a ping each; the rest waits for the next ones. Sessions that came in
  /// the same second are silent in the same second, and who sends a fix then would wait for all their pings.
  public var timersPerTurn = 16
  /// Connections that go on in one turn of those that had sent too much and had to wait; the rest goes on in the next
  /// ones, in order. Sessions over their rate take up one message at a time, and hundreds of them in the same tick of
  /// the timers.
  public var resumedPerTurn = 8
  /// What an answer of the hub sets free may ask the hub again: a pipelined request, the frames behind an upgrade, a
  /// session that ended. It goes round at once so often; then with the next turn.
  static let exchangesPerTurn = 16
  /// Inputs of one loop that may wait while another has the hub, and outputs of the hub that may wait for one loop. At
  /// the first the loop stops reading until the hub has caught up; at the second the one that has the hub waits for the
  /// loop.
  public var mailboxMessages = 1 << 18

  // MARK: The hub's tables, and what is asked of it

  /// The tables, of each of which a tenth is kept for ops (`Role.share`), and the work of a turn.
  public var hub = HubLimits()
  /// Drivers of answers to queries that a loop writes in one turn, compressed ones counted fourfold: some 150 µs for
  /// such that have 8 tags. What is left goes on in the next turn. An answer has as many where nobody says how many: it
  /// goes out at once. A loop writes as many answers at a time as the hub has queries under way.
  public var reportsPerTurn = DriverSearch.defaultLimit
  /// Bytes of the answer to a query: what clients read at most. Past it, and past what fits an outbox: `too_large`.
  public var answerBytes = 512 * 1024
  /// Cells that one identity watches, counted for each view of each of its sessions. Past it: `rate_limited`.
  public var areasPerIdentity = RoleLimits(driver: 256, rider: 512, ops: 16_384)
  /// Metres of `nearby:` for ops (riders' limit is `PublicAudience.maximumRadiusMeters`). Past it: `bad_message`.
  public var areaRadiusMeters = 500_000.0
  /// Bytes of what changed in areas that a loop sends in one turn, some 100 µs, each session counting
  /// `areaBytesPerWrite` more. What is left goes on in the next turn.
  public var areaBytesPerTurn = 64 * 1024
  public var areaBytesPerWrite = 4 * 1024
  /// Bytes of cells that a loop keeps encoded for those who watch or begin to watch within the same second. Past it
  /// they are encoded anew.
  public var areaCacheBytes = 16 * 1024 * 1024
  /// Trips of one page of `GET /v1/trips`. Past it: 400.
  public var tripsPerPage = 1000
  /// Questions to the journal's past that may wait; as many of one loop's may be under way. Past it: 503 with
  /// `Retry-After`.
  public var historyQuestions = 64
  /// Seconds that such a question may take. Past it the connection is closed.
  public var historySeconds = 300.0
  /// Fixes of one track. Past it: 413.
  public var trackFixes = 100_000
  /// Records of ended trips that one page of those that the hub has forgotten looks at. Past it: 413.
  public var historyTrips = 500_000
  /// Bytes of answers out of the journal that were not sent yet. Past it: 503 with `Retry-After`.
  public var historyAnswerBytes = 64 * 1024 * 1024
  /// Images of the map that may wait for the disk; as many of one loop's may be under way. A browser asks for six at
  /// once. Past it: 503 with `Retry-After`.
  public var tileQuestions = 256
  /// Bytes of such images that were read and not sent yet. Past it: the same.
  public var tileBytes = 16 * 1024 * 1024
  /// Drivers of one page of `GET /v1/drivers`. Past it: 400.
  public var driversPerPage = 1000
  /// Fences of one page of `GET /v1/fences`. Past it: 400.
  public var fencesPerPage = 500
  /// Dead letters of one page of `GET /v1/webhooks/{id}/dead`. Past it: 400.
  public var deadLettersPerPage = 1000

  /// Seconds between two lines of the log about images of the map that cannot be read.
  static let tileComplaintSeconds = 60.0

  public init() {}

  /// Relations that the code relies on; called once at the start.
  func validate() {
    precondition(messageBytes <= outboxBytesPerSession, "an answer of the size of a message must fit an outbox")
    precondition(outboxBytesPerSession <= outboxBytes)
    hub.validate()
    precondition((sessions ?? 1) >= 1 && connectionsPerAddress >= 0 && refusalsPerAddress >= 0 && idleAddresses >= 0)
    precondition(sessionsPerIdentity.isValid && areasPerIdentity.isValid && sessionsPerSharer >= 1)
    precondition(requestRate >= 0 && requestBurst >= 1 && acceptsPerSecond >= 0 && answerBytesPerTurn >= 1)
    precondition(gzipPieceBytes >= 1)
    precondition(requestsPerPoll >= requestsPerTurn && unitsPerPoll >= 1)
    precondition(incompleteFreeBytes >= 0 && incompleteBytes >= messageBytes, "one message must fit")
    precondition(tileQuestions >= 1 && tileBytes >= 0)
    precondition(historyQuestions >= 1 && trackFixes >= 1 && historyTrips >= 1 && historyAnswerBytes >= 0)
    precondition(fencesPerPage >= 1 && tripsPerPage >= 1 && driversPerPage >= 1)
    precondition(vehiclesPerTurn >= 1)
    precondition(requestHeadBytes <= readBufferBytes && readBytesPerTurn >= 1)
    precondition(timersPerTurn >= 1 && resumedPerTurn >= 1)
    precondition(rateWarningSeconds < rateCloseSeconds)
    precondition(inflateRatio >= 1 && inflateFreeBytes >= 0)
    precondition(reportsPerTurn >= 1)
    precondition(requestsPerTurn >= 1)
    precondition(sessionBurst >= 1 && sessionRate >= 0)
  }

  /// Bytes of an answer that fits an outbox with its head.
  var largestAnswer: Int { min(answerBytes, outboxBytesPerSession) - 1024 }

  /// Bytes of a long answer that go out at once: a piece must fit an outbox.
  var answerPieceBytes: Int { min(answerBytesPerTurn, outboxBytesPerSession / 2) }
  /// Bytes of a long answer that go out at once where it is compressed on the way.
  var compressedPieceBytes: Int { min(gzipPieceBytes, answerPieceBytes) }

  /// Descriptors that are not connections: files, listeners, epoll instances.
  private static let reservedDescriptors = 64

  /// Room that the kernel's table of open files has from the start; 1 MiB of its memory.
  static let descriptorsAtStart = 128 * 1024

  /// The limits of one of `loops` loops in a process that may open `openFiles` files.
  func eventLoop(loops: Int, openFiles: Int) -> EventLoopLimits {
    var limits = EventLoopLimits()
    limits.maximumConnections = connectionsPerLoop ?? max(16, (openFiles - Limits.reservedDescriptors) / loops)
    limits.readBufferBytes = readBufferBytes
    limits.readBytesPerTurn = readBytesPerTurn
    limits.turnPaceMicroseconds = turnPaceMicroseconds
    limits.timersPerTurn = timersPerTurn
    limits.acceptsPerTurn = acceptsPerTurn
    limits.tlsHandshakesPerTurn = tlsHandshakesPerTurn
    limits.tlsKeyUpdates = tlsKeyUpdates
    limits.tlsUnsentBytes = tlsUnsentBytes
    limits.acceptsPerSecond = acceptsPerSecond
    limits.outboxBytesPerConnection = outboxBytesPerSession
    limits.outboxBytesTotal = max(outboxBytesPerSession, outboxBytes / loops)
    limits.arenaKeepBytes = arenaKeepBytes
    limits.closeMilliseconds = Int(closingSeconds * 1000)
    return limits
  }

  /// The sessions of all loops together.
  func sessions(loops: Int, openFiles: Int) -> Int {
    let connections = eventLoop(loops: loops, openFiles: openFiles).maximumConnections * loops
    return sessions ?? connections - connections / 16
  }
}
