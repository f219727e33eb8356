// One stream of events, as the operator has set it.
public import HubTransport

/// What a stream's server asks for at the start of a connection.
public struct StreamCredentials: Sendable, Equatable {
  public var user: String?
  public var password: String?
  /// Of NATS alone.
  public var token: String?

  public init(user: String? = nil, password: String? = nil, token: String? = nil) {
    self.user = user
    self.password = password
    self.token = token
  }
}

public struct StreamEndpoint: Sendable {
  /// Its name in metrics, logs and files, as a webhook's (`WebhookEndpoint.isName`); no webhook has it.
  public let name: String
  public let url: StreamURL
  public let filter: EventFilter
  public var credentials = StreamCredentials()
  /// Stands before the subjects of NATS and the keys of Redis (`isPrefix`).
  public var prefix = "locationhub"
  /// Entries that Redis keeps of a stream, or some more.
  public var maximumLength = 1_000_000
  /// Signs batches; no other kind has one.
  public var signer: WebhookSigner?
  /// Where batches may go.
  public var addresses = AddressRule()
  /// Whom to trust where the connection is TLS.
  public var tls = TLSClient.system
  /// Seconds from an event's first refusal by the server, after which one more makes it a dead letter.
  public var giveUpAfterSeconds = 259_200.0
  /// Sends positions of all drivers, too.
  public var hasPositions = false

  public init(name: String, url: StreamURL, filter: EventFilter) {
    precondition(WebhookEndpoint.isName(name))
    self.name = name
    self.url = url
    self.filter = filter
  }

  /// Whether the text may stand before subjects and keys: 1–64 of `A-Z a-z 0-9 . _ - { }`, without an empty part.
  /// Braces are for a Redis cluster, where they have all keys of a stream at one node.
  public static func isPrefix(_ text: String) -> Bool {
    1...64 ~= text.utf8.count
      && text.utf8.allSatisfy { StreamMessage.isPlain($0) || "{}.".utf8.contains($0) }
      && !text.split(separator: ".", omittingEmptySubsequences: false).contains("")
  }
}
