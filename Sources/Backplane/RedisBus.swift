// The bus over stand-alone nodes of Redis or Valkey: a channel for each member and lane, `lh:NAME:c` and `lh:NAME:s`.
//
// A member listens at every node. A sender uses the first node that it can reach, in an order that depends on the
// receiver (rendezvous hashing), so that the load is spread and a dead node costs its share only until the next is
// used. Frames of one pair and lane go by one node while it is up and the receiver listens there: if the reply to
// PUBLISH is that nobody does, the next node is used until both channels have a listener again, which is asked once a
// second (PUBSUB NUMSUB). Of frames of states, which are many, one in 0.1 s gets that reply. A node counts a receiver
// that the network has cut off silently as a listener, so a member reports the nodes that it does not hear (`unheard`).
// Redis Cluster cannot be used: there each message goes to all nodes.

/// The bus over stand-alone nodes of Redis or Valkey. Only the thread of its event loop uses it.
public final class RedisBus: Bus {
  private struct Node {
    let publisher: LinkID
    /// The publisher, and a listener for each lane.
    let links: [LinkID]
    let name: String
    var isUp = false
    /// The last reported reason why it cannot be used.
    var fault: String?
    /// Set while the node does not let this hub publish on a channel: its error, the channel, and when that is tried
    /// again, and forgotten (uptime, ns).
    var refusal: (text: String, channel: String, triesAt: Int64, until: Int64)?
  }

  /// A member that frames are sent to.
  private struct Target {
    let name: String
    /// The nodes in its order of preference.
    let order: [Int]
    /// Nodes where it does not listen, and when that is asked again (uptime, ns).
    var deaf: [Int: Int64] = [:]
    /// When the next frame of states gets a reply (uptime, ns); those before go without.
    var repliesAt = Int64.min
  }

  private let links: RedisLinks
  private var nodes: [Node] = []
  private var targets: [Target] = []
  private var targetIndices: [String: Int] = [:]
  /// Marks the ticket of a command that asks who listens; a frame's ticket is the target's index.
  private static let question: UInt64 = 1 << 63
  /// Marks the ticket of an empty frame, which tries again whether the node lets this hub publish.
  private static let trial: UInt64 = 1 << 62

  /// A bus over these nodes, which all members must name, at most `BackplaneLimits.maximumNodes`; `role` has the
  /// credentials.
  public init(_ links: RedisLinks, nodes: [EngineAddress], member: String, role: RedisRole) {
    precondition(nodes.count <= BackplaneLimits.maximumNodes, "the configuration was checked")
    self.links = links
    var publishing = role
    publishing.skipsReplies = true
    for node in nodes {
      let publisher = links.add(publishing, to: node)
      let listeners = Lane.allCases.map { lane in
        var listening = role
        listening.channels = [RedisBus.channel(member, lane)]
        return links.add(listening, to: node)
      }
      self.nodes.append(Node(publisher: publisher, links: [publisher] + listeners, name: "\(node)"))
    }
  }

  static func channel(_ member: String, _ lane: Lane) -> String {
    switch lane {
    case .control: "lh:\(member):c"
    case .state: "lh:\(member):s"
    }
  }

  /// Whether at least one node can be published to. O(nodes).
  public var isUp: Bool { nodes.contains { $0.isUp } }

  /// Publishes a frame on the first usable node of the member's order where the member is known to listen; else on the
  /// first usable one. False where no node is usable, or that node's connection has no room: nothing was sent. A sent
  /// frame may be lost with its node.
  public func send(_ frame: [UInt8], to member: String, lane: Lane) -> Bool {
    let target = target(member)
    guard let publisher = publisher(for: target) else { return false }
    let channel = RedisBus.channel(member, lane)
    // The number of listeners costs the node a system call and the sender a wake-up, and states are many.
    let needsReply = lane == .control || links.now >= targets[target].repliesAt
    let isSent = links.submit(
      .words([Array("PUBLISH".utf8), Array(channel.utf8), frame]), ticket: UInt64(target), needsReply: needsReply,
      to: publisher)
    if isSent, needsReply, lane == .state { targets[target].repliesAt = links.now + links.limits.statesReplyTime }
    return isSent
  }

  /// Whether the node that a frame for the member would be published on takes so many bytes more. O(nodes).
  public func hasRoom(for bytes: Int, to member: String) -> Bool {
    publisher(for: target(member)).map { links.hasRoom(for: bytes, on: $0) } ?? false
  }

  private func publisher(for target: Int) -> LinkID? {
    let reached = targets[target].order.filter { nodes[$0].isUp }
    for node in reached { askWhetherHeard(target, at: node) }
    // If it is not known to listen anywhere, its best node is as good as any.
    return (reached.first { targets[target].deaf[$0] == nil } ?? reached.first).map { nodes[$0].publisher }
  }

  private func target(_ member: String) -> Int {
    if let known = targetIndices[member] { return known }
    if targets.count >= BackplaneLimits.maximumTargets {
      targets.removeAll()
      targetIndices.removeAll()
    }
    targets.append(Target(name: member, order: Rendezvous.order(nodes.map(\.name), for: member)))
    targetIndices[member] = targets.count - 1
    return targets.count - 1
  }

  /// Asks a node where a member did not listen whether it does now, if that is due.
  private func askWhetherHeard(_ target: Int, at node: Int) {
    guard let time = targets[target].deaf[node], links.now >= time else { return }
    targets[target].deaf[node] = links.now + links.limits.listenerTime
    let channels = Lane.allCases.map { Array(RedisBus.channel(targets[target].name, $0).utf8) }
    _ = links.submit(
      .words([Array("PUBSUB".utf8), Array("NUMSUB".utf8)] + channels), ticket: RedisBus.question | UInt64(target),
      to: nodes[node].publisher)
  }

  /// Bit i for node i that this hub cannot use. O(nodes).
  public var unheard: UInt64 {
    nodes.indices.reduce(0) { nodes[$1].isUp ? $0 : $0 | 1 << UInt64($1) }
  }

  /// Avoids the nodes of `mask` (bit i for node i) for frames to `member`, for `BackplaneLimits.listenerTime`.
  public func note(unheard mask: UInt64, by member: String) {
    let target = target(member)
    for node in nodes.indices where mask & 1 << UInt64(node) != 0 {
      targets[target].deaf[node] = links.now + links.limits.listenerTime
    }
  }

  /// Takes a reply: how many listen, or an error, as the node does not let this hub publish there. Such a node is
  /// avoided, and tried again each second with an empty frame, which receivers ignore. After a minute it is used again
  /// in any case, since the member may be gone.
  private func take(_ reply: RESPValue, _ ticket: UInt64, from node: Int) {
    if ticket & RedisBus.question == 0, case .error(let text) = reply {
      let target = Int(ticket & ~RedisBus.trial)
      guard ticket & RedisBus.trial == 0, targets.indices.contains(target) else { return }
      let (now, limits) = (links.now, links.limits)
      nodes[node].refusal = (
        text, RedisBus.channel(targets[target].name, .control), triesAt: now + limits.listenerTime,
        until: now + limits.refusalTime
      )
    } else if ticket & RedisBus.trial != 0 {
      nodes[node].refusal = nil
    } else {
      noteListeners(reply, ticket, at: node)
    }
  }

  private func tryAgain(_ node: Int) {
    guard let refusal = nodes[node].refusal, links.now >= refusal.triesAt else { return }
    guard links.now < refusal.until else {
      nodes[node].refusal = nil
      return
    }
    nodes[node].refusal?.triesAt = links.now + links.limits.listenerTime
    _ = links.submit(
      .words([Array("PUBLISH".utf8), Array(refusal.channel.utf8), []]), ticket: RedisBus.trial,
      to: nodes[node].publisher)
  }

  private func noteListeners(_ reply: RESPValue, _ ticket: UInt64, at node: Int) {
    let target = Int(ticket & ~RedisBus.question)
    guard targets.indices.contains(target) else { return }
    if ticket & RedisBus.question == 0 {
      guard reply.integer == 0, targets[target].deaf[node] == nil else { return }
      targets[target].deaf[node] = links.now + links.limits.listenerTime
    } else if case .array(let parts) = reply, parts.count == 2 * Lane.allCases.count {
      let listeners = parts.indices.filter { $0 % 2 == 1 }.map { parts[$0].integer ?? 0 }
      if listeners.allSatisfy({ $0 > 0 }) { targets[target].deaf[node] = nil }
    }
  }

  /// Appends the frames that came and the changes of nodes since the last call. Once a turn, after `RedisLinks.tick`.
  public func takeEvents(into events: inout [BusEvent]) {
    for index in nodes.indices {
      var fault: String?
      for link in nodes[index].links {
        for event in links.takeEvents(of: link) {
          switch event {
          case .ready, .unknown: break
          case .reply(let ticket, let value): take(value, ticket, from: index)
          case .message(_, let payload) where payload.isEmpty: break
          case .message(let channel, let payload):
            events.append(.frame(channel.hasSuffix(":s") ? .state : .control, payload))
          case .lost(let reason):
            fault = "\(reason)"
            nodes[index].refusal = nil
          }
        }
      }
      tryAgain(index)
      noteState(of: index, fault ?? nodes[index].refusal?.text, &events)
    }
  }

  /// A node is up when all its connections are, since a member that is not heard there must not send there, and when it
  /// lets this hub publish. The reason of a failure is reported when the node goes down, at the start, and when it
  /// changes.
  private func noteState(of index: Int, _ fault: String?, _ events: inout [BusEvent]) {
    let isUp = nodes[index].refusal == nil && nodes[index].links.allSatisfy { links.isReady($0) }
    let isNews = isUp != nodes[index].isUp
    nodes[index].isUp = isUp
    if isUp {
      nodes[index].fault = nil
      if isNews { events.append(.up(node: nodes[index].name)) }
    } else if isNews || fault != nil && fault != nodes[index].fault {
      nodes[index].fault = fault
      events.append(.down(node: nodes[index].name, fault ?? "closed"))
    }
  }
}
