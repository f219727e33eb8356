// The operator's settings of one stream.
public import HubTransport

/// The credentials for a stream's server.
public struct StreamCredentials: Sendable, Equatable {
  public var user: String?
  public var password: String?
  /// Only for NATS.
  public var token: String?

  public init(user: String? = nil, password: String? = nil, token: String? = nil) {
    self.user = user
    self.password = password
    self.token = token
  }
}

/// The settings of one stream: where to, what of, and with which credentials.
public struct StreamEndpoint: Sendable {
  /// Its name in metrics, logs and files (`WebhookEndpoint.isName`), which no webhook and no other stream has.
  public let name: String
  public let url: StreamURL
  public let filter: EventFilter
  public var credentials = StreamCredentials()
  /// The prefix of NATS subjects and Redis keys (`isPrefix`).
  public var prefix = "locationhub"
  /// The number of entries that Redis keeps of a stream, approximately.
  public var maximumLength = StreamEndpoint.usualLength
  /// Signs batches; nil for other kinds.
  public var signer: WebhookSigner?
  /// The addresses that batches may be sent to.
  public var addresses = AddressRule()
  /// The trust of TLS connections.
  public var tls = TLSClient.system
  /// Seconds from an event's first refusal by the server, after which one more makes it a dead letter.
  public var giveUpAfterSeconds = WebhookRule.usualGiveUpSeconds
  /// Positions of all drivers are sent, too.
  public var hasPositions = false

  public init(name: String, url: StreamURL, filter: EventFilter) {
    precondition(WebhookEndpoint.isName(name))
    self.name = name
    self.url = url
    self.filter = filter
  }

  /// Whether the text is a valid prefix: 1–64 of `A-Z a-z 0-9 . _ - { }`, without an empty part. Braces keep all keys
  /// of a stream at one node of a Redis cluster.
  public static func isPrefix(_ text: String) -> Bool {
    1...64 ~= text.utf8.count
      && text.utf8.allSatisfy { StreamMessage.isPlain($0) || "{}.".utf8.contains($0) }
      && !text.split(separator: ".", omittingEmptySubsequences: false).contains("")
  }
}
