// What a hub says of itself, each second.

/// The hub's own figures of one second. Which there are, the hub decides (protocol/faces.md): to what is between the
/// hub and who reads them they are a text.
public struct HubFigures: Sendable, Equatable {
  /// When the second ended, by the hub's clock.
  public var timestamp: Timestamp
  /// The other members, but for the channel, as JSON without the braces.
  public var members: String

  public init(timestamp: Timestamp, members: String) {
    self.timestamp = timestamp
    self.members = members
  }
}
