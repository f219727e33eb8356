// What hubs say of themselves and of their drivers to those who watch all of it: figures, each second, and the newest
// position of every driver, once a second.
//
//     here, each second                         at each other hub
//     a session has `stats` → figures wanted ─→ its own second with each of its seconds, for 2.5 s from then on
//     own + newest of each ←───── figures ←──── (and, for who has just begun, the ten minutes before)
//     a session has `fleet` → resume ─────────→ its hub's fleet, as one follower of it for all hubs
//     shown among its own ←─── publications ←── the newest of each driver that has moved, with each of its seconds
//
// The hub gives the beat: it tells of each second, and of who watches. What nobody watches is not asked for. A want is
// said again and again and ends by itself, so whatever is lost, or starts anew, nothing has to be remembered of it.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

struct Feeds {
  /// This hub's own, the oldest first.
  fileprivate var seconds: [HubFigures] = []
  fileprivate var watched = WatchedFeeds()
  /// Sessions that wait for the ten minutes before, who has not told of them yet, and until when that is waited for.
  fileprivate(set) var subscribing: [SubscribeInput] = []
  fileprivate var waitsFor: Set<Int> = []
  fileprivate var until = Int64.max
  /// In parts.
  fileprivate var histories: [[HubFigures]] = []
  /// The channel that peers follow, and the newest position of each driver that waits for the second's end.
  var fleet: ChannelHandle?
  fileprivate var positions: [UInt64: Publication] = [:]

  mutating func endFleet() {
    fleet = nil
    positions.removeAll()
  }
}

/// Which seconds a record has.
private enum FiguresKind: UInt8 {
  case newest, history, endOfHistory
}

/// Whether a peer tells of its fleet.
enum PeerFleet {
  case none, asked, telling
}

extension ClusterNode {
  /// This hub's second is over.
  mutating func take(_ second: HubFigures, _ watched: WatchedFeeds) {
    feeds.watched = watched
    if feeds.seconds.count >= limits.figures { feeds.seconds.removeFirst(feeds.seconds.count - limits.figures + 1) }
    feeds.seconds.append(second)
    var added = [second]
    for index in peers.indices where peers[index].isMember {
      if peers[index].wantsFiguresUntil > now.uptime {
        peers[index].append(.figures, limits) { $0.append([second], .newest) }
      }
      guard watched.stats else { continue }
      peers[index].append(.figuresWanted, limits) { $0.append(UInt8(0)) }
      guard let (newest, time) = peers[index].figures, now.uptime - time < limits.figuresTime else { continue }
      added.append(newest)
    }
    let sum = watched.stats ? HubFigures.sum(added) : second
    inputs.append(.cluster(.figures([sum], isHistory: false)))
    askForFleets()
    sendFleet()
  }

  // MARK: Figures

  /// A session is the first here that wants figures: they are those of all hubs, also of the ten minutes before.
  mutating func subscribeToFigures(_ input: SubscribeInput) {
    guard feeds.subscribing.count < limits.pending else { return refuse(input, .overloaded) }
    feeds.subscribing.append(input)
    guard feeds.subscribing.count == 1 else { return }
    let others = phase == .member ? peers.indices.filter { peers[$0].isMember && !peers[$0].isSilent } : []
    (feeds.waitsFor, feeds.until) = (Set(others), now.uptime + limits.questionTime)
    if !others.isEmpty { counters.questions += 1 }
    for index in others { peers[index].append(.figuresWanted, limits) { $0.append(UInt8(1)) } }
    if others.isEmpty { endHistory() }
  }

  mutating func takeFiguresWanted(isHistory: Bool, from index: Int) {
    peers[index].wantsFiguresUntil = now.uptime + limits.figuresTime
    guard isHistory else { return }
    var rest = feeds.seconds[...]
    repeat {
      let part = rest.prefix(limits.figuresPerRecord)
      rest = rest.dropFirst(part.count)
      let kind = rest.isEmpty ? FiguresKind.endOfHistory : .history
      peers[index].append(.figures, limits) { $0.append(part, kind) }
    } while !rest.isEmpty
  }

  mutating func take(figures reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    guard let kind = FiguresKind(rawValue: try reader.byte()) else { throw .message }
    var seconds: [HubFigures] = []
    while !reader.isAtEnd { seconds.append(try reader.figures()) }
    switch kind {
    case .newest: peers[index].figures = seconds.last.map { ($0, now.uptime) }
    case .history: if feeds.waitsFor.contains(index) { feeds.histories.append(seconds) }
    case .endOfHistory:
      guard feeds.waitsFor.remove(index) != nil else { return }
      feeds.histories.append(seconds)
      if feeds.waitsFor.isEmpty { endHistory() }
    }
  }

  mutating func endOverdueHistory() {
    guard !feeds.subscribing.isEmpty, now.uptime >= feeds.until else { return }
    counters.questionsIncomplete += 1
    endHistory()
  }

  /// What is known of the ten minutes before is all there will be. O(seconds of all hubs).
  private mutating func endHistory() {
    // Hubs' seconds do not end at the same moment: those that end nearest to the same whole second are added.
    let parts = feeds.histories.map { history in
      Dictionary(history.map { ($0.timestamp.nearestSecond, $0) }, uniquingKeysWith: { $1 })
    }
    let sums = feeds.seconds.map { own in
      HubFigures.sum([own] + parts.compactMap { $0[own.timestamp.nearestSecond] })
    }
    inputs.append(.cluster(.figures(sums, isHistory: true)))
    for input in feeds.subscribing { inputs.append(.cluster(.subscribeHere(input))) }
    feeds.subscribing.removeAll()
    feeds.histories.removeAll()
    feeds.waitsFor.removeAll()
  }

  // MARK: The fleet

  /// Follows other hubs' fleets while somebody here watches, and no longer.
  private mutating func askForFleets() {
    guard phase == .member else { return }
    for index in peers.indices where peers[index].isMember && peers[index].incarnation > 0 {
      switch (feeds.watched.fleet, peers[index].fleet) {
      case (true, .none), (true, .asked):
        peers[index].fleet = .asked
        askAnew(index, .fleet)
      case (false, .asked), (false, .telling): releaseFleet(of: index)
      case (true, .telling), (false, .none): break
      }
    }
  }

  /// A peer will tell of its fleet.
  mutating func beginFleet(of index: Int) {
    switch peers[index].fleet {
    case .none: releaseFleet(of: index)  // it was asked before that was taken back
    case .asked: peers[index].fleet = .telling
    case .telling: break
    }
  }

  private mutating func releaseFleet(of index: Int) {
    let time = now.timestamp
    peers[index].fleet = .none
    peers[index].append(.released, limits) { $0.append(.fleet, at: time) }
    forgetNames(of: .fleet, at: index)
  }

  mutating func relayFleet(_ publication: Publication, from index: Int) {
    if feeds.watched.fleet, peers[index].fleet == .telling { relay(publication) }
  }

  /// A position of this hub, for those who watch its fleet: it waits for the second's end.
  mutating func keep(_ delivery: Delivery) {
    guard feeds.positions[delivery.conflationKey] != nil || feeds.positions.count < limits.fleetDrivers else {
      counters.overflows += 1
      return
    }
    if feeds.positions.updateValue(delivery.publication, forKey: delivery.conflationKey) != nil {
      counters.statesConflated += 1
    }
  }

  private mutating func sendFleet() {
    guard let fleet = feeds.fleet, !feeds.positions.isEmpty else { return }
    for follower in owning.followers(fleet) {
      for (key, publication) in feeds.positions {
        peers[follower.peer].append(StateRecord(key: key, binding: follower.binding, publication: publication))
      }
    }
    feeds.positions.removeAll(keepingCapacity: true)
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
