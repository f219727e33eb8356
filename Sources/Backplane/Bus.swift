// The bus: frames between hubs, at most once, in order for each pair and lane while nothing is lost. Receivers detect
// losses by the frames' numbers.

/// Two streams between two hubs, so that a flood of positions cannot delay or end the other.
public enum Lane: UInt8, Sendable, CaseIterable {
  /// Subscriptions, answers, events.
  case control
  /// Positions and other state, where only the newest matters.
  case state
}

/// Events of the bus.
public enum BusEvent: Sendable, Equatable {
  case frame(Lane, [UInt8])
  /// A node of the bus becomes usable, or unusable with a reason.
  case up(node: String)
  case down(node: String, String)
}

/// Sends frames to members of the cluster and receives those for this one. For one thread.
public protocol Bus: AnyObject {
  /// Whether a node of the bus is usable.
  var isUp: Bool { get }
  /// Sends a frame; false where it was not sent, because no node is reachable or has room. A sent frame may still be
  /// lost.
  func send(_ frame: [UInt8], to member: String, lane: Lane) -> Bool
  /// Whether a frame with so many bytes of records could be sent to a member now, so that none is made in vain.
  func hasRoom(for bytes: Int, to member: String) -> Bool
  /// Appends the events since the last call.
  func takeEvents(into events: inout [BusEvent])
  /// The nodes from which nothing reaches this member: bit i for node i of the file. 0 for a bus that has a single
  /// node.
  var unheard: UInt64 { get }
  /// Takes the nodes from which nothing reaches `member`: frames for it go through other nodes, if one can be reached.
  func note(unheard nodes: UInt64, by member: String)
}

extension Bus {
  /// True, for a bus that can't tell in advance.
  public func hasRoom(for bytes: Int, to member: String) -> Bool { true }
  /// 0: a bus with a single node, or one that cannot tell.
  public var unheard: UInt64 { 0 }
  /// Does nothing: a bus with a single node has no other way to the member.
  public func note(unheard nodes: UInt64, by member: String) {}
}
