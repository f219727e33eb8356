// What one client is told at its start.
public import HubMessages
public import HubWebSocket

/// Where to connect, as whom, and within which limits.
public struct ClientConfiguration: Sendable {
  public var url: HubURL
  /// Sent as `Authorization: Bearer …`; nil where the URL's query has the credential.
  public var token: String?
  /// Where the client gets a token before the one that it has ends, or when the hub refuses it. Called on the thread
  /// that drives the client. Without it the client ends when its token does.
  public var tokens: (@Sendable (TokenNeed) -> TokenAnswer)?
  public var limits = ClientLimits()
  /// The offer of permessage-deflate (RFC 7692); nil for none, and a hub may decline it. Compression takes about half
  /// off what a watcher of positions receives. A driver gains little: most of what it sends is too small to be
  /// compressed for itself. Against a server that keeps contexts a client needs some 80 KiB more; one that offers
  /// `.withoutContexts` never does.
  public var compression: DeflateParameters?
  /// How messages are written. `.binary` takes a seventh of JSON's bytes or fewer; it is asked for before JSON, so that
  /// a hub without it speaks JSON. Compression is then not used: there is little left in such messages that repeats.
  public var codec = Subprotocol.json
  /// Keeps live fixes until the hub has stored them, and sends them again after a break. Without it a fix that can't go
  /// out at once is dropped: for load generators.
  public var keepsFixes = true
  /// Sends a driver's fixes as often as the hub advises, and leaves out the others (`SamplingGate`).
  public var followsSampling = false
  /// Makes masks, keys, ids and jitter repeatable, for tests. Two clients with one seed must not meet at one hub.
  public var seed: UInt64?

  public init(url: HubURL, token: String? = nil) {
    self.url = url
    self.token = token
  }
}
