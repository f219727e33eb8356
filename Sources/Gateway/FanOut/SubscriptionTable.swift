// Which connections of one loop are subscribed to which channel.
//
// A channel's subscribers are in one array, so that fan-out reads memory in order; each has its node, and each node its
// index in that array, so that removal is O(1) (the last one moves into the gap).
import HubCore
import HubMessages
import HubTransport

/// A session for the fan-out.
struct Recipient {
  let connection: ConnectionID
  let encoding: Encoding

  var slot: Int { Int(connection.slot) }
}

struct Subscriber {
  /// What a subscriber of a cell has to get before the cell's next changes.
  enum Lack: UInt8 {
    case nothing
    /// Changes that it missed, since it has unread data.
    case changes
    /// The snapshot that was requested, for a new subscription or after missed changes.
    case snapshot
  }

  var connection: ConnectionID
  var node: UInt32
  var encoding: Encoding
  /// The channel is a cell, whose changes are sent by ticks (`AreaTick`).
  var isOfCell = false
  var lacks = Lack.nothing
  /// It gets only events.
  var isEventsOnly = false
}

/// The subscriptions of one session.
struct SessionSubscriptions {
  fileprivate static let none = UInt32.max

  /// Head of the session's list in the table.
  fileprivate var first = SessionSubscriptions.none
  /// Subscriptions that the session has: the number of nodes in the list.
  fileprivate(set) var open: UInt16 = 0
  /// Requests that the hub has not answered yet.
  private(set) var unanswered: UInt16 = 0

  /// All of them.
  var count: Int { Int(open) + Int(unanswered) }

  /// Counts a request.
  mutating func ask() { unanswered += 1 }

  /// Counts an answer.
  mutating func answered() { unanswered -= 1 }
}

struct SubscriptionTable {
  /// One subscription of one session; a session's nodes are a list.
  private struct Node {
    var channel: UInt32
    /// The subscriber's index in its channel's array.
    var index: UInt32
    /// The session's next node, or the next free one.
    var next: UInt32
  }

  private var channels: [[Subscriber]] = []
  private var nodes: [Node] = []
  private var firstFree = SessionSubscriptions.none
  private(set) var count = 0

  /// The subscribers of a channel, for fan-out.
  @inline(__always)
  func subscribers(of channel: ChannelHandle) -> [Subscriber] {
    let index = Int(channel.index)
    return index < channels.count ? channels[index] : []
  }

  /// Adds a subscription to the session's; false when it exists already, where `isEventsOnly` replaces the earlier
  /// value. A subscription to a cell waits for a snapshot first.
  mutating func add(
    _ connection: ConnectionID, encoding: Encoding, to channel: ChannelHandle, isOfCell: Bool = false,
    isEventsOnly: Bool = false, of session: inout SessionSubscriptions
  ) -> Bool {
    if let node = find(channel, session.first) {
      channels[Int(channel.index)][Int(nodes[Int(node)].index)].isEventsOnly = isEventsOnly
      return false
    }
    let index = Int(channel.index)
    if channels.count <= index {
      channels.append(contentsOf: repeatElement([], count: max(index + 1 - channels.count, channels.count / 8)))
    }
    let node = makeNode(Node(channel: channel.index, index: UInt32(channels[index].count), next: session.first))
    session.first = node
    session.open += 1
    channels[index].append(
      Subscriber(
        connection: connection, node: node, encoding: encoding, isOfCell: isOfCell,
        lacks: isOfCell ? .snapshot : .nothing,
        isEventsOnly: isEventsOnly))
    count += 1
    return true
  }

  /// Removes a session's subscription to a channel; false when there is none.
  mutating func remove(_ channel: ChannelHandle, of session: inout SessionSubscriptions) -> Bool {
    guard let node = find(channel, session.first) else { return false }
    session.open -= 1
    if session.first == node {
      session.first = nodes[Int(node)].next
    } else {
      var before = session.first
      while nodes[Int(before)].next != node { before = nodes[Int(before)].next }
      nodes[Int(before)].next = nodes[Int(node)].next
    }
    detach(node)
    return true
  }

  /// Removes one of a session's subscriptions and gives its channel; nil when it has none.
  mutating func removeAny(of session: inout SessionSubscriptions) -> ChannelHandle? {
    guard session.first != SessionSubscriptions.none else { return nil }
    let node = session.first
    session.first = nodes[Int(node)].next
    session.open -= 1
    defer { detach(node) }
    return ChannelHandle(index: nodes[Int(node)].channel)
  }

  /// A session's subscription to a channel; nil when there is none.
  func subscriber(of channel: ChannelHandle, _ session: SessionSubscriptions) -> Subscriber? {
    guard let node = find(channel, session.first) else { return nil }
    return channels[Int(channel.index)][Int(nodes[Int(node)].index)]
  }

  /// Notes what a subscription lacks.
  mutating func set(_ lack: Subscriber.Lack, of node: UInt32) {
    channels[Int(nodes[Int(node)].channel)][Int(nodes[Int(node)].index)].lacks = lack
  }

  /// The channels of a session, unordered.
  func forEach(of session: SessionSubscriptions, _ body: (ChannelHandle, Subscriber) -> Void) {
    var node = session.first
    while node != SessionSubscriptions.none {
      let (channel, index) = (nodes[Int(node)].channel, nodes[Int(node)].index)
      body(ChannelHandle(index: channel), channels[Int(channel)][Int(index)])
      node = nodes[Int(node)].next
    }
  }

  private func find(_ channel: ChannelHandle, _ first: UInt32) -> UInt32? {
    var node = first
    while node != SessionSubscriptions.none {
      if nodes[Int(node)].channel == channel.index { return node }
      node = nodes[Int(node)].next
    }
    return nil
  }

  /// Removes the node's subscriber from its channel and frees the node.
  private mutating func detach(_ node: UInt32) {
    let channel = Int(nodes[Int(node)].channel)
    let index = Int(nodes[Int(node)].index)
    let last = channels[channel].removeLast()
    if last.node != node {
      channels[channel][index] = last
      nodes[Int(last.node)].index = UInt32(index)
    }
    if channels[channel].isEmpty { channels[channel] = [] }  // frees the memory
    nodes[Int(node)].next = firstFree
    firstFree = node
    count -= 1
  }

  private mutating func makeNode(_ node: Node) -> UInt32 {
    guard firstFree != SessionSubscriptions.none else {
      nodes.append(node)
      return UInt32(nodes.count - 1)
    }
    let free = firstFree
    firstFree = nodes[Int(free)].next
    nodes[Int(free)] = node
    return free
  }
}
