// What an operator decides.
public import HubCluster
public import HubCore
public import HubMessages
public import HubPages
public import HubRuntime
public import HubSystem
public import HubTokens
public import HubTransport
public import HubWebhooks

public struct ServerConfiguration: Sendable {
  /// Numeric address to listen on.
  public var host = "127.0.0.1"
  /// 0 picks a free port.
  public var port: UInt16 = 8080
  /// The socket that it listens on in place of `host` and `port`, where a service manager hands one over; and the one
  /// for operators, in place of `adminHost` and `adminPort`.
  public var inherited: InheritedListener?
  public var inheritedAdmin: InheritedListener?
  /// Is told that the hub is alive; nil where nobody wants to know.
  public var serviceManager: ServiceManager?
  /// A second port, for operators: /healthz, /readyz and /metrics, without a credential. 0 picks a free one. Where it
  /// is set, metrics on the first port are for ops' credentials only.
  public var adminPort: UInt16?
  /// Numeric address of that port.
  public var adminHost = "127.0.0.1"
  /// Web pages that may use the hub, beside its own.
  public var origins = AllowedOrigins()
  /// Where clients reach it, such as `https://hub.example`, without a slash at the end; nil where nobody has said so.
  /// Its pages have that origin.
  public private(set) var publicURL: String?
  /// What its pages show; nil for no pages.
  public var pages: PageConfiguration? = PageConfiguration()
  /// Names under which the hub takes development credentials and shows metrics without a credential, beside loopback.
  public var hosts = AllowedHosts()
  /// Proxies whose X-Forwarded-For is believed.
  public var trustedProxies: [AddressBlock] = []
  /// Event loops, 1–64. With one, the hub runs on the loop's thread; with more, on its own.
  public var loops = 1
  /// Speaks TLS with this certificate, which its owner may replace while the server runs; nil for plain HTTP.
  public var tls: TLSServer?
  /// Whether everybody may read GTFS-realtime's vehicle positions, and not ops alone.
  public var isVehicleFeedPublic = false
  /// Who clients are by the certificates that `tls` asks them for.
  public var clientCertificates = ClientCertificates()
  /// Takes `?role=…&id=…` for a credential. Refused on any address but loopback.
  public var allowsDevelopmentCredentials = false
  /// Takes tokens that hold by these keys; nil for none.
  public var tokens: TokenAccess?
  /// Signs the tokens of shares, which `tokens` take; nil for no shares.
  public var tokenSigner: SigningKey?
  /// Milliseconds for which positions may be held back so that only each driver's newest is sent; 0 for none.
  public var flushIntervalMilliseconds = 0
  /// Seconds in which a client should be heard at least once.
  public var heartbeatInterval = 30.0
  /// Agrees to permessage-deflate with clients that offer it (RFC 7692).
  public var compression = true
  /// Seconds between failing readiness and telling sessions to go.
  public var drainDelay = 0.0
  /// Seconds over which sessions are told to go, evenly.
  public var drainSpread = 0.0
  /// Seconds that a drain may take in all, after the delay and what it is spread over.
  public var drainSeconds = 4.0
  /// Where trips and events are stored; nil for nowhere.
  public var journal: JournalConfiguration?
  /// How often drivers are told to send.
  public var sampling = SamplingRules()
  /// What drivers' pseudonyms for riders are made with; nil for a new key with each start.
  public var pseudonymKey: SipKey?
  /// The other hubs that this one shares its fleet with; nil for a hub by itself.
  public var cluster: ClusterConfiguration?
  /// Where events are delivered; needs a journal.
  public var deliveries = Deliveries()
  /// Which receivers may be set over HTTP; none by default.
  public var webhookReceivers = URLRule()
  /// Fences that are put at the start, before anybody is connected.
  public var fences: [Fence] = []
  public var limits = Limits()
  public var timings = HubTimings()
  /// The commit that it was built of, for the metrics.
  public var commit = "unknown"
  public var logLevel = LogLevel.info
  public var logFormat = LogFormat.logfmt

  public init() {}

  /// Where it listens, if that and what is served there go together. Binds nothing.
  public func listeningAddress() throws(ServerError) -> SocketAddress {
    guard (1...64).contains(loops) else { throw .badLoopCount(loops) }
    guard let address = inherited?.address ?? SocketAddress(host: host, port: port) else { throw .badAddress(host) }
    guard adminPort == nil || SocketAddress(host: adminHost, port: 0) != nil else { throw .badAddress(adminHost) }
    guard address.isLoopback || !allowsDevelopmentCredentials else {
      throw .developmentCredentialsNotOnLoopback(address.host)
    }
    return address
  }

  /// These settings, with those of `other` that may change while a server runs.
  func taking(live other: ServerConfiguration) -> ServerConfiguration {
    var taken = self
    (taken.origins, taken.hosts, taken.trustedProxies) = (other.origins, other.hosts, other.trustedProxies)
    // Its pages keep their origin, for `publicURL` stays.
    if let publicURL { _ = taken.origins.allow(publicURL) }
    (taken.drainDelay, taken.drainSpread) = (other.drainDelay, other.drainSpread)
    taken.limits.connectionsPerAddress = other.limits.connectionsPerAddress
    taken.limits.countsLoopbackConnections = other.limits.countsLoopbackConnections
    taken.clientCertificates = other.clientCertificates
    taken.limits.sessionsPerIdentity = other.limits.sessionsPerIdentity
    return taken
  }

  /// Sets `publicURL`, whose origin may use the hub from then on. False for what is not `http` or `https` and a host.
  public mutating func setPublicURL(_ text: String) -> Bool {
    let url = text.hasSuffix("/") ? String(text.dropLast()) : text
    guard url.hasPrefix("https://") || url.hasPrefix("http://"), origins.allow(url) else { return false }
    publicURL = url
    return true
  }
}

/// Why a server did not start.
public enum ServerError: Error, Equatable, CustomStringConvertible {
  case badAddress(String)
  case developmentCredentialsNotOnLoopback(String)
  case badLoopCount(Int)
  case portTaken(String)
  case journal(String)
  case system(String)

  public var description: String {
    switch self {
    case .badAddress(let host):
      "cannot listen on \(host): give a numeric IPv4 or IPv6 address, or localhost"
    case .developmentCredentialsNotOnLoopback(let host):
      "--dev-auth lets anyone in and is refused on \(host): use 127.0.0.1 or ::1"
    case .badLoopCount(let count):
      "\(count) loops: give 1 to 64"
    case .portTaken(let text), .journal(let text), .system(let text):
      text
    }
  }
}
