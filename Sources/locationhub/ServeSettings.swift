// The settings of `serve`: a row each, from which options, settings file, environment variables, help, checks and the
// table in deploy/README.md are made (`make docs`). Defaults are in `ServerConfiguration`, `Limits` and `HubLimits`;
// limits that do not concern clients have no row.
import HubBytes
import HubCluster
import HubCommandLine
import HubCore
import HubGateway
import HubJournal
import HubMessages
import HubPages
import HubRuntime
import HubSystem
import HubTokens
import HubTransport
import HubWebhooks

/// The options of `serve`.
struct ServeOptions: Sendable {
  /// The given values, and their sources.
  private(set) var given: Arguments?
  var server = ServerConfiguration()
  var loops: Int?
  var tlsCertificates: [String] = []
  var tlsKeys: [String] = []
  var clientAuthorities: String?
  var tokenKeys: String?
  var deviceKeys: String?
  var tokenSignKey: String?
  var tokenIssuer: String?
  var tokenAudience: String?
  var revoked: String?
  /// Limits of sessions, by the name in a token.
  var tiers: [InlineText: SessionLimits] = [:]
  var pseudonymKey: String?
  var journal = JournalConfiguration(directory: "./data")
  var hasNoJournal = false
  var adminHost: String?
  var hasNoPages = false
  var map = MapOptions()
  var cluster: String?
  var webhooks: String?
  /// The files of TLS; nil for plain HTTP.
  private(set) var tlsFiles: TLSFiles?

  static let settings: [Setting<ServeOptions>] =
    listening + tls + tokens + storage + access + pages + pace
    + (newcomers + limits + identities).map { $0.part(of: \.server.limits) }

  private static let counts = 1...(1 << 24)
  private static let rates = 0.0...1_000_000
  private static let bursts = 1.0...1_000_000
  private static let seconds = 0.1...3600.0

  private static let listening: [Setting<ServeOptions>] = [
    Setting("host", \.server.host, .text, "ADDRESS", "numeric address to listen on"),
    Setting("port", \.server.port, .whole(0...65535), "PORT", "TCP port; 0 picks a free one"),
    Setting("loops", \.loops, .whole(1...64), "N", "event loops", otherwise: "one for each usable core"),
    Setting("cluster", \.cluster, .text, "FILE", "be one of several hubs, as this file says: protocol/cluster.md"),
    Setting("webhooks", \.webhooks, .text, "FILE", "deliver events as this file says: protocol/webhooks.md").live(
      \.webhooks),
    Setting(
      "webhook-allow", "URL", "prefixes of URLs, or blocks of inside addresses, that webhooks set over HTTP may name",
      mustBe: "https://, the beginning of a URL, or a block such as 10.0.0.0/8", repeats: true
    ) { $0.server.webhookReceivers.allow($1) },
    Setting(
      "dev-auth", \.server.allowsDevelopmentCredentials, "accept ?role=…&id=… as a credential; only on loopback"),
  ]

  static let storage: [Setting<ServeOptions>] = [
    Setting("data", \.journal.directory, .text, "DIR", "keep what is durable there, over restarts and crashes"),
    Setting("no-journal", \.hasNoJournal, "keep nothing: a restart forgets"),
    Setting(
      "retain", \.retention.milliseconds, .duration, "TIME",
      "how long history stays readable: 90s, 15m, 36h, 30d"
    ).live(\.retention),
    Setting(
      "retain-size", \.retention.bytes, .size(), "BYTES",
      "delete the oldest when there is more on the disk: 500M, 64G"
    ).live(\.retention),
    Setting(
      "snapshot-every", \.journal.limits.snapshotBytes, .size(), "BYTES",
      "write a snapshot after so many bytes of records"),
    Setting(
      "accept-loss", \.journal.acceptsLoss,
      "start before the damage in the journal; what follows it is moved aside"),
  ]

  private static let access: [Setting<ServeOptions>] = [
    Setting(
      "public-gtfs", \.server.isVehicleFeedPublic,
      "let everybody read GTFS-realtime's vehicle positions, not only ops"),
    Setting(
      "allow-origin", "ORIGIN", "web pages that may use the hub: https://app.example; * for all",
      mustBe: "scheme://host or scheme://host:port, or *", repeats: true
    ) { $0.server.origins.allow($1) }.live(\.server.origins),
    Setting(
      "allow-host", "NAME", "hosts besides loopback where --dev-auth and open /metrics are served",
      mustBe: "a name or a numeric address, without a port", repeats: true
    ) { $0.server.hosts.allow($1) }.live(\.server.hosts),
    Setting(
      "trusted-proxy", "CIDR", "trust X-Forwarded-For from these addresses",
      mustBe: "an address or a block such as 10.0.0.0/8 or fd00::/8", repeats: true
    ) { options, text in AddressBlock(text).map { options.server.trustedProxies.append($0) } != nil }
    .live(\.server.trustedProxies),
    Setting(
      "admin-port", \.server.adminPort, .whole(0...65535), "PORT",
      "a second port with /healthz, /readyz and /metrics; 0 picks a free one"),
    Setting(
      "admin-host", \.adminHost, .text, "ADDRESS", "numeric address of that port",
      otherwise: ServerConfiguration().adminHost),
  ]

  private static let pages: [Setting<ServeOptions>] = [
    Setting("no-pages", \.hasNoPages, "serve no pages, no hub.js and no /v1/about"),
    Setting(
      "public-url", "URL", "where clients reach the hub; its pages have that origin",
      mustBe: "https://host or https://host:port (or http)"
    ) { $0.server.setPublicURL($1) },
    Setting(
      "streets", \.map.streets, .text, "FILE", "draw these streets: NAME_edges.csv (from,to,class), with NAME_nodes.csv"
    ),
    Setting(
      "tiles", "FILE|URL", "draw a map's images: a .pmtiles file, a folder of z/x/y.png, https://host/{z}/{x}/{y}.png",
      mustBe: "a .pmtiles file, a folder, or an https URL with {z}, {x} and {y}"
    ) { options, text in
      options.map.tiles = MapOptions.Tiles(text)
      return options.map.tiles != nil
    },
    Setting("attribution", \.map.attribution, .text, "TEXT", "whose streets and tiles they are, shown on the map"),
  ]

  private static let pace: [Setting<ServeOptions>] = [
    Setting(
      "flush-interval", \.server.flushIntervalMilliseconds, .whole(0...10_000), "MS",
      "hold positions back and send only the newest; 0: never"),
    Setting(
      "turn-pace", \.server.limits.loop.turnPaceMicroseconds, .whole(0...10_000), "US",
      "under load, let sockets gather this long before a turn; twice that with several loops; 0: never"),
    Setting("io-uring", \.server.limits.loop.sendsTogether, .onOff, "on|off", "send to many in one system call"),
    Setting(
      "heartbeat", \.server.heartbeatInterval, .number(seconds), "SECONDS", "how often a client should be heard",
      past: #"close 4408 after 2.5 times as long (`closes_total{code="4408"}`)"#),
    Setting("compression", \.server.compression, .onOff, "on|off", "compress for clients that offer it"),
    Setting(
      "sampling", "SECONDS", "the interval at which drivers are advised to send", mustBe: "a number from 0.1 to 3600",
      write: { _ in "by trip, speed, who follows" },
      read: { options, text in
        ValueKind.number(seconds).read(text).map { options.server.sampling = .fixed(seconds: $0) } != nil
      }),
    Setting(
      "drain-delay", \.server.drainDelay, .number(0...300), "SECONDS",
      "fail readiness this long before sessions are closed"
    ).live(\.server.drainDelay),
    Setting(
      "drain-spread", \.server.drainSpread, .number(0...600), "SECONDS",
      "then close sessions evenly over this time; 0: all at once"
    ).live(\.server.drainSpread),
    Setting(
      "log-level", \.server.logLevel, .choice(LogLevel.allCases.map { ("\($0.name)", $0) }), "LEVEL",
      "debug, info, warning or error"
    ).live(\.server.logLevel),
    Setting(
      "log-format", \.server.logFormat, .choice(LogFormat.allCases.map { ($0.name, $0) }), "FORMAT",
      "key=value words, or an object of JSON a line: logfmt or json"),
  ]

  /// Limits of new connections.
  private static let newcomers: [Setting<Limits>] = [
    Setting(
      "max-connections", \.connectionsPerLoop, .whole(counts), "N", "connections of one loop",
      otherwise: "what the open-file limit allows", past: "closed at once (`connections_refused_total`)"),
    Setting(
      "max-sessions", \.sessions, .whole(1...(1 << 26)), "N", "sessions of all loops",
      otherwise: "15/16 of the connections", past: "503" + hits("sessions")),
    Setting(
      "max-per-address", \.connectionsPerAddress, .whole(0...(1 << 26)), "N",
      "connections of one address; 0 = unlimited; loopback is unlimited unless this is set",
      past: "429" + hits("connections_per_address")
    ).live(\.connectionsPerAddress).live(\.countsLoopbackConnections),
    Setting(
      "request-rate", \.requestRate, .number(rates), "N",
      "HTTP requests and TLS connections a second per address; 0 = unlimited; loopback is unlimited unless this is set",
      past: "429, or a reset of the TLS connection" + hits("request_rate")),
    Setting(
      "request-burst", \.requestBurst, .number(bursts), "N", "HTTP requests of one address that may come at once",
      past: "429" + hits("request_rate")),
    Setting(
      "accept-rate", \.loop.acceptsPerSecond, .whole(0...1_000_000), "N",
      "connections accepted a second by one loop; 0 for any number",
      past: "they wait in the kernel's queue (`accept_waits_total`)"),
    Setting(
      "max-head", \.requestHeadBytes, .size(512...Limits().loop.readBufferBytes), "BYTES", "head of an HTTP request",
      past: #"431 (`http_responses_total{status="431"}`)"#),
    Setting(
      "handshake-time", \.handshakeSeconds, .number(seconds), "SECONDS",
      "for a request, from its first byte; a new connection's from its beginning, TLS handshake included",
      past: "closed (`request_timeouts_total`)"),
    Setting(
      "keep-alive", \.keepAliveSeconds, .number(seconds), "SECONDS",
      "an HTTP connection may wait for its next request", past: "closed"),
    Setting(
      "close-time", \.closingSeconds, .number(seconds), "SECONDS",
      "for a client to answer a close frame and to read what its session has unsent; at most 4 when the hub ends",
      past: "aborted"),
  ]

  private static let limits: [Setting<Limits>] = [
    Setting(
      "compression-contexts", \.compressionContexts, .whole(0...(1 << 24)), "N",
      "sessions of a loop that may keep deflate contexts, 80 KiB each", past: "no context takeover"),
    Setting(
      "session-rate", \.sessionRate, .number(rates), "N",
      "units of work a second of one session; a short message or a ping is one; 0 for no limit",
      past: "reading pauses (`rate_pauses_total`); after 5 s `rate_limited`; after 60 s close 4429"),
    Setting(
      "session-burst", \.sessionBurst, .number(bursts), "N", "units of work that may come at once",
      past: "as at `session-rate`"),
    Setting(
      "max-message", \.messageBytes, .size(1024...(1 << 24)), "BYTES",
      "a WebSocket message, or the body of an HTTP request", past: "close 1009; 413" + hits("message_bytes")),
    Setting(
      "max-fragments", \.fragments, .whole(1...(1 << 20)), "N", "fragments of one message",
      past: "close 1009" + hits("fragments")),
    Setting(
      "message-time", \.messageSeconds, .number(seconds), "SECONDS", "for a message from its first byte to its last",
      past: "close 4408" + hits("message_time")),
    Setting(
      "max-incomplete", \.incompleteBytes, .size(1024...(1 << 40)), "BYTES",
      "bytes of all incomplete messages and requests", past: "close 1013; 503" + hits("incomplete_bytes")),
    Setting(
      "max-subscriptions", \.subscriptionsPerSession, .whole(1...4096), "N", "subscriptions of one session",
      past: "`rate_limited`" + hits("subscriptions")),
    Setting(
      "max-outbox", \.outboxBytesPerSession, .size(1024...(1 << 30)), "BYTES", "unsent bytes of one session",
      past: "close 4413" + hits("outbox_bytes")),
    Setting(
      "max-outboxes", \.outboxBytes, .size(1024...(1 << 40)), "BYTES", "unsent bytes of all sessions",
      past: "close 4413 of the session with the most unsent bytes" + hits("all_outbox_bytes")),
    Setting(
      "max-drivers", \.hub.drivers, .whole(1...(1 << 26)), "N", "drivers known at once",
      past: #"503 (`table_limit_hits_total{table="drivers"}`)"#),
    Setting(
      "max-trips", \.hub.trips, .whole(1...(1 << 26)), "N", "trips known at once",
      past: #"503 `storage_full` (`table_limit_hits_total{table="trips"}`)"#),
    Setting(
      "max-accuracy", \.hub.tracking.maximumAccuracyMeters, .number(1...100_000), "METRES",
      "accuracy radius over which a fix is refused",
      past: #"`implausible_location` (`fixes_total{outcome="refused_inaccurate"}`)"#),
    Setting(
      "max-trips-per-driver", \.hub.tripsPerDriver, .whole(counts), "N", "trips that one driver begins within a day",
      past: "`rate_limited`; 429" + hits("trips_per_driver")),
    Setting(
      "max-trips-per-rider", \.hub.tripsPerRider, .whole(counts), "N", "trips that one rider begins within a day",
      past: "`rate_limited`; 429" + hits("trips_per_rider")),
  ]

  /// Limits of one identity (`sub` and role), over all loops, sockets and requests.
  private static let identities: [Setting<Limits>] =
    perRole(
      "sessions", \.sessionsPerIdentity, Role.allCases, "sessions of one %, replaced ones that are closing included",
      past: "429" + hits("sessions_per_identity")
    ).map { $0.live(\.sessionsPerIdentity) }
    + perRole(
      "areas", \.areasPerIdentity, [.rider, .ops], "cells of areas that one % watches, over all sessions",
      past: "`rate_limited`" + hits("areas_per_identity"))
    + perRole(
      "queries", \.hub.queriesPerIdentity, Role.allCases, "queries and tracks of one % under way at once",
      past: "`rate_limited`; 429" + hits("queries_per_identity"))

  private static func perRole(
    _ what: String, _ path: any WritableKeyPath<Limits, RoleLimits> & Sendable, _ roles: [Role], _ help: String,
    past: String
  ) -> [Setting<Limits>] {
    roles.map { role in
      Setting(
        "max-\(what)-per-\(role.name)", "N", help.replacing("%", with: role == .ops ? "ops identity" : "\(role.name)"),
        mustBe: ValueKind.whole(counts).words, past: past, write: { "\($0[keyPath: path][role])" },
        read: { limits, text in
          ValueKind.whole(counts).read(text).map { limits[keyPath: path][role] = $0 } != nil
        })
    }
  }

  private static func hits(_ limit: String) -> String { " (`limit_hits_total{limit=\"\(limit)\"}`)" }
}

extension ServeOptions {
  /// The options of the command line: those of the table, and the settings file.
  static var options: [Option] {
    let plain = ServeOptions()
    return settings.map { $0.option(plain) } + [
      Option("config", "FILE", "read name = value lines; options given here win"),
      Option("check", nil, "read all that a start reads, print each setting with its source, and end"),
    ]
  }

  /// The command line wins over the environment, and that over the file. Reads every file that a start reads, except
  /// the journal. Throws all faults at once.
  init(_ arguments: Arguments, environment: [String: String] = ProcessFacts.environment) throws(CommandError) {
    self.init()
    var given = arguments
    given.merge(environment: environment, prefix: "LHUB", except: ["check"])
    if let file = given.string("config") {
      do throws(CommandError) {
        given.merge(configuration: try readText(file), file: file, except: ["config", "check"])
      } catch {
        // Its settings are unknown: further faults would be guesses.
        given.faults.add(error)
        try given.faults.check()
      }
    }
    given.collect(ServeOptions.settings, into: &self)
    self.given = given
    var faults = given.faults
    complete(given, &faults)
    checkRelations(&faults)
    faults.collect { () throws(CommandError) in server.pages?.map = try map.read() }
    if hasNoPages { server.pages = nil }
    faults.collect { () throws(CommandError) in server.tokenSigner = try tokenSigner() }
    faults.collect { () throws(CommandError) in server.tokens = try tokenAccess() }
    faults.collect { () throws(CommandError) in server.pseudonymKey = try readPseudonymKey() }
    faults.collect { () throws(CommandError) in
      if let cluster { server.cluster = try ClusterFile.read(cluster) }
    }
    faults.collect { () throws(CommandError) in
      if let webhooks { server.deliveries = try WebhooksFile.read(webhooks) }
    }
    faults.collect { () throws(CommandError) in
      tlsFiles = try TLSFiles(
        certificates: tlsCertificates, keys: tlsKeys, authorities: clientAuthorities,
        hasClientIdentities: !server.clientCertificates.isEmpty)
      let secrets = server.cluster?.identity.keys.secrets(for: "location-hub TLS tickets")
      server.tls = try tlsFiles?.makeServer(ticketSecrets: secrets ?? [])
    }
    checkAccess(&faults)
    try faults.check()
  }

  /// Checks access and addresses.
  private func checkAccess(_ faults: inout Faults) {
    if tokenKeys == nil, tokenSignKey == nil, deviceKeys == nil, server.clientCertificates.isEmpty,
      !server.allowsDevelopmentCredentials
    {
      faults.add(
        .usage(
          "serve needs to know whom to let in: give --token-keys FILE, --device-keys FILE or --client-cert, or, to try "
            + "things out on this machine, --dev-auth"))
    }
    do throws(ServerError) { _ = try server.listeningAddress() } catch { faults.add(.usage("\(error)")) }
  }

  /// Derives values from what was given and what was not.
  private mutating func complete(_ given: Arguments, _ faults: inout Faults) {
    server.loops = loops ?? min(64, ProcessFacts.processors)
    if let adminHost {
      if server.adminPort == nil { faults.add(.usage("--admin-host needs --admin-port")) }
      server.adminHost = adminHost
    }
    if hasNoJournal { refuseStorage(given, &faults) }
    if cluster != nil, given.isGiven("webhook-allow") {
      faults.add(
        .usage("--webhook-allow sets webhooks at one hub: with --cluster give the same --webhooks file to all"))
    }
    server.journal = hasNoJournal ? nil : journal
    if hasNoPages, let name = ["streets", "tiles", "attribution"].first(where: { given.isGiven($0) }) {
      faults.add(.usage("--\(name) cannot be combined with --no-pages"))
    }
    // A given limit by address also applies to loopback addresses.
    server.limits.countsLoopbackConnections = given.isGiven("max-per-address")
    server.limits.countsLoopbackRequests = given.isGiven("request-rate")
    if !given.isGiven("request-burst") { raise(\.requestBurst, to: server.limits.requestRate) }
    if !given.isGiven("max-outboxes") { raise(\.outboxBytes, to: server.limits.outboxBytesPerSession) }
    server.limits.requestBodyBytes = server.limits.messageBytes
    raise(\.hub.channels, to: server.limits.hub.drivers + server.limits.hub.trips)
  }

  private mutating func raise<Value: Comparable>(_ path: WritableKeyPath<Limits, Value>, to least: Value) {
    server.limits[keyPath: path] = max(server.limits[keyPath: path], least)
  }
}
