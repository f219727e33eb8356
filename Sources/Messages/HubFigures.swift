// A hub's own figures, each second.

/// The figures of one second. Only the hub and its readers know them (protocol/ops.md); here they are plain text.
public struct HubFigures: Sendable, Equatable {
  /// When the second ended, by the hub's clock.
  public var timestamp: Timestamp
  /// The other members without the channel, as JSON without the braces.
  public var members: String
  /// A histogram of latencies, ascending, from which hubs merge their figures. Clients do not get it.
  public var times: [Time]

  /// One bucket of the histogram: its upper bound, and how many fell into it.
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
