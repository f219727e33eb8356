// The kept events of all channels, oldest first, to find the oldest of all at once.
//
// A doubly linked list in one array: a channel that drops an event, or all of them, removes their nodes in O(1). A
// queue would hold such events until they reach its head and count them against the limit, so that one busy channel
// could push out the events of all others.

struct EventOrder: ~Copyable {
  struct Node {
    var channel: UInt32
    var older: UInt32
    var newer: UInt32
  }

  private static let none = UInt32.max

  private var nodes = Slab<Node>()
  private var oldest = EventOrder.none
  private var newest = EventOrder.none

  var count: Int { nodes.count }

  /// The channel of the oldest event; there must be one. It is also that channel's oldest.
  var channelOfOldest: Int { Int(nodes[Int(oldest)].channel) }

  /// Where a walk from oldest to newest starts.
  var first: UInt32 { oldest }

  /// The channel of an event, and the next one's node; nil behind the newest.
  func step(_ node: UInt32) -> (channel: Int, next: UInt32)? {
    node == EventOrder.none ? nil : (Int(nodes[Int(node)].channel), nodes[Int(node)].newer)
  }

  /// Appends a channel's newest event and gives its node. O(1).
  mutating func append(channel: Int) -> UInt32 {
    let node = UInt32(nodes.insert(Node(channel: UInt32(channel), older: newest, newer: EventOrder.none)))
    if newest == EventOrder.none { oldest = node } else { nodes[Int(newest)].newer = node }
    newest = node
    return node
  }

  /// Removes an event; its node must be in use. O(1).
  mutating func remove(_ node: UInt32) {
    let (older, newer) = (nodes[Int(node)].older, nodes[Int(node)].newer)
    if older == EventOrder.none { oldest = newer } else { nodes[Int(older)].newer = newer }
    if newer == EventOrder.none { newest = older } else { nodes[Int(newer)].older = older }
    nodes.remove(Int(node), leaving: Node(channel: 0, older: EventOrder.none, newer: EventOrder.none))
  }
}
