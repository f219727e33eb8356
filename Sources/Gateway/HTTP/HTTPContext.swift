// What handlers may look at beside the request. Nothing in it changes while one request is handled, and nothing of it
// is the loop's: a handler gives an outcome, which the loop applies.
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
  /// For a request whose body is not wanted: a small one is read and dropped, to keep the connection.
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

  /// Takes those that are new while the server runs; false where there are none.
  func pickUp() -> Bool {
    guard current.pickUp() else { return false }
    configuration = current.value
    return true
  }

  /// Trips and fixes are stored, so what the hub has forgotten can be asked for.
  var hasHistory: Bool { shared.history != nil }

  /// The counters of all loops and the hub, as they are now.
  func metricsPage() -> Response {
    Response(.ok, contentType: "text/plain; version=0.0.4; charset=utf-8", body: Metric.page(metrics()))
  }

  /// What the page, and the channel `stats`, are made from.
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
      openFileLimit: ProcessFacts.openFiles, openDescriptors: ProcessFacts.openDescriptors())
  }

  private var reloads: [(what: StaticString, isSuccessful: Bool, timestamp: Int64)] {
    Reloadable.allCases.map { what in
      let outcome = shared.reloads.outcome(what)
      return (what.name, outcome.isSuccessful, outcome.timestamp ?? shared.started)
    }
  }

  /// What a browser must be told before its page may read an answer, unless the answer says so itself.
  func corsFields(_ origin: AllowedOrigins.Verdict, for response: Response) -> [OutgoingField] {
    // Also where no origin was sent: a cache may not give that answer to a page (Fetch standard, "CORS protocol and
    // HTTP caches").
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
  /// The connection, as the hub knows it.
  let session: SessionRef
  let phase: Lifecycle.Phase
  let credentials: CredentialCheck
  /// What is taken of an upgrade's offers of compression; nil for none.
  let compression: DeflatePolicy?

  var configuration: ServerConfiguration { settings.configuration }
  var limits: Limits { settings.configuration.limits }

  /// What ended by this time the hub has forgotten.
  var forgottenBy: Timestamp {
    Timestamp(milliseconds: now.timestamp.milliseconds - Int64(configuration.timings.retention * 1000))
  }

  // MARK: Who may come in

  /// What is looked at before the request itself: how much its address asks for, and which web page it is of.
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

  private func chargeAddress(of request: HTTPRequest) throws(Refusal) {
    guard limits.requestRate > 0, !request.peer.isAdmin,
      let key = request.clientAddress(trusted: configuration.trustedProxies).countedKey(
        onLoopback: limits.countsLoopbackRequests)
    else { return }
    request.rateKey = key
    let units = WorkUnits.of(bytes: request.body.count)
    guard let wait = settings.shared.admissions.charge(key, units, now: now.uptime) else { return }
    // To ask on costs a new connection. A proxy's is shared by others, who are within their rate.
    throw Refusal(
      .rateLimited,
      "more than \(limits.requestRate) requests a second of one address, large bodies counted as many",
      status: .tooManyRequests, retryAfter: Int(wait / 1_000_000_000) + 1, endsConnection: !request.peer.isProxy,
      counting: { $0.count(.requestRate) })
  }

  /// The metrics may be seen without a credential on the admin port, or from this machine where there is no admin port,
  /// both only under an allowed host; or by ops.
  func admitOperator(_ request: HTTPRequest) throws(Refusal) {
    let isAdmin = request.peer.isAdmin
    let client = ClientAddress(
      of: request.head.fields, peer: request.peer.address, trusted: configuration.trustedProxies)
    let needsNone = isAdmin || configuration.adminPort == nil && client.isThisMachine
    let own = isAdmin ? configuration.adminHost : nil
    if needsNone, configuration.hosts.allows(request.head.fields, own: own) { return }
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
  /// The address has all the connections that it may.
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

  /// There is no room for what a request has sent so far.
  static func tooManyIncomplete(_ limits: Limits) -> Refusal {
    Refusal(.rateLimited, "this hub has too many incomplete requests", retryAfter: Int(limits.retryAfterSeconds))
  }

  /// A thread that reads files did not answer in time, most likely because the disk is slow.
  static func notReadInTime(_ limits: Limits) -> Refusal {
    Refusal(
      .rateLimited, "it could not be read in time", retryAfter: Int(limits.retryAfterSeconds), endsConnection: true)
  }

  /// The hub did not answer in time, most likely because the disk is slow.
  static func notStoredInTime(_ limits: Limits) -> Refusal {
    Refusal(
      .storageFull,
      "not stored in time; it may still be: send the same again, with the Idempotency-Key or messageId that it had",
      retryAfter: Int(limits.retryAfterSeconds), endsConnection: true)
  }
}
