// The configuration of a client.
public import HubMessages
public import HubWebSocket

/// The hub, credentials and limits.
public struct ClientConfiguration: Sendable {
  public var url: HubURL
  /// Sent as `Authorization: Bearer …`; nil where the URL's query has the credential.
  public var token: String?
  /// Gives a token before the present one ends, or when the hub refuses it. Called on the client's thread. Without it
  /// the client ends with its token.
  public var tokens: (@Sendable (TokenNeed) -> TokenAnswer)?
  public var limits = ClientLimits()
  /// The offer of permessage-deflate (RFC 7692), which a hub may decline; nil for none. Compression halves what a
  /// watcher of positions receives. A driver gains little: most of its messages are too small. Against a server that
  /// keeps contexts a client needs some 80 KiB more, but never with `.withoutContexts`.
  public var compression: DeflateParameters?
  /// The form of messages. `.binary` takes a seventh of JSON's bytes or fewer; JSON is offered second, for a hub
  /// without it. Compression is then not used, since little redundancy is left.
  public var codec = Subprotocol.json
  /// Keeps live fixes until the hub has stored them, and sends them again after a break. Without it a fix that can't be
  /// sent at once is dropped: for load generators.
  public var keepsFixes = true
  /// Sends a driver's fixes as often as the hub advises, and skips the others (`SamplingGate`).
  public var followsSampling = false
  /// Makes masks, keys, ids and jitter repeatable, for tests. Two clients with one seed must not use one hub.
  public var seed: UInt64?

  public init(url: HubURL, token: String? = nil) {
    self.url = url
    self.token = token
  }

  /// Offers compression without contexts, for which all clients of a loop share one compressor.
  public mutating func offerCompression() { compression = .withoutContexts }
}
