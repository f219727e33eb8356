// What a hub says of itself, each second.

/// The hub's own figures of one second. Which there are, the hub decides (protocol/faces.md): to what is between the
/// hub and who reads them they are a text.
public struct HubFigures: Sendable, Equatable {
  /// When the second ended, by the hub's clock.
  public var timestamp: Timestamp
  /// The other members, but for the channel, as JSON without the braces.
  public var members: String
  /// How many deliveries took how long, from the shortest; by which hubs add their figures up. Nobody is sent that.
  public var times: [Time]

  public struct Time: Sendable, Equatable {
    public var microseconds: UInt64
    public var count: UInt64

    public init(microseconds: UInt64, count: UInt64) {
      self.microseconds = microseconds
      self.count = count
    }
  }

  public init(timestamp: Timestamp, members: String, times: [Time] = []) {
    self.timestamp = timestamp
    self.members = members
    self.times = times
  }
}
