// The bus over stand-alone nodes of Redis or Valkey: a channel for each member and lane, `lh:NAME:c` and `lh:NAME:s`.
//
// A member listens at every node. Who sends takes the first node that it can reach, in an order that depends on the
// receiver (rendezvous hashing), so that the load is spread and a dead node costs its share only until the next is
// used. Frames of one pair and lane go by one node as long as it stands. Never Redis Cluster: there each message goes
// to all nodes.
import HubBytes

public final class RedisBus: Bus {
  private struct Node {
    let publisher: LinkID
    let listeners: [LinkID]
    let name: String
    var isUp = false
  }

  private let links: RedisLinks
  private var nodes: [Node] = []
  /// The nodes in the order of each receiver.
  private var orders: [String: [Int]] = [:]
  /// Replies to PUBLISH are counted by the connection and otherwise of no interest.
  private static let ticket: UInt64 = 0

  /// A bus over these nodes, which all members must name; `role` has the credentials.
  public init(_ links: RedisLinks, nodes: [EngineAddress], member: String, role: RedisRole) {
    self.links = links
    for node in nodes {
      let publisher = links.add(role, to: node)
      let listeners = Lane.allCases.map { lane in
        var listening = role
        listening.channels = [RedisBus.channel(member, lane)]
        return links.add(listening, to: node)
      }
      self.nodes.append(Node(publisher: publisher, listeners: listeners, name: "\(node)"))
    }
  }

  static func channel(_ member: String, _ lane: Lane) -> String {
    switch lane {
    case .control: "lh:\(member):c"
    case .state: "lh:\(member):s"
    }
  }

  public var isUp: Bool { nodes.contains { $0.isUp } }

  public func send(_ frame: [UInt8], to member: String, lane: Lane) -> Bool {
    for index in order(of: member) where nodes[index].isUp {
      let channel = RedisBus.channel(member, lane)
      return links.submit(
        .words([Array("PUBLISH".utf8), Array(channel.utf8), frame]), ticket: RedisBus.ticket,
        to: nodes[index].publisher)
    }
    return false
  }

  private func order(of member: String) -> [Int] {
    if let known = orders[member] { return known }
    let order = Rendezvous.order(nodes.map(\.name), for: member)
    if orders.count >= 1024 { orders.removeAll() }
    orders[member] = order
    return order
  }

  public func takeEvents(into events: inout [BusEvent]) {
    for index in nodes.indices {
      var fault = "closed"
      for link in [nodes[index].publisher] + nodes[index].listeners {
        for event in links.takeEvents(of: link) {
          switch event {
          case .ready, .reply, .unknown: break
          case .message(let channel, let payload):
            events.append(.frame(channel.hasSuffix(":s") ? .state : .control, payload))
          case .lost(let reason): fault = "\(reason)"
          }
        }
      }
      noteState(of: index, fault, &events)
    }
  }

  /// A node is up when all its connections are: who is not heard there must not speak there.
  private func noteState(of index: Int, _ fault: String, _ events: inout [BusEvent]) {
    let isUp = ([nodes[index].publisher] + nodes[index].listeners).allSatisfy { links.isReady($0) }
    guard isUp != nodes[index].isUp else { return }
    nodes[index].isUp = isUp
    events.append(isUp ? .up(node: nodes[index].name) : .down(node: nodes[index].name, fault))
  }
}

/// Rendezvous hashing (Thaler, Ravishankar: A Name-Based Mapping Scheme for Rendezvous, 1996): all who know the same
/// names agree on an order of them for each key, and where one goes, only its keys move.
public enum Rendezvous {
  /// The indices of `names`, the best for `key` first.
  public static func order(_ names: [String], for key: String) -> [Int] {
    let keyHash = hash(key.utf8, seed: 0)
    let scores = names.map { hash($0.utf8, seed: keyHash) }
    return names.indices.sorted { (scores[$0], names[$0]) > (scores[$1], names[$1]) }
  }

  /// FNV-1a, mixed: the same in every process of every version.
  private static func hash(_ bytes: String.UTF8View, seed: UInt64) -> UInt64 {
    Mix64.mix(bytes.reduce(0xCBF2_9CE4_8422_2325 ^ seed) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 })
  }
}
