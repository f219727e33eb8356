// Cluster-wide figures, each second, and the newest position of every driver, once a second, for sessions that follow
// all of it.
//
//     here, each second                         at each other hub
//     a session has `stats` → figures wanted ─→ its own second with each of its seconds, for 2.5 s from then on
//     own + newest of each ←───── figures ←──── (and, for a new watcher, the ten minutes before)
//     a session has `fleet` → resume ─────────→ its hub's fleet, as one follower of it for all hubs
//     shown among its own ←─── publications ←── the newest of each driver that has moved, with each of its seconds
//
// A fleet comes all at once, and may be more than a peer's states may be, past which all of them are dropped: so a
// follower is given positions up to half of that, and then the others, those that have waited longest first.
//
// The hub calls this each second, and when a feed's first watcher comes or its last leaves. Only watched feeds are
// requested. A request is repeated and expires, so it needs no state across losses and restarts.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

struct Feeds {
  /// This hub's own, the oldest first.
  fileprivate var seconds: [HubFigures] = []
  fileprivate var watched = WatchedFeeds()
  /// Sessions that wait for the last ten minutes of figures, the hubs that have not sent theirs, and the deadline.
  fileprivate(set) var subscribing: [SubscribeInput] = []
  fileprivate var waitsFor: Set<Int> = []
  fileprivate var until = Int64.max
  /// Other hubs' seconds of the last ten minutes, in the parts that came.
  fileprivate var histories: [[HubFigures]] = []
  /// The newest position of each driver, for peers that follow this hub's fleet: it waits for the second's end.
  fileprivate var positions: [UInt64: PublishedPosition] = [:]
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }
}

/// Which seconds a record has.
private enum FiguresKind: UInt8 {
  case newest, history, endOfHistory
}

/// A position of this hub's fleet, with its conflation key.
struct FleetPosition {
  var key: UInt64
  var position: PublishedPosition
}

/// Whether a peer sends its fleet.
enum PeerFleet {
  case none, asked, streaming
}

extension Feeds {
  /// This hub's second is over.
  mutating func endSecond(_ second: HubFigures, _ watched: WatchedFeeds, _ interest: borrowing Interest) {
    self.watched = watched
    if seconds.count >= context.limits.figures { seconds.removeFirst(seconds.count - context.limits.figures + 1) }
    seconds.append(second)
    var added = [second]
    for index in context.peers.indices where context.peers[index].isMember {
      if context.peers[index].wantsFiguresUntil > context.now.uptime {
        context.peers[index].append(.figures) { $0.append([second], .newest) }
      }
      guard watched.stats else { continue }
      context.peers[index].append(.figuresWanted) { $0.append(UInt8(0)) }
      guard let (newest, time) = context.peers[index].figures, context.now.uptime - time < context.limits.figuresTime
      else { continue }
      added.append(newest)
    }
    let sum = watched.stats ? HubFigures.sum(added) : second
    context.inputs.append(.cluster(.figures([sum], isHistory: false)))
    askForFleets()
    queueFleet(interest)
  }

  // MARK: Figures

  /// A session is the first here that wants figures: they are those of all hubs, also of the ten minutes before.
  mutating func subscribe(_ input: SubscribeInput) {
    guard subscribing.count < context.limits.pending else { return context.refuse(input, .overloaded) }
    subscribing.append(input)
    guard subscribing.count == 1 else { return }
    let others = context.audible
    (waitsFor, until) = (Set(others), context.now.uptime + context.limits.questionTime)
    if !others.isEmpty { context.counters.questions += 1 }
    for index in others { context.peers[index].append(.figuresWanted) { $0.append(UInt8(1)) } }
    if others.isEmpty { endHistory() }
  }

  func receive(figuresWanted reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let wantsHistory = try reader.byte() != 0
    context.peers[index].wantsFiguresUntil = context.now.uptime + context.limits.figuresTime
    guard wantsHistory else { return }
    var rest = seconds[...]
    repeat {
      let part = rest.prefix(context.limits.figuresPerRecord)
      rest = rest.dropFirst(part.count)
      let kind = rest.isEmpty ? FiguresKind.endOfHistory : .history
      context.peers[index].append(.figures) { $0.append(part, kind) }
    } while !rest.isEmpty
  }

  mutating func receive(figures reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    guard let kind = FiguresKind(rawValue: try reader.byte()) else { throw .message }
    var seconds: [HubFigures] = []
    while !reader.isAtEnd { seconds.append(try reader.figures()) }
    switch kind {
    case .newest:
      let time = context.now.uptime
      context.peers[index].figures = seconds.last.map { ($0, time) }
    case .history: if waitsFor.contains(index) { histories.append(seconds) }
    case .endOfHistory:
      guard waitsFor.remove(index) != nil else { return }
      histories.append(seconds)
      if waitsFor.isEmpty { endHistory() }
    }
  }

  mutating func endOverdueHistory() {
    guard !subscribing.isEmpty, context.now.uptime >= until else { return }
    context.counters.questionsIncomplete += 1
    endHistory()
  }

  /// Ends the wait for the ten minutes before. O(seconds of all hubs).
  private mutating func endHistory() {
    // Hubs' seconds do not end at the same moment: those that end nearest to the same whole second are added.
    let parts = histories.map { history in
      Dictionary(history.map { ($0.timestamp.nearestSecond, $0) }, uniquingKeysWith: { $1 })
    }
    let sums = seconds.map { own in
      HubFigures.sum([own] + parts.compactMap { $0[own.timestamp.nearestSecond] })
    }
    context.inputs.append(.cluster(.figures(sums, isHistory: true)))
    for input in subscribing { context.inputs.append(.cluster(.subscribeHere(input))) }
    subscribing.removeAll()
    histories.removeAll()
    waitsFor.removeAll()
  }

  // MARK: The fleet

  /// Follows other hubs' fleets while somebody here watches, and no longer.
  private mutating func askForFleets() {
    guard context.phase == .member else { return }
    for index in context.peers.indices where context.peers[index].isMember && context.peers[index].incarnation > 0 {
      switch (watched.fleet, context.peers[index].fleet) {
      case (true, .none), (true, .asked):
        context.peers[index].fleet = .asked
        context.resume(Subscribe(channel: .fleet), at: index)
      case (false, .asked), (false, .streaming): releaseFleet(of: index)
      case (true, .streaming), (false, .none): break
      }
    }
  }

  /// A peer begins to send its fleet.
  mutating func beginFleet(of index: Int) {
    switch context.peers[index].fleet {
    case .none: releaseFleet(of: index)  // a late answer: the fleet is not wanted any more
    case .asked: context.peers[index].fleet = .streaming
    case .streaming: break
    }
  }

  private mutating func releaseFleet(of index: Int) {
    context.peers[index].fleet = .none
    context.release(.fleet, at: index)
  }

  mutating func relayFleet(_ position: PublishedPosition, from index: Int) {
    if watched.fleet, context.peers[index].fleet == .streaming { context.relay(position) }
  }

  /// Keeps a position of this hub for followers of its fleet until the second's end.
  mutating func keep(_ delivery: PositionDelivery) {
    guard positions[delivery.conflationKey] != nil || positions.count < context.limits.fleetDrivers else {
      context.counters.overflows += 1
      return
    }
    if positions.updateValue(delivery.position, forKey: delivery.conflationKey) != nil {
      context.counters.statesConflated += 1
    }
  }

  /// The second is over: its positions wait for each follower. First come drivers that it has not been given yet, with
  /// their newest positions, then those that were not in its last queue, then the others in the order in which it was
  /// given them. So each driver's turn comes. O(drivers), and as much for each follower that was not given all.
  private mutating func queueFleet(_ interest: borrowing Interest) {
    defer { positions.removeAll(keepingCapacity: true) }
    guard let fleet = interest.fleet, !positions.isEmpty else { return }
    let all = positions.map { FleetPosition(key: $0.key, position: $0.value) }
    for follower in interest.followers(fleet) {
      let peer = context.peers[follower.peer]
      var queue = all  // shared by all followers that were given all
      if peer.waitsForFleet {
        var moved = positions
        queue = peer.fleetQueue[peer.fleetGiven...].map {
          FleetPosition(key: $0.key, position: moved.removeValue(forKey: $0.key) ?? $0.position)
        }
        let again = peer.fleetQueue[..<peer.fleetGiven].compactMap { given in
          moved.removeValue(forKey: given.key).map { FleetPosition(key: given.key, position: $0) }
        }
        queue += moved.map { FleetPosition(key: $0.key, position: $0.value) }
        queue += again
        context.counters.overflows += UInt64(max(0, queue.count - context.limits.fleetDrivers))
        queue.removeLast(max(0, queue.count - context.limits.fleetDrivers))
      }
      (peer.fleetQueue, peer.fleetGiven) = (queue, 0)
    }
  }

  /// Gives followers the positions that wait for them, as far as they have room.
  func sendFleet(_ interest: borrowing Interest) {
    guard let fleet = interest.fleet else { return }
    for follower in interest.followers(fleet) where context.peers[follower.peer].takesFleet {
      let peer = context.peers[follower.peer]
      let given = peer.fleetQueue[peer.fleetGiven...].prefix(peer.fleetRoom)
      for next in given { peer.append(next.position, key: next.key, follower.binding) }
      peer.fleetGiven += given.count
    }
  }
}

extension Timestamp {
  fileprivate var nearestSecond: Int64 { (milliseconds + 500) / 1000 }
}

extension ByteBuffer {
  fileprivate mutating func append(_ seconds: some Sequence<HubFigures>, _ kind: FiguresKind) {
    append(kind.rawValue)
    for second in seconds {
      append(varint: UInt64(max(0, second.timestamp.milliseconds)))
      append(utf8Run: second.members)
      append(varint: UInt64(second.times.count))
      for time in second.times {
        append(varint: time.microseconds)
        append(varint: time.count)
      }
    }
  }
}

extension ClusterFrameReader {
  fileprivate mutating func figures() throws(ClusterFrameError) -> HubFigures {
    let time = try varint()
    guard time <= UInt64(Timestamp.accepted.upperBound.milliseconds) else { throw .message }
    let members = String(decoding: try run(), as: UTF8.self)
    var times: [HubFigures.Time] = []
    for _ in 0..<(try varint()) { times.append(HubFigures.Time(microseconds: try varint(), count: try varint())) }
    return HubFigures(timestamp: Timestamp(milliseconds: Int64(time)), members: members, times: times)
  }
}
