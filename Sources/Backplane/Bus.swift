// The bus: frames from hub to hub, at most once, in order for each pair and lane while nothing is lost. Who receives
// frames numbers them, and so notices what is lost.

/// Two streams between two hubs, so that a flood of positions cannot delay or end the other.
public enum Lane: UInt8, Sendable, CaseIterable {
  /// Subscriptions, answers, events.
  case control
  /// Positions and other state, of which the newest counts.
  case state
}

/// What the bus brings.
public enum BusEvent: Sendable, Equatable {
  case frame(Lane, [UInt8])
  /// A node of the bus can be used, or cannot any more; why.
  case up(node: String)
  case down(node: String, String)
}

/// Sends frames to members of the cluster and receives those for this one. It belongs to one thread.
public protocol Bus: AnyObject {
  /// Whether a node of the bus can be used.
  var isUp: Bool { get }
  /// Sends a frame; false where it was not sent, because no node is there or none has room. That it was sent does not
  /// mean that it arrives.
  func send(_ frame: [UInt8], to member: String, lane: Lane) -> Bool
  /// Appends what came since the last time.
  func takeEvents(into events: inout [BusEvent])
  /// Nodes that are not heard here, of the first 63 in the order in which all members name them, a bit each: who sends
  /// there is not heard. 0 where there is one way alone.
  var unheard: UInt64 { get }
  /// A member says which nodes it does not hear: what is sent to it goes by others, where one is reached.
  func note(unheard nodes: UInt64, by member: String)
}

extension Bus {
  public var unheard: UInt64 { 0 }
  public func note(unheard nodes: UInt64, by member: String) {}
}
