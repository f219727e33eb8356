// Frames that are changed, foreign, replayed, of a later version or not to be read: they are refused and counted, and
// the cluster works on.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct HostileFrameTests {
  private let head = FrameHead(
    lane: .control, from: "b", fromIncarnation: 7, to: "a", toIncarnation: 9, number: 1, clock: 5)

  @Test("A frame is read as it was made; with any byte changed, cut short or under another key it is refused")
  func frames() throws {
    let records: [UInt8] = [ClusterRecordKind.alive.rawValue, 0, ClusterRecordKind.begun.rawValue, 2, 1, 2]
    let frame = Frame.make(head, records, testKeys)
    var (read, reader) = try Frame.read(frame, testKeys)
    #expect(read == head)
    #expect(try reader.record() == FrameRecord(kind: .alive, body: []))
    #expect(try reader.record().body == [1, 2])
    #expect(reader.isAtEnd)
    for index in frame.indices {
      var changed = frame
      changed[index] ^= 1
      #expect(throws: ClusterFrameError.mac) { try Frame.read(changed, testKeys) }
      #expect(throws: ClusterFrameError.self) { try Frame.read(Array(frame[..<index]), testKeys) }
    }
    let others = try #require(FrameKeys(String(repeating: "ab", count: 32)))
    #expect(throws: ClusterFrameError.mac) { try Frame.read(frame, others) }
    let both = try #require(
      FrameKeys(String(repeating: "ab", count: 32) + "\n" + String(repeating: "0123456789abcdef", count: 4)))
    #expect(try Frame.read(frame, both).0 == head)
  }

  @Test("A frame's code is HMAC-SHA-256, as others compute it, however often and from however many threads")
  func code() async {
    // printf abc | openssl dgst -sha256 -mac HMAC -macopt hexkey:0123456789abcdef…
    let expected: [UInt8] = [
      0xCD, 0xD4, 0x81, 0xD6, 0x3D, 0x64, 0xDB, 0xDA, 0xAD, 0x2A, 0x13, 0xDD, 0x2A, 0x4D, 0xEE, 0xA2,
    ]
    let abc: [UInt8] = [97, 98, 99]
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<4 {
        group.addTask { (0..<1000).allSatisfy { _ in testKeys.code(of: abc[...]) == expected } }
      }
      for await isRight in group { #expect(isRight) }
    }
    #expect(testKeys.verifies(expected[...], of: abc[...]) && !testKeys.verifies(expected[...], of: abc[1...]))
    #expect(testKeys == FrameKeys(String(repeating: "0123456789abcdef", count: 4)))
    #expect(testKeys != FrameKeys(String(repeating: "ab", count: 32)))
  }

  @Test("Each key gives a secret of its own for each purpose, the same at all hubs")
  func secrets() throws {
    let keys = try #require(FrameKeys(["ab", "cd"].map { String(repeating: $0, count: 32) }.joined(separator: "\n")))
    let secrets = keys.secrets(for: "tickets")
    #expect(Set(secrets + keys.secrets(for: "else")).count == 4 && secrets.allSatisfy { $0.count == 32 })
    #expect(FrameKeys(String(repeating: "cd", count: 32))?.secrets(for: "tickets") == [secrets[1]])
  }

  @Test("Recorded frames that come again are refused and counted, and the cluster continues")
  func replayed() {
    let world = ClusterWorld(["a", "b"])
    let node = world["a"].node
    let from = node.node.context.peers[0].incarnation
    func frame(_ number: UInt64, to: UInt64) -> BusEvent {
      .frame(
        .control,
        Frame.make(
          FrameHead(
            lane: .control, from: "b", fromIncarnation: from, to: "a", toIncarnation: to, number: number, clock: 0),
          [ClusterRecordKind.alive.rawValue, 0], testKeys))
    }
    let before = node.node.counters.framesRefused
    _ = node.node.takeNotices()
    node.node.take(bus: frame(1, to: node.node.context.incarnation))
    node.node.take(bus: frame(1, to: node.node.context.incarnation - 1))
    node.node.take(bus: .frame(.state, Frame.make(head, [], testKeys)))
    node.node.take(bus: .frame(.control, [1, 2, 3]))
    // A later version, from who has the key.
    var later = Frame.make(head, [], testKeys).dropLast(FrameKeys.macBytes)
    later[0] += 1
    node.node.take(bus: .frame(.control, Array(later) + testKeys.code(of: later)))
    #expect(node.node.counters.framesRefused == before + 5)
    #expect(
      node.node.takeNotices() == [
        .frameRefused(.number, from: "b", .control), .frameRefused(.incarnation, from: "b", .control),
        .frameRefused(.lane, from: "b", .state), .frameRefused(.short, from: nil, .control),
        .frameRefused(.version(FrameHead.version + 1), from: "b", .control),
      ])
    for number in 0..<50 as Range<UInt64> { node.node.take(bus: frame(number, to: 3)) }
    #expect(node.node.takeNotices() == [], "each reason seldom")
    let gaps = node.node.counters.framesMissed
    world.run(seconds: 1)
    #expect(node.node.counters.framesMissed == gaps)
  }

  @Test(
    "A frame that is refused is counted by its reason, and named in the log with its lane and who it says it is from",
    arguments: ClusterFrameError.Kind.allCases)
  func reasons(kind: ClusterFrameError.Kind) throws {
    let world = ClusterWorld(["a", "b"])
    let (context, peer) = (world["a"].node.node.context, world["a"].node.node.context.peers[0])
    // All that is right, but for one thing.
    var (keys, records, lane) = (testKeys, [ClusterRecordKind.alive.rawValue, 0], Lane.control)
    var version = FrameHead.version
    var head = FrameHead(
      lane: .control, from: "b", fromIncarnation: peer.incarnation, to: "a", toIncarnation: context.incarnation,
      number: world["b"].node.node.context.peers[0].numbers[0] + 1, clock: 0)
    switch kind {
    case .short: records = [ClusterRecordKind.alive.rawValue, 1]
    case .version: version += 1
    case .lane: lane = .state
    case .name: head.to = "c"
    case .mac: keys = try #require(FrameKeys(String(repeating: "cd", count: 32)))
    case .record: records = [250, 0]
    case .message: records = [ClusterRecordKind.subscribe.rawValue, 1, 0]
    case .incarnation: head.fromIncarnation -= 1
    case .number: head.number = 1
    case .peers:
      head.from = "one-more"
      for number in 0..<ClusterLimits.maximumPeers { _ = context.peer("p\(number)") }
    }
    _ = peer.note(world["b"].node.node.context.peers[0].numbers[0], .control)
    var frame = Frame.make(head, records, keys).dropLast(FrameKeys.macBytes)
    frame[0] = version
    _ = world["a"].node.node.takeNotices()
    let (before, inputs, incarnation) = (context.counters, context.inputs.count, peer.incarnation)
    world["a"].node.node.take(bus: .frame(lane, Array(frame) + keys.code(of: frame)))
    var expected = before.framesRefusedByKind
    expected[Int(kind.rawValue)] += 1
    #expect(context.counters.framesRefusedByKind == expected && context.counters.framesIn == before.framesIn + 1)
    let named = world["a"].node.node.takeNotices().compactMap { notice -> String? in
      guard case .frameRefused(let error, let sender, let lane) = notice else { return nil }
      return "\(error.kind) \(sender ?? "nobody") \(lane)"
    }
    #expect(named == ["\(kind) \(head.from) \(lane)"] && context.inputs.count == inputs)
    #expect(peer.incarnation == incarnation && peer.isMember)
  }

  @Test("What a client asks and is not understood is lost alone; where anything else is, all is asked for anew")
  func records() throws {
    let world = ClusterWorld(["a", "b"])
    let node = world["a"].node
    let peer = node.node.context.peers[0]
    func take(_ records: [UInt8]) {
      let number = world["b"].node.node.context.peers[0].numbers[0] + 1
      let head = FrameHead(
        lane: .control, from: "b", fromIncarnation: peer.incarnation, to: "a",
        toIncarnation: node.node.context.incarnation, number: number, clock: 0)
      peer.wantsRestart = false
      _ = peer.note(number - 1, .control)
      node.node.take(bus: .frame(.control, Frame.make(head, records, testKeys)))
    }
    let refused = node.node.counters.framesRefused
    take([250, 2, 7, 7, 251, 0, ClusterRecordKind.lost.rawValue, 0])
    #expect(peer.wantsRestart && node.node.counters.framesRefused == refused + 1)
    #expect(node.node.counters.framesRefusedByKind[Int(ClusterFrameError.Kind.record.rawValue)] == 1)
    world.run(seconds: 1)
    let subscribe = ClusterRecordKind.subscribe.rawValue
    let (lost, ended) = (ClusterRecordKind.lost.rawValue, ClusterRecordKind.shareEnded.rawValue)
    for (records, restarts) in [
      ([subscribe, 1, 0], false), ([subscribe, 1, 0, lost, 0], true), ([subscribe, 9, 0], true), ([ended, 1, 0], true),
    ] {
      let (before, missed) = (node.node.counters.framesRefused, node.node.counters.framesMissed)
      take(records)
      #expect(peer.wantsRestart == restarts && node.node.counters.framesRefused == before + 1)
      #expect(node.node.counters.framesMissed == missed)
      world.run(seconds: 1)
    }
  }

  @Test("Only the hub that was asked can refuse a session's question, or that of a share's holder")
  func foreignRefusal() throws {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    _ = world.put(.begin(TripShare(id: id("link1"), created: world.now.timestamp, expires: nil)), of: "t1", at: "a")
    let holder = world.hold("link1", of: "t1", at: "b")
    world.run(seconds: 0.5)
    world.engine.cuts = ["a>b"]
    let rider = world.follow(.driver(id("d1")), at: "b", slot: 50)
    world.run(seconds: 0.2)
    let node = world["b"].node
    let context = node.node.context
    let (owner, other) = (try #require(context.knownPeer("a")), try #require(context.knownPeer("c")))
    node.node.following.askAnew(owner, holder.channel)
    for channel in [rider.channel, holder.channel] {
      var record = ByteBuffer()
      record.append(varint: try #require(node.node.following.follows[channel]?.questions.first))
      record.append(channel, at: world.now.timestamp)
      record.append(.error(ErrorReply(code: .forbidden, message: "no")), at: world.now.timestamp)
      var reader = ClusterFrameReader(record.array()[...])
      try node.node.following.receive(refused: &reader, from: other)
    }
    world.run(seconds: 0.2)
    #expect(rider.refusals.isEmpty && holder.ended.isEmpty)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(rider.answers.count == 1 && rider.refusals.isEmpty && holder.ended.isEmpty && holder.handle != nil)
  }

  @Test("A hub that was frozen while a later one of its name came and went knows that nobody hears it")
  func laterNamesake() {
    let world = ClusterWorld(["a", "b"])
    let frozen = world["a"]
    world.restart("a")
    world.run(seconds: 3)
    world["a"].node.node.leave()
    world.step()
    world.members[0] = frozen
    #expect(frozen.node.node.counters.isMember)
    // Even where the ledger's answer does not say so.
    world.run(seconds: 3)
    let notices = frozen.notices.filter { if case .superseded = $0 { true } else { false } }
    #expect(notices.count == 1 && !frozen.node.node.counters.isMember && frozen.node.node.counters.isolation != nil)
  }

  @Test("Only who has the key can say that a later hub has a name")
  func forgedNamesake() throws {
    let world = ClusterWorld(["a", "b"])
    let node = world["a"].node
    var later = head
    (later.fromIncarnation, later.toIncarnation) = (1 << 40, node.node.context.incarnation + 1)
    let others = try #require(FrameKeys(String(repeating: "ab", count: 32)))
    node.node.take(bus: .frame(.control, Frame.make(later, [], others)))
    later.to = "c"
    node.node.take(bus: .frame(.control, Frame.make(later, [], testKeys)))
    (later.to, later.toIncarnation) = ("a", node.node.context.incarnation - 1)
    node.node.take(bus: .frame(.control, Frame.make(later, [], testKeys)))
    #expect(node.node.counters.isMember)
  }

  @Test("A member with another key is refused, and its channels cannot be followed; the others go on")
  func foreignKey() throws {
    let world = ClusterWorld()
    world.restart("c", keys: try #require(FrameKeys(String(repeating: "cd", count: 32))))
    world.run(seconds: 3)
    world.connect("d1", at: "c", slot: 1)
    world.connect("d2", at: "a", slot: 1)
    world.run(seconds: 1)
    let foreign = world.follow(.driver(id("d1")), at: "b", slot: 5)
    let good = world.follow(.driver(id("d2")), at: "b", slot: 6)
    world.run(seconds: 5)
    #expect(foreign.refusals.count == 1 && foreign.answers.isEmpty)
    #expect(good.answers.count == 1)
    #expect(world["b"].node.node.counters.framesRefused > 0)
    #expect(world["b"].notices.contains(.frameRefused(.mac, from: "c", .control)))
    #expect(world["c"].node.node.counters.isDeaf && world["c"].node.node.counters.isolation != nil)
    #expect(!world["b"].node.node.counters.isDeaf && world["b"].node.node.counters.isolation == nil)
  }
}

extension ClusterCounters {
  /// All frames that were refused.
  var framesRefused: UInt64 { framesRefusedByKind.reduce(0, +) }
}

extension ClusterWorld {
  /// An event that everybody who follows the trip is shown.
  func notify(_ trip: String, at name: String, number: Int) {
    let post = NotificationPost(channel: .trip(id(trip)), kind: .message, title: "n", body: "\(number)")
    self[name].inputs.append(.notify(session(3), post))
  }

  /// The number of a channel's newest event at its owner.
  func newest(_ channel: Channel, at name: String) -> UInt64? {
    let asker = follow(channel, at: name, slot: 99)
    run(seconds: 0.1)
    self[name].leave(asker)
    return asker.answers.last?.sequence
  }

  @Test("Where a later version's event is among those that were missed, sessions are told of a gap and get the state")
  func laterEvent() throws {
    let peer = try #require(ClusterWorld(["a", "b"])["a"].node.node.context.peers.first)
    let (channel, time) = (Channel.trip(try #require(Identifier("t"))), Timestamp(milliseconds: 1_763_680_000_000))
    func event(_ kind: Notification.Kind) -> [UInt8] {
      let body = Notification(kind: kind, title: "a", body: "b", driverID: nil, sequence: 3)
      var bytes = ByteBuffer()
      bytes.append(
        Publication(channel: channel, number: 0, timestamp: time, body: .notification(body)), 5, ImpliedNames())
      return bytes.array()
    }
    var later = event(.hazard)
    let kind = try #require(zip(later, event(.speeding)).enumerated().first { $0.element.0 != $0.element.1 }?.offset)
    later[kind] = 200
    let eta = ETAUpdate(
      tripID: try #require(Identifier("t")), target: .pickup, eta: 60, distance: 500, arrivalTime: time,
      basis: .direct, after: 4)
    let answer = Subscribed(
      replyTo: ClusterOutput.unsolicited, channel: channel, sequence: 4, epoch: try #require(InlineText("e")),
      recovered: true, snapshot: Subscribed.Snapshot())
    func read(_ missed: [UInt8]) throws -> OwnerAnswer {
      var bytes = ByteBuffer()
      bytes.append([1, 0, 0])
      bytes.append(.subscribed(answer), naming: (5, ImpliedNames()), at: time)
      bytes.append(varint: 2)
      bytes.append(missed)
      bytes.append(
        Publication(channel: channel, number: 0, timestamp: time, body: .etaUpdate(eta)), 5, ImpliedNames())
      var reader = ClusterFrameReader(bytes.array()[...])
      return try OwnerAnswer(&reader, from: peer)
    }
    let whole = try read(event(.hazard))
    #expect(whole.answer.recovered && whole.missed.count == 2)
    let unread = try read(later)
    #expect(!unread.answer.recovered && unread.missed.isEmpty && unread.answer.snapshot?.eta == eta)
  }
}
