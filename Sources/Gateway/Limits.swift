// The limits of sessions and requests: what each bounds, its default, and what happens at it. Those of other modules
// are in files of such a name, too. Those that operators change have a row among the settings of `serve`; tests set the
// rest through this type.
public import HubCore
import HubMessages
public import HubTransport
import HubWebSocket

/// The limits of one hub process. At each of them the peer is notified, and a counter is incremented.
public struct Limits: Sendable {
  /// The limits of an event loop: accepting, reading, TLS. `eventLoop` sets those that follow from limits below.
  public var loop = EventLoopLimits.ofHub

  // MARK: Admission

  /// Bytes of an HTTP request head. Past it: 431.
  public var requestHeadBytes = 8 * 1024
  /// Bytes of an HTTP request body. Past it: 413.
  public var requestBodyBytes = 256 * 1024
  /// Bytes of an HTTP request body that its endpoint does not take, or that comes without a valid credential: else
  /// 20,000 strangers could make the hub keep 256 KiB each. Past it: 413.
  public var unwantedBodyBytes = 4 * 1024
  /// Seconds for a request to become complete: the first of a connection from its beginning, others from their first
  /// byte. Past it: closed.
  public var handshakeSeconds = 10.0
  /// Seconds that an idle HTTP connection is kept for the next request. Past it: closed. And seconds that a request
  /// waits for the hub. Past it: 503.
  public var keepAliveSeconds = 30.0
  /// Seconds for taking an answer that does not fit one turn, such as a track. Past it the connection is closed.
  public var longAnswerSeconds = 120.0
  /// Unsent bytes of such answers. Those from the journal, files, and the shared vehicle feed have limits of their own.
  /// A tenth is kept for ops, and one identity may use a quarter, or have one answer of any size. Past it: 503 with
  /// `Retry-After`.
  public var longAnswerBytes = 128 * 1024 * 1024
  /// HTTP requests of one connection that are handled in one turn, and bytes of their answers, which the last may
  /// exceed; the rest waits for the next turn, and while answers are unsent nothing more is read.
  public var requestsPerTurn = 16
  public var answerBytesPerTurn = 64 * 1024
  /// HTTP requests, and units of work (`WorkUnits`; eight take some 0.2 ms), of all connections, that a loop does
  /// between two polls of its sockets, and as many for deferred ones. So the delay of other sessions is bounded:
  /// - at the limit of units, requests and messages of riders and ops wait, in order; at that of requests, requests do;
  /// - messages of drivers, of whom one identity has few sessions, do not wait;
  /// - what the last message or request exceeds a limit by is subtracted from the next polls;
  /// - bytes of messages and replies count, but for those of at most `freeBytesPerMessage`.
  public var requestsPerPoll = 16
  public var unitsPerPoll = 8
  static let freeBytesPerMessage = 1024
  /// Bytes of an answer over HTTP up to which it is not compressed, since it fits a packet; and bytes that are
  /// compressed in one turn, which takes some 0.05 ms; the rest follows in the next turns.
  public var gzipFreeBytes = 1024
  public var gzipPieceBytes = 16 * 1024
  /// Seconds for which a page of metrics waits for a busy loop. Past it: it has that loop's counters of up to a second
  /// before, which is counted.
  public var metricsSeconds = 0.5
  /// Connections of one loop; nil for what the limit of open files allows. Past it a new one is closed at once.
  public var connectionsPerLoop: Int?
  /// Sessions of all loops; nil for 15/16 of the connections that fit, which leaves the rest for HTTP and for refusals.
  /// Past it an upgrade gets 503 with `Retry-After`, without effect on open sessions.
  public var sessions: Int?
  /// Connections of one client address (of IPv6, one /64) on all loops; behind a trusted proxy, sessions. 0 for any
  /// number. A carrier's NAT has some hundred to a few thousand subscribers behind one address, few of whom use the
  /// same hub at a time. Past it: 429 with `Retry-After`.
  public var connectionsPerAddress = 1000
  /// Further connections that are accepted to get a refusal. Past it: reset at once.
  public var refusalsPerAddress = 32
  /// HTTP requests a second of one client address, upgrades included, on average and at once; 0 for any number. One
  /// with a large body counts as many (`WorkUnits`), and a TLS connection as one, for its handshake. Enough for 1,000
  /// phones without a socket behind one address that report every 2 s. Past it: 429 with `Retry-After`, and a new TLS
  /// connection is reset.
  public var requestRate = 500.0
  public var requestBurst = 1000.0
  /// Whether the limits above apply to loopback addresses. By default they do not: behind a proxy on this machine that
  /// was not named with `--trusted-proxy`, all clients have one loopback address.
  public var countsLoopbackConnections = false
  public var countsLoopbackRequests = false
  /// Addresses without a connection whose requests are remembered. Past it full buckets are forgotten, or all of these.
  public var idleAddresses = 65_536
  /// Sessions of one identity (`sub` and role), those being admitted included, on all loops. Past it an upgrade gets
  /// 429 with `Retry-After`. A driver has one at a time, and others that were just replaced.
  public var sessionsPerIdentity = RoleLimits(driver: 4, rider: 16, ops: 256)
  /// Sessions of all holders of one rider's shares; of ops' shares, of one trip's. Past it an upgrade gets 429.
  public var sessionsPerSharer = 64
  /// The value of `Retry-After` at these limits, in seconds.
  public var retryAfterSeconds = 10.0
  /// The kernel's queue of connections that are not accepted yet.
  public var acceptBacklog: Int32 = 4096
  /// Vehicles of a GTFS-realtime feed, some 70 bytes each. Past it: 413.
  public var vehiclesPerFeed = 50_000
  /// Drivers that a loop writes into a feed in one turn. The rest follows in the next turn.
  public var vehiclesPerTurn = 500
  /// Feeds of one vehicle type that an identity has under way; its questions to the journal count with them. Past it:
  /// 429 with `Retry-After`. Each takes one of the hub's unfinished pages of drivers (`HubLimits.driverLists`).
  static let typedVehicleFeedsPerIdentity = 8
  /// Seconds for which a feed is reused: all requests within that time get the same bytes.
  static let vehicleFeedSeconds = 5.0
  /// Entries of a page of a list (`GET /v1/trips`, `/v1/drivers`, `/v1/fences`) for which the client states no `limit`.
  static let pageEntries = 100
  /// Seconds without a turn of a loop, which ticks once a second. Past it `/healthz` answers 503, and the service
  /// manager gets no sign of life.
  static let hangSeconds = 10.0
  /// Certificates that a server may have; each is read at the start and on SIGHUP.
  public static let certificates = 100

  // MARK: A session

  /// Bytes of a WebSocket message. Past it: 1009.
  public var messageBytes = 256 * 1024
  /// Seconds for a message of more than `incompleteFreeBytes` from its first byte to its last. Past it, checked with
  /// the session's heartbeat: 4408.
  public var messageSeconds = 60.0
  /// Bytes of incomplete messages, heads and bodies of all connections, without the first of each; and of those from
  /// one address, or one message where that is more. Past either, a session that sends more gets 1013, and an HTTP
  /// request 503.
  public var incompleteBytes = 64 * 1024 * 1024
  public var incompleteBytesPerAddress = 8 * 1024 * 1024
  public var incompleteFreeBytes = 1024
  /// Fragments of a WebSocket message. Past it: 1009.
  public var fragments = 1024
  /// The compression ratio of a message, and the size up to which any ratio is accepted. Past it, and past
  /// `messageBytes`: 1009.
  public var inflateRatio = 200
  public var inflateFreeBytes = 64 * 1024
  /// Shorter messages are sent uncompressed: compressing costs more than it saves.
  public var compressedBytes = 256
  /// Sessions of one loop that keep their deflate contexts between messages, if the client can too; those being
  /// admitted come on top. Each costs some 80 KiB, and a compression of its own for all its messages. Past it, so with
  /// 0 always, the answer has `server_no_context_takeover` and `client_no_context_takeover`.
  public var compressionContexts = 0
  /// Units of work a second (`WorkUnits`: a short message is one, and so is a WebSocket ping or pong), on average; 0
  /// for no limit. The last message may overdraw it. Past it: further input waits, and nothing more is read, until the
  /// bucket is level; then `rate_limited`, then 4429.
  public var sessionRate = 10.0
  /// Units that may come at once.
  public var sessionBurst = 50.0
  /// Seconds for which what an ended session has left of its rate is kept for the next one of its identity, unless it
  /// is full again before; with a tiny rate that could take days.
  static let leftoverSeconds = 60.0
  /// Seconds over the rate after which the session is warned, and after which it is closed.
  public var rateWarningSeconds = 5.0
  public var rateCloseSeconds = 60.0
  /// Violations within the window below; one more closes a session with 4400.
  public var badMessages = 10
  public var badMessageWindowSeconds = 60.0
  /// Sessions checked for revoked tokens in one step, or more where a sweep would take more than `sweepSteps`; and the
  /// pause between two steps (ns).
  static let sessionsPerSweep = 512
  static let sweepSteps = 128
  static let sweepPause: Int64 = 2_000_000
  /// Subscriptions of one session. Past it: `rate_limited`. Each is looked for in a list of all, so that a view
  /// of n cells takes n² steps.
  public var subscriptionsPerSession = 256
  /// Unanswered subscriptions of one session: each may bring `eventsPerChannel` missed events. Past it the session's
  /// further messages wait until these are answered and read.
  public var unansweredSubscriptions = 2
  /// Channels of one stream of events. Past it: 400.
  public var channelsPerStream = 16
  /// Seconds between two comments on a stream of events, which show proxies and clients that it is alive: the protocol
  /// promises one each 15 s (protocol/events.md).
  static let streamCommentSeconds = 12.0
  /// Milliseconds for which a stream's client may acknowledge nothing, or read nothing while its buffers are full: the
  /// time after which a silent session over a WebSocket ends by default. Past it the stream ends.
  static let streamSilenceMilliseconds: Int32 = 75_000
  /// Seconds after which a client is asked to reopen its stream: at random between these.
  static let streamRetrySeconds = 1.0..<5.0
  /// Seconds for the peer to answer a close frame, to take the last bytes of a session, and to close its side. Past it:
  /// aborted.
  public var closingSeconds = 3.0

  // MARK: What waits to be sent

  /// Unsent bytes of one session. Past it: 4413.
  public var outboxBytesPerSession = 512 * 1024
  /// Unsent bytes of all sessions, divided evenly among the loops, so that none has to ask the others for each frame.
  /// Past its share: a session with at least half as many as any other gets 4413, or the one that needs more.
  public var outboxBytes = 256 * 1024 * 1024
  /// Output of one turn; past it the output so far is written at once. It keeps offsets within 32 bits.
  public var arenaFlushBytes = 16 * 1024 * 1024
  /// Paused connections that resume in one turn; the rest follows in the next ones, in order. Sessions over their rate
  /// resume for one message at a time, and hundreds of them in the same tick of the timers.
  public var resumedPerTurn = 8
  /// Exchanges between loop and hub in one turn: an answer of the hub may lead to new inputs (a pipelined request, the
  /// frames behind an upgrade, a session that ended). Inputs beyond that wait for the next turn.
  static let exchangesPerTurn = 16
  /// Inputs of one loop that may wait while another runs the hub, and outputs of the hub that may wait for one loop. At
  /// the first the loop stops reading until the hub has caught up; at the second the loop that runs the hub waits.
  public var mailboxMessages = 1 << 18

  // MARK: The hub's tables, and what is asked of it

  /// The tables, of each of which a tenth is kept for ops (`Role.share`), and the work of a turn.
  public var hub = HubLimits()
  /// Drivers of answers to queries that a loop writes in one turn, compressed ones counted fourfold: some 150 µs for
  /// drivers with 8 tags. The rest follows in the next turn. An answer with the default limit is sent at once. A loop
  /// writes as many answers at a time as the hub has running queries.
  public var reportsPerTurn = DriverSearch.defaultLimit
  /// Bytes of the answer to a query: what clients read at most. Past it, and past what fits an outbox: `too_large`.
  public var answerBytes = 512 * 1024
  /// Watched cells of one identity, counted for each view of each of its sessions. Past it: `rate_limited`.
  public var areasPerIdentity = RoleLimits(driver: 256, rider: 512, ops: 16_384)
  /// Metres of `nearby:` for ops (riders' limit is `PublicAudience.maximumRadiusMeters`). Past it: `bad_message`.
  public var areaRadiusMeters = 500_000.0
  /// Bytes of changes in areas that a loop sends in one turn, some 100 µs, each session counting `areaBytesPerWrite`
  /// more. The rest follows in the next turn.
  public var areaBytesPerTurn = 64 * 1024
  public var areaBytesPerWrite = 4 * 1024
  /// Bytes of cells that a loop keeps encoded for other watchers within the same second. Past it they are encoded
  /// again.
  public var areaCacheBytes = 16 * 1024 * 1024
  /// Trips of one page of `GET /v1/trips`. Past it: 400.
  public var tripsPerPage = 1000
  /// Questions to the journal's past that may wait; as many of one loop's may be unanswered. Past it: 503 with
  /// `Retry-After`.
  public var historyQuestions = 64
  /// Seconds that such a question may take. Past it: 503 `rate_limited`, and the connection is closed.
  public var historySeconds = 300.0
  /// Fixes of one track. Past it: 413.
  public var trackFixes = 100_000
  /// Records of ended trips that are read from the journal for one page of forgotten trips. Past it: 413.
  public var historyTrips = 500_000
  /// Unsent bytes of answers out of the journal, of which one identity has a quarter, or a single one. Past it: 503
  /// with `Retry-After`, before the journal is read.
  public var historyAnswerBytes = 64 * 1024 * 1024
  /// Images of the map that may wait for the disk; as many of one loop's may be unanswered. A browser requests six at
  /// once. Past it: 503 with `Retry-After`.
  public var tileQuestions = 256
  /// Images of one address that wait for the disk or are unsent: a part of all, since many browsers may share an
  /// address. No limit where `requestRate` does not apply. Past it: 503 with `Retry-After`.
  public var tileQuestionsPerAddress = 64
  /// Unsent bytes of such images. Past it: 503 with `Retry-After`.
  public var tileBytes = 16 * 1024 * 1024
  /// Drivers of one page of `GET /v1/drivers`. Past it: 400.
  public var driversPerPage = 1000
  /// Fences of one page of `GET /v1/fences`. Past it: 400.
  public var fencesPerPage = 500
  /// Positions of the fences of one page with their whole shapes, some 26 bytes each. Past it: the next page.
  static let positionsPerFencePage = 12_000
  /// Dead letters of one page of `GET /v1/webhooks/{id}/dead`. Past it: 400.
  public var deadLettersPerPage = 1000

  /// Seconds between two lines of the log about images of the map that cannot be read.
  static let tileWarningSeconds = 60.0

  public init() {}

  /// Checks relations that the code relies on; called once at the start.
  func validate() {
    precondition(messageBytes <= outboxBytesPerSession, "an answer of the size of a message must fit an outbox")
    precondition(outboxBytesPerSession <= outboxBytes)
    hub.validate()
    precondition((sessions ?? 1) >= 1 && connectionsPerAddress >= 0 && refusalsPerAddress >= 0 && idleAddresses >= 0)
    precondition(sessionsPerIdentity.isValid && areasPerIdentity.isValid && sessionsPerSharer >= 1)
    precondition(requestRate >= 0 && requestBurst >= 1 && answerBytesPerTurn >= 1)
    precondition(gzipPieceBytes >= 1 && longAnswerBytes >= 0)
    precondition(requestsPerPoll >= requestsPerTurn && unitsPerPoll >= 1)
    precondition(incompleteFreeBytes >= 0 && incompleteBytes >= messageBytes, "one message must fit")
    precondition(tileQuestions >= 1 && tileQuestionsPerAddress >= 1 && tileBytes >= 0)
    precondition(historyQuestions >= 1 && trackFixes >= 1 && historyTrips >= 1 && historyAnswerBytes >= 0)
    precondition(fencesPerPage >= 1 && tripsPerPage >= 1 && driversPerPage >= 1)
    precondition(vehiclesPerTurn >= 1 && vehiclesPerFeed >= 1)
    precondition(requestHeadBytes <= loop.readBufferBytes && resumedPerTurn >= 1)
    precondition(rateWarningSeconds < rateCloseSeconds)
    precondition(inflateRatio >= 1 && inflateFreeBytes >= 0)
    precondition(reportsPerTurn >= 1)
    precondition(requestsPerTurn >= 1)
    precondition(sessionBurst >= 1 && sessionRate >= 0)
  }

  /// Bytes that are kept behind a request whose answer is due: those of the largest request. Past it the socket is not
  /// read until the answer, or the upgrade, is there.
  var pipelinedBytes: Int { requestHeadBytes + requestBodyBytes }

  /// Bytes of an answer that fits an outbox with its head.
  var largestAnswer: Int { min(answerBytes, outboxBytesPerSession) - 1024 }

  /// Bytes of a long answer in one piece, which must fit an outbox.
  var answerPieceBytes: Int { min(answerBytesPerTurn, outboxBytesPerSession / 2) }
  /// Bytes of a long answer in one piece that is compressed when sent.
  var compressedPieceBytes: Int { min(gzipPieceBytes, answerPieceBytes) }

  /// Descriptors that are not clients' connections: files, listeners, epoll instances, rings, operators' connections,
  /// and deliveries, which take some 400 with the most webhooks, each with 16 requests at once. A quarter of what the
  /// process may open, within these bounds.
  private static let reservedDescriptors = 64 + EventLoopLimits.unpacedConnections...512

  /// The kernel's table of open files is grown to this at the start; 1 MiB of its memory.
  static let descriptorsAtStart = 128 * 1024

  /// The limits of one of `loops` loops in a process that may open `openFiles` files.
  func eventLoop(loops: Int, openFiles: Int) -> EventLoopLimits {
    var limits = loop
    let reserved = min(max(openFiles / 4, Self.reservedDescriptors.lowerBound), Self.reservedDescriptors.upperBound)
    limits.maximumConnections = connectionsPerLoop ?? max(16, (openFiles - reserved) / loops)
    limits.turnPaceMicroseconds *= min(loops, 2)
    limits.outboxBytesPerConnection = outboxBytesPerSession
    limits.outboxBytesTotal = max(outboxBytesPerSession, outboxBytes / loops)
    limits.closeMilliseconds = Int(closingSeconds * 1000)
    return limits
  }

  /// The sessions of all loops together.
  func sessions(loops: Int, openFiles: Int) -> Int {
    let connections = eventLoop(loops: loops, openFiles: openFiles).maximumConnections * loops
    return sessions ?? connections - connections / 16
  }
}

extension EventLoopLimits {
  /// The limits of a hub's loop. They are low, since all others wait while one client uses its share of a turn.
  fileprivate static var ofHub: EventLoopLimits {
    var limits = EventLoopLimits()
    // More handshakes than a core can serve.
    limits.acceptsPerSecond = 5000
    limits.acceptsPerTurn = 16
    // Some 0.7 ms.
    limits.tlsHandshakesPerTurn = 4
    // As much as 150 fixes, inflated bytes counted twice: fixes do not wait for a hundred clients that send all that
    // the kernel holds. It limits a turn's lists, too, which keep the size of the largest.
    limits.readBytesPerTurn = 32 * 1024
    // Doubled where there are several loops (`eventLoop`), since each gets at most half of the messages.
    limits.turnPaceMicroseconds = 500
    limits.sendsTogether = true
    return limits
  }
}
