// What handlers may read beside the request. It is constant while a request is handled, and not part of the loop: a
// handler gives an outcome, which the loop applies.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubSystem
import HubTransport
import HubWebSocket
import HubWebhooks

/// What is the same for all requests of a loop.
final class HTTPSettings {
  private var current: Current<ServerConfiguration>
  private(set) var configuration: ServerConfiguration
  let shared: SharedState
  let reader: MessageReader
  private let connectionsPerLoop: Int
  let headLimits: HTTPLimits
  /// For unwanted bodies: a small one is read and dropped, to keep the connection.
  let unwantedBodyLimits: HTTPLimits
  /// What each page is sent with.
  let pageFields: [OutgoingField]
  let vehicleFeeds = VehicleFeeds()

  init(
    _ configuration: ServerConfiguration, _ shared: SharedState, _ reader: MessageReader, connectionsPerLoop: Int = 0
  ) {
    self.configuration = configuration
    current = Current(shared.settings)
    self.shared = shared
    self.reader = reader
    self.connectionsPerLoop = connectionsPerLoop
    let limits = configuration.limits
    headLimits = HTTPLimits(headBytes: limits.requestHeadBytes, bodyBytes: limits.requestBodyBytes)
    unwantedBodyLimits = HTTPLimits(
      headBytes: limits.requestHeadBytes, bodyBytes: min(limits.requestBodyBytes, limits.unwantedBodyBytes))
    pageFields = PageFields.all(configuration.pages)
  }

  /// Takes new settings while the server runs; false where there are none.
  func pickUp() -> Bool {
    guard current.pickUp() else { return false }
    configuration = current.value
    return true
  }

  /// The first message of a session. `rate`: units of work a second.
  func connected(
    _ sessionID: InlineText, as credential: Credential, rate: Double, _ sampling: Connected.Sampling?, now: Timestamp
  ) -> Connected {
    Connected(
      sessionID: sessionID, role: credential.role, id: credential.id,
      heartbeatInterval: configuration.heartbeatInterval, serverTime: now,
      limits: Connected.Limits(
        maxMessageBytes: configuration.limits.messageBytes, maxBatch: LocationBatch.maximumCount, rate: rate),
      sampling: sampling)
  }

  /// Trips and fixes are stored, so forgotten ones can be requested.
  var hasHistory: Bool { shared.history != nil }

  /// The present counters of all loops and the hub.
  func metricsPage() -> Response {
    Response(.ok, contentType: "text/plain; version=0.0.4; charset=utf-8", body: Metric.page(metrics()))
  }

  /// The data of the metrics page and the channel `stats`.
  func metrics() -> MetricsReading {
    let (limits, admissions) = (configuration.limits, shared.admissions)
    return MetricsReading(
      loops: shared.metrics.loops, hub: shared.metrics.hub.counters, journal: shared.journal, history: shared.history,
      cluster: shared.metrics.cluster.withLock { $0 }, webhooks: shared.webhooks?.figures,
      streams: shared.webhooks?.streamFigures,
      tables: TableBounds(
        limits: limits, loops: configuration.loops, sessions: admissions.sessionLimit,
        connectionsPerLoop: connectionsPerLoop, addresses: admissions.addressCount,
        identities: admissions.identityCount),
      residentBytes: ProcessFacts.residentBytes() ?? 0, cpuNanoseconds: ProcessFacts.cpuTimeNanoseconds(),
      incompleteBytes: admissions.incomplete, started: shared.started, commit: configuration.commit,
      isDraining: shared.lifecycle.isShuttingDown, reloads: reloads, certificateEnd: configuration.tls?.notAfter,
      openFileLimit: ProcessFacts.currentFileLimit, openDescriptors: ProcessFacts.openDescriptors())
  }

  private var reloads: [(what: StaticString, isSuccessful: Bool, timestamp: Int64)] {
    Reloadable.allCases.map { what in
      let outcome = shared.reloads.outcome(what)
      return (what.name, outcome.isSuccessful, outcome.timestamp ?? shared.started)
    }
  }

  /// The fields that let a browser's page read an answer, unless the answer has its own.
  func corsFields(_ origin: AllowedOrigins.Verdict, for response: Response) -> [OutgoingField] {
    // Also without an origin: a cache may not give that answer to a page (Fetch standard, "CORS protocol and HTTP
    // caches").
    let vary = configuration.origins.isEmpty ? [] : [OutgoingField("Vary", "Origin")]
    guard case .allowed(let origin) = origin,
      !response.fields.contains(where: { "\($0.name)" == PageFields.forAllOrigins.name.description })
    else { return vary }
    return [
      OutgoingField("Access-Control-Allow-Origin", origin),
      OutgoingField(
        "Access-Control-Expose-Headers",
        "Location, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"),
      OutgoingField("Vary", "Origin"),
    ]
  }
}

struct HTTPContext {
  let settings: HTTPSettings
  let now: Moment
  /// The connection, as the hub's session.
  let session: SessionRef
  let phase: Lifecycle.Phase
  let credentials: CredentialCheck
  /// What is accepted of an upgrade's offers of compression; nil for none.
  let compression: DeflatePolicy?

  var configuration: ServerConfiguration { settings.configuration }
  var limits: Limits { settings.configuration.limits }

  /// The hub has forgotten trips that ended by this time.
  var forgottenBy: Timestamp {
    Timestamp(milliseconds: now.timestamp.milliseconds - Int64(configuration.timings.retention * 1000))
  }

  // MARK: Who may come in

  /// Checks before the request itself: its address's rate, and its web page.
  func admit(
    _ request: HTTPRequest, isOverAddressLimit: Bool, isForAllOrigins: @autoclosure () -> Bool
  ) throws(Refusal) {
    if isOverAddressLimit { throw Refusal.tooManyConnections(limits, endsConnection: true) }
    try chargeAddress(of: request)
    guard request.origin != .refused || isForAllOrigins() else {
      throw Refusal(
        .forbidden, "pages of this origin may not use this hub; its operator can allow them with --allow-origin",
        counting: { $0.originsRefused += 1 })
    }
  }

  /// Charges the head of a request with a body to its address, before its credential is checked for that body; false
  /// where the address is over its rate.
  func admitsHead(of request: HTTPRequest) -> Bool {
    guard request.head.framing != .none, let key = countedKey(of: request) else { return true }
    request.rateKey = key
    request.rateWait = settings.shared.admissions.charge(key, 1, now: now.uptime)
    return request.rateWait == nil
  }

  /// The key of a request's address; nil where that has no rate.
  private func countedKey(of request: HTTPRequest) -> UInt64? {
    guard limits.requestRate > 0, !request.peer.isAdmin else { return nil }
    return request.clientAddress(trusted: configuration.trustedProxies).countedKey(
      onLoopback: limits.countsLoopbackRequests)
  }

  private func chargeAddress(of request: HTTPRequest) throws(Refusal) {
    guard let key = countedKey(of: request) else { return }
    let paid = request.rateKey == 0 ? 0 : 1  // for its head
    request.rateKey = key
    let units = WorkUnits.of(bytes: request.body.count) - paid
    var wait = request.rateWait
    if wait == nil, units > 0 { wait = settings.shared.admissions.charge(key, units, paid: paid, now: now.uptime) }
    guard let wait else { return }
    // Further requests need a new connection. A proxy's is shared by others, who are within their rate.
    throw Refusal(
      .rateLimited,
      "more than \(limits.requestRate) requests a second of one address, large bodies counted as many",
      status: .tooManyRequests, retryAfter: Int(wait / 1_000_000_000) + 1, endsConnection: !request.peer.isProxy,
      counting: { $0.count(.requestRate) })
  }

  /// The metrics are open without a credential on the admin port, or from this machine where there is no admin port,
  /// both only under an allowed host; and to ops.
  func admitOperator(_ request: HTTPRequest) throws(Refusal) {
    let isAdmin = request.peer.isAdmin
    let client = ClientAddress(
      of: request.head.fields, peer: request.peer.address, trusted: configuration.trustedProxies)
    let needsNone = isAdmin || !configuration.hasAdminPort && client.isThisMachine
    if needsNone, configuration.hosts.allows(request.head.fields, allowsAddresses: isAdmin) { return }
    do throws(CredentialError) {
      if try request.credential(by: credentials).role == .ops { return }
    } catch {
      let text = "without a credential metrics are shown only where \(CredentialError.hosts)"
      throw Refusal(needsNone ? CredentialError(text: text) : error)
    }
    throw Refusal(.forbidden, "only ops may see this")
  }
}

extension Refusal {
  /// The address has reached its limit of connections.
  static func tooManyConnections(
    _ limits: Limits, endsConnection: Bool = false,
    counting: @escaping @Sendable (inout LoopCounters) -> Void = { _ in }
  ) -> Refusal {
    Refusal(
      .rateLimited, "this address has more than \(limits.connectionsPerAddress) connections",
      status: .tooManyRequests, retryAfter: Int(limits.retryAfterSeconds), endsConnection: endsConnection,
      counting: counting)
  }

  /// The hub does not admit a driver's upgrade. `retryAfter`: seconds.
  static func handshake(_ status: Status, _ message: String, retryAfter: Double) -> Refusal {
    Refusal(.rateLimited, message, status: status, retryAfter: Int(retryAfter.rounded(.up))) {
      $0.handshakesRefused += 1
    }
  }

  /// No room for an incomplete request.
  static func tooManyIncomplete(_ limits: Limits) -> Refusal {
    Refusal(.rateLimited, "this hub has too many incomplete requests", retryAfter: Int(limits.retryAfterSeconds))
  }

  /// No room for a long answer, which would be unread for long.
  static let tooMuchUnread = Refusal(
    .rateLimited, "too many long answers are unread", retryAfter: 1, counting: { $0.count(.answerMemory) })

  /// A thread that reads files did not answer in time, most likely because of a slow disk.
  static func notReadInTime(_ limits: Limits) -> Refusal {
    Refusal(
      .rateLimited, "it could not be read in time", retryAfter: Int(limits.retryAfterSeconds), endsConnection: true)
  }

  /// The hub did not answer in time, most likely because of a slow disk.
  static func notStoredInTime(_ limits: Limits) -> Refusal {
    Refusal(
      .storageFull,
      "not stored in time; it may still be: send the same again, with the Idempotency-Key or messageId that it had",
      retryAfter: Int(limits.retryAfterSeconds), endsConnection: true)
  }
}
