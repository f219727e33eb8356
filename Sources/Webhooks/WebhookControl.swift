// What the threads of a hub say to that of its webhooks, and what it shows of itself.
import HubBytes
import HubSystem

/// What a webhook has done, and how it stands.
public struct WebhookFigures: Sendable, Equatable {
  public let name: String
  public var delivered: UInt64 = 0
  public var failed: UInt64 = 0
  /// Events that were given up.
  public var dead: UInt64 = 0
  /// Events, or where these can't be counted groups of the journal, that retention deleted before they were delivered.
  public var lost: UInt64 = 0
  /// From the begin of a try to its answer or failure, in nanoseconds, all together.
  public var nanoseconds: UInt64 = 0
  public var underWay = 0
  /// Channels that are behind.
  public var lanes = 0
  /// Milliseconds since the oldest undelivered event that is known was published; 0 for none.
  public var oldestMilliseconds: Int64 = 0
  public var isEnabled = true
  /// One request at a time goes out, for the receiver seems to be down.
  public var isProbing = false
  /// Times that its progress could not be stored.
  public var notStored: UInt64 = 0

  init(name: String) { self.name = name }
}

/// What a hub and the thread of its webhooks share.
public final class WebhookControl: Sendable {
  private struct State {
    var figures: [WebhookFigures] = []
    var endpoints: [WebhookEndpoint]?
  }

  private let state = Locked(State())

  public init() {}

  /// Has other webhooks served from now on; the caller wakes the thread. Those whose name stays go on where they are.
  public func replace(_ endpoints: [WebhookEndpoint]) { state.withLock { $0.endpoints = endpoints } }

  func takeEndpoints() -> [WebhookEndpoint]? { state.withLock { $0.endpoints.take() } }

  func show(_ figures: [WebhookFigures]) { state.withLock { $0.figures = figures } }

  /// At most a second old.
  public var figures: [WebhookFigures] { state.withLock { $0.figures } }
}
