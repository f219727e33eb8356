// Which events a webhook delivers.
import HubMessages
public import HubTokens

/// The channels and kinds of a webhook.
public struct EventFilter: Sendable, Equatable {
  /// A set of channels.
  public enum Channels: Sendable, Equatable, CustomStringConvertible {
    /// `*`: those of trips, drivers and fences, each event as often as it was published on one of them.
    case all
    /// `trips`: the `trip_update` of all trips, once each.
    case trips
    /// As in a token: `trip:T1`, `driver:zone7-*`, `fence:*`.
    case pattern(ChannelPattern)

    /// Nil where the text is none of these.
    public init?(_ text: String) {
      switch text {
      case "*": self = .all
      case "trips": self = .trips
      default:
        guard let pattern = ChannelPattern(text), pattern.kind != .fleet else { return nil }
        self = .pattern(pattern)
      }
    }

    /// The text that `init` reads.
    public var description: String {
      switch self {
      case .all: "*"
      case .trips: "trips"
      case .pattern(let pattern): pattern.description
      }
    }

    func matches(_ channel: Channel) -> Bool {
      switch (self, channel) {
      case (.all, .trip), (.all, .driver), (.all, .fence), (.trips, .trips): true
      case (.pattern(let pattern), _): pattern.matches(channel)
      case (.all, _), (.trips, _): false
      }
    }
  }

  public let channels: [Channels]
  /// Values of `type`: `trip.update`, `notification.fence_enter` and so on; empty for all.
  public let types: Set<String>

  /// Nil without a channel, or with an unknown type.
  public init?(channels: [Channels], types: Set<String> = []) {
    guard !channels.isEmpty, types.isSubset(of: Self.allTypes) else { return nil }
    self.channels = channels
    self.types = types
  }

  /// All values of `type`.
  public static let allTypes = Set(
    ["trip.update", "offer.made", "offer.withdrawn"]
      + HubMessages.Notification.Kind.allCases.map { "notification.\($0.name)" })

  func matches(_ event: Publication) -> Bool {
    guard channels.contains(where: { $0.matches(event.channel) }), let type = WebhookBody.type(of: event) else {
      return false
    }
    return types.isEmpty || types.contains(type)
  }
}
