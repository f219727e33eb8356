// modules: HubBytes HubGeo HubMessages HubSystem HubTransport HubJournal HubCore HubRuntime HubBackplane HubCluster
// libraries: ssl crypto
// libFuzzer entry for frames of other hubs: of one that has the key and says anything, and of one that has no key.
//
// Sessions of the hub follow a driver of the other one, and the figures, fleet and trips of both.
//
// Input: pieces, each a byte that says the lane and whether a number is left out, a length, and that many bytes. A
// piece is taken for the records of a frame that is signed rightly, and once as a frame itself. Checked beyond not
// crashing: what is not signed is refused; what is refused is counted once; after anything, a frame that only says
// that its sender is alive is taken.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

@testable import HubCluster

private let keys = FrameKeys(String(repeating: "0123456789abcdef", count: 4))!
private let (ownIncarnation, peerIncarnation): (UInt64, UInt64) = (5, 7)

extension ClusterCounters {
  fileprivate var framesRefused: UInt64 { framesRefusedByKind.reduce(0, +) }
}

/// A bus that takes everything, and a ledger whose questions the fuzzer answers.
private final class Sink: Bus, Ledger {
  var isUp: Bool { true }
  var questions: [(UInt64, LedgerQuestion)] = []
  func send(_ frame: [UInt8], to member: String, lane: Lane) -> Bool { true }
  func takeEvents(into events: inout [BusEvent]) {}
  func ask(_ question: LedgerQuestion, ticket: UInt64) -> Bool {
    questions.append((ticket, question))
    return true
  }
  func takeEvents(into events: inout [LedgerEvent]) {}
}

private struct World: ~Copyable {
  var now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: 1_700_000_000_000))
  var hub: Hub
  var node: ClusterNode
  let sink = Sink()
  var numbers: [UInt64] = [0, 0]

  init() {
    hub = Hub(
      limits: HubLimits(), timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText("e")!, seed: 7,
      outlets: 2, now: now)
    hub.joinCluster(outlet: 1)
    let identity = ClusterIdentity(name: "a", address: "127.0.0.1:1", version: "0", keys: keys)
    node = ClusterNode(identity, outlet: 1, now: now)
    node.take(ledger: .up(node: "fuzz", warnings: []))
    // It becomes a member, and reads of one other.
    for _ in 0..<3 { turn() }
    let driver = Channel.driver(Identifier("d")!)
    for channel in [driver, .trips, .fleet] { follow(channel) }
    for _ in 0..<2 { turn() }
    receiveAnswer(driver)
    // The other's figures of before are waited for until the next turn.
    follow(.stats)
    turn()
  }

  private mutating func follow(_ channel: Channel) {
    let input = SubscribeInput(
      session: SessionRef(outlet: 0, slot: 0, generation: 1), actor: Actor(role: .ops, id: Identifier("ops")!),
      messageID: MessageID(number: 1), request: Subscribe(channel: channel), grant: .granted)
    hub.handle([HubInput.subscribe(input)], now: now)
  }

  /// The other hub answers the first question.
  private mutating func receiveAnswer(_ channel: Channel) {
    let found = Subscribed(
      replyTo: MessageID(number: 1), channel: channel, sequence: 7, epoch: InlineText("f")!, recovered: false,
      snapshot: nil)
    var records = ByteBuffer()
    records.append(.subscribed) { bytes in
      bytes.append(varint: 1)
      bytes.append(UInt8(0))
      bytes.append(varint: 0)
      bytes.append(.subscribed(found), naming: (1, ImpliedNames()), at: now.timestamp)
      bytes.append(varint: 0)
    }
    receive(records.array(), .control)
  }

  mutating func turn() {
    now.uptime += 300_000_000
    now.timestamp = Timestamp(milliseconds: now.timestamp.milliseconds + 300)
    node.begin(now: now)
    for (ticket, question) in sink.questions { node.take(ledger: .answer(ticket: ticket, answer(question))) }
    sink.questions.removeAll()
    hub.handle(node.inputs, now: now)
    hub.handle([HubInput.figures(HubFigures(timestamp: now.timestamp, members: #""fixes":1"#))], now: now)
    hub.endTurn()
    node.inputs.removeAll()
    _ = hub.drain(0)
    var outputs = HubOutputs()
    hub.drain(1, into: &outputs)
    node.take(outputs: outputs)
    node.turn()
    node.flush(sink, sink)
    _ = node.takeNotices()
  }

  private func answer(_ question: LedgerQuestion) -> LedgerAnswer {
    switch question {
    case .incarnation: .incarnation(ownIncarnation)
    case .renew: .renewed(wasKnown: true)
    case .members:
      .members([MemberRecord(name: "b", incarnation: peerIncarnation, address: "127.0.0.1:2", version: "0")])
    case .claim: .claimed(generation: 1, before: nil, waiting: ["b"])
    case .locate, .owner: .owner("b")
    case .leave, .release, .concede: .done
    }
  }

  mutating func receive(_ records: [UInt8], _ lane: Lane, leavingOut: UInt64 = 0) {
    numbers[Int(lane.rawValue)] += 1 + leavingOut
    let head = FrameHead(
      lane: lane, from: "b", fromIncarnation: peerIncarnation, to: "a", toIncarnation: ownIncarnation,
      number: numbers[Int(lane.rawValue)], clock: now.timestamp.milliseconds)
    node.take(bus: .frame(lane, Frame.make(head, records, keys)))
  }

  /// What a hub that keeps the protocol may always do.
  mutating func checkUsable() {
    var records = ByteBuffer()
    records.append(.alive)
    let refused = node.counters.framesRefused
    receive(records.array(), .control)
    precondition(node.counters.framesRefused == refused, "a good frame is taken after bad ones")
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  var rest = [UInt8](UnsafeBufferPointer(start: start, count: count))[...]
  var world = World()
  precondition(world.node.context.phase == .member && world.node.counters.peers == 1)
  precondition(world.node.counters.follows > 0 && world.node.counters.framesRefused == 0)
  while rest.count >= 2 {
    let (kind, length) = (rest.removeFirst(), Int(rest.removeFirst()))
    let piece = Array(rest.prefix(length))
    rest = rest.dropFirst(length)
    let before = world.node.counters.framesRefused
    world.node.take(bus: .frame(.control, piece))
    precondition(world.node.counters.framesRefused == before + 1, "what is not signed is refused")
    world.receive(piece, kind & 1 == 0 ? .control : .state, leavingOut: kind & 2 == 0 ? 0 : 1)
    precondition(world.node.counters.framesRefused <= before + 2, "a refusal counts once")
    if kind & 4 == 0 { world.turn() }
  }
  world.checkUsable()
  world.turn()
  return 0
}
