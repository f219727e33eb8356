// The settings of a server.
public import HubCluster
public import HubCore
public import HubMessages
public import HubPages
public import HubRuntime
public import HubSystem
public import HubTokens
public import HubTransport
public import HubWebhooks

/// The settings of a server, with their defaults.
public struct ServerConfiguration: Sendable {
  /// Numeric address to listen on.
  public var host = "127.0.0.1"
  /// 0 picks a free port.
  public var port: UInt16 = 8080
  /// The socket to listen on instead of `host` and `port`, from a service manager; and the operators' one, instead of
  /// `adminHost` and `adminPort`.
  public var inherited: InheritedListener?
  public var inheritedAdmin: InheritedListener?
  /// Gets notifications that the hub is alive; nil for none.
  public var serviceManager: ServiceManager?
  /// A second port, for operators: /healthz, /readyz and /metrics, without a credential. 0 picks a free one. Where it
  /// is set, metrics on the first port need a credential of ops.
  public var adminPort: UInt16?
  /// Whether operators have a port of their own, by its number or from a service manager.
  var hasAdminPort: Bool { adminPort != nil || inheritedAdmin != nil }
  /// Numeric address of that port.
  public var adminHost = "127.0.0.1"
  /// Origins of web pages that may use the hub, beside its own.
  public var origins = AllowedOrigins()
  /// The URL for clients, such as `https://hub.example`, without a slash at the end; nil if unknown. Its pages have
  /// that origin.
  public private(set) var publicURL: String?
  /// The configuration of its pages; nil for no pages.
  public var pages: PageConfiguration? = PageConfiguration()
  /// Host names under which the hub accepts development credentials and shows metrics without a credential, beside
  /// loopback.
  public var hosts = AllowedHosts()
  /// Proxies whose X-Forwarded-For is trusted.
  public var trustedProxies: [AddressBlock] = []
  /// Event loops, 1–64, each with a thread. The hub runs on that of the loop whose turn has input for it.
  public var loops = 1
  /// The certificate of TLS, which its owner may replace while the server runs; nil for plain HTTP.
  public var tls: TLSServer?
  /// Whether GTFS-realtime's vehicle positions are open to everybody, not only to ops.
  public var isVehicleFeedPublic = false
  /// Identities of clients' certificates, which `tls` requests.
  public var clientCertificates = ClientCertificates()
  /// Accepts `?role=…&id=…` as a credential. Refused on any address but loopback.
  public var allowsDevelopmentCredentials = false
  /// Accepts tokens by these keys; nil for none.
  public var tokens: TokenAccess?
  /// Signs the tokens of shares, which `tokens` accept; nil for no shares.
  public var tokenSigner: SigningKey?
  /// Milliseconds for which positions may be held back so that only each driver's newest is sent; 0 for none.
  public var flushIntervalMilliseconds = 0
  /// The longest silence expected of a client, in seconds.
  public var heartbeatInterval = 30.0
  /// Accepts permessage-deflate (RFC 7692).
  public var compression = true
  /// Seconds between failing readiness and closing sessions.
  public var drainDelay = 0.0
  /// Seconds over which sessions are closed, evenly.
  public var drainSpread = 0.0
  /// Seconds for all of a drain, after the delay and the spread.
  public var drainSeconds = 4.0
  /// Where trips and events are stored; nil for no journal.
  public var journal: JournalConfiguration?
  /// The sampling intervals of drivers.
  public var sampling = SamplingRules()
  /// The key of drivers' pseudonyms; nil for a new one with each start.
  public var pseudonymKey: SipKey?
  /// The cluster of the hub; nil for a single hub.
  public var cluster: ClusterConfiguration?
  /// Where events are delivered; needs a journal.
  public var deliveries = Deliveries()
  /// The URLs that may be set as webhooks over HTTP; none by default.
  public var webhookReceivers = URLRule()
  /// Fences that are put at the start, before anybody is connected.
  public var fences: [Fence] = []
  public var limits = Limits()
  public var timings = HubTimings()
  /// The commit that it was built from, for the metrics.
  public var commit = "unknown"
  public var logLevel = LogLevel.info
  public var logFormat = LogFormat.logfmt

  public init() {}

  /// The address to listen on; throws where the settings contradict each other. Binds nothing.
  public func listeningAddress() throws(ServerError) -> SocketAddress {
    guard (1...64).contains(loops) else { throw .badLoopCount(loops) }
    guard let address = inherited?.address ?? SocketAddress(host: host, port: port) else { throw .badAddress(host) }
    if let adminPort, inheritedAdmin == nil {
      guard let admin = SocketAddress(host: adminHost, port: adminPort) else { throw .badAddress(adminHost) }
      guard !admin.overlaps(address) else { throw .onePortForBoth(admin) }
    }
    guard address.isLoopback || !allowsDevelopmentCredentials else {
      throw .developmentCredentialsNotOnLoopback(address.host)
    }
    return address
  }

  /// Sets `publicURL`, whose origin may then use the hub. False unless it is `http` or `https` and a host.
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
  case onePortForBoth(SocketAddress)
  case developmentCredentialsNotOnLoopback(String)
  case badLoopCount(Int)
  case portTaken(String)
  case journal(String)
  case system(String)

  /// What to change, in words for operators.
  public var description: String {
    switch self {
    case .badAddress(let host):
      "cannot listen on \(host): give a numeric IPv4 or IPv6 address, or localhost"
    case .onePortForBoth(let address):
      "\(address) cannot be for clients and operators both: give --port and --admin-port different numbers"
    case .developmentCredentialsNotOnLoopback(let host):
      "--dev-auth lets anyone in and is refused on \(host): use 127.0.0.1 or ::1"
    case .badLoopCount(let count):
      "\(count) loops: give 1 to 64"
    case .portTaken(let text), .journal(let text), .system(let text):
      text
    }
  }
}
