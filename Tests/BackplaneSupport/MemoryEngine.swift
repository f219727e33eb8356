// An engine in memory: the bus and the ledger without a socket, which a test moves by hand and may make fail. What the
// ledger answers is held against a real engine by the same conformance tests.
public import HubBackplane
import HubBytes

/// What goes wrong, by chance; all 0 for an engine without fault.
public struct EngineFaults: Sendable {
  /// Of frames: lost, with a byte changed, sent twice, held back for up to `delay` ns.
  public var lost = 0.0
  public var spoiled = 0.0
  public var doubled = 0.0
  public var delayed = 0.0
  public var delay: Int64 = 50_000_000
  /// Of the ledger's answers: not given, though the question was carried out or not.
  public var unknown = 0.0

  public init() {}
}

/// The engine that several members share. Time is what the test says.
public final class MemoryEngine {
  struct Owner {
    var name: String
    var generation: UInt64
    /// By member, the last attempt that was carried out.
    var seizures: [String: UInt64] = [:]
  }

  private struct Frame {
    var due: Int64
    var order: UInt64
    var target: String
    var sender: String
    var lane: Lane
    var bytes: [UInt8]
  }

  public var faults = EngineFaults()
  /// Called with the ledger's requests, except renewals, and its answers.
  public var trace: ((String) -> Void)?
  /// Pairs of members whose frames do not pass, as `a>b`; or those of one lane, as `a>b control`.
  public var cuts: Set<String> = []
  /// Members whose questions the ledger carries out, and whose answers do not come.
  public var deaf: Set<String> = []
  /// Members whose questions the ledger refuses where they would write, as one without memory left does.
  public var full: Set<String> = []
  /// Members whose connection to the ledger has no room: nothing is asked.
  public var busy: Set<String> = []
  /// Members that do not reach the engine at all.
  public var isolated: Set<String> = [] {
    didSet { for member in isolated.subtracting(oldValue) { isolations[member, default: 0] += 1 } }
  }
  /// How often each member's connections have ended: it notices, even if it was stalled meanwhile.
  fileprivate var isolations: [String: Int] = [:]
  public private(set) var framesSent = 0
  public private(set) var bytesSent = 0
  public private(set) var framesLost = 0
  public private(set) var framesSpoiled = 0
  /// What the ledger was asked.
  public fileprivate(set) var questions = 0
  /// The engine's clock, in ns; it moves by `advance`.
  public private(set) var now: Int64
  private var random: UInt64
  private var waiting: [Frame] = []
  private var order: UInt64 = 0
  private var inboxes: [String: [BusEvent]] = [:]
  // The ledger.
  private var highestIncarnation: UInt64 = 0
  private var members: [String: (record: MemberRecord, until: Int64)] = [:]
  private var owners: [String: Owner] = [:]
  private var waiters: [String: Set<String>] = [:]
  /// Whom it was taken from, and who has not shown that it knows.
  private var losers: [String: Set<String>] = [:]

  public init(seed: UInt64, now: Int64 = 1_700_000_000_000_000_000) {
    random = seed
    self.now = now
  }

  /// Loses everything that it knows, as an engine without persistence does at a restart.
  public func forget() {
    highestIncarnation = 0
    members.removeAll()
    owners.removeAll()
    waiters.removeAll()
    losers.removeAll()
  }

  public func owner(of key: String) -> String? { owners[key]?.name }

  /// The members that wait for an owner of the key.
  public func waiting(for key: String) -> Set<String> { waiters[key] ?? [] }

  /// Moves the clock, and delivers the frames that are due.
  public func advance(by nanoseconds: Int64) {
    now += nanoseconds
    let due = waiting.filter { $0.due <= now }.sorted { ($0.due, $0.order) < ($1.due, $1.order) }
    waiting.removeAll { $0.due <= now }
    for frame in due where !isolated.contains(frame.target) {
      inboxes[frame.target, default: []].append(.frame(frame.lane, frame.bytes))
    }
  }

  func chance(_ probability: Double) -> Bool {
    probability > 0 && Mix64.unit(Mix64.next(&random)) < probability
  }

  // MARK: The bus

  func send(_ bytes: [UInt8], from sender: String, to target: String, lane: Lane) -> Bool {
    if isolated.contains(sender) { return false }
    framesSent += 1
    bytesSent += bytes.count
    guard cuts.isEmpty || !cuts.contains("\(sender)>\(target)") && !cuts.contains("\(sender)>\(target) \(lane)"),
      !chance(faults.lost)
    else {
      framesLost += 1
      return true
    }
    var bytes = bytes
    if chance(faults.spoiled) {
      bytes[Int(Mix64.next(&random) % UInt64(bytes.count))] ^= 1 << UInt8(Mix64.next(&random) % 8)
      framesSpoiled += 1
    }
    for _ in 0..<(chance(faults.doubled) ? 2 : 1) {
      let wait = chance(faults.delayed) ? Int64(Mix64.unit(Mix64.next(&random)) * Double(faults.delay)) : 0
      order += 1
      waiting.append(
        Frame(due: now + wait, order: order, target: target, sender: sender, lane: lane, bytes: bytes))
    }
    return true
  }

  func take(_ member: String) -> [BusEvent] { inboxes.removeValue(forKey: member) ?? [] }

  // MARK: The ledger

  func answer(_ question: LedgerQuestion) -> LedgerAnswer {
    switch question {
    case .incarnation:
      highestIncarnation = max(highestIncarnation + 1, UInt64(now / 1_000_000_000))
      return .incarnation(highestIncarnation)
    case .renew(let member, let lease):
      let known = living(member.name)
      if let known, known.incarnation > member.incarnation { return .superseded(by: known.incarnation) }
      members[member.name] = (member, now + lease * 1_000_000)
      highestIncarnation = max(highestIncarnation, member.incarnation)
      return .renewed(wasKnown: known != nil)
    case .leave(let name, let incarnation):
      if living(name)?.incarnation == incarnation { members[name] = nil }
      return .done
    case .members: return .members(members.keys.sorted().compactMap(living))
    case .claim(let key, let member, let known, let seizes, let attempt):
      return claim(key, member, known, seizes, attempt)
    case .locate(let key, let asker):
      if let owner = owners[key] { return .owner(owner.name) }
      waiters[key, default: []].insert(asker)
      return .owner(nil)
    case .owner(let key): return .owner(owners[key]?.name)
    case .concede(let key, let member):
      losers[key]?.remove(member)
      return .done
    case .release(let key, let member):
      losers[key]?.remove(member)
      if owners[key]?.name == member { owners[key] = nil }
      return .done
    }
  }

  /// Whether a question takes memory.
  func writes(_ question: LedgerQuestion) -> Bool {
    switch question {
    case .incarnation, .renew, .claim: true
    case .locate(let key, _): owners[key] == nil
    case .leave, .members, .owner, .release, .concede: false
    }
  }

  private func living(_ name: String) -> MemberRecord? {
    guard let member = members[name], member.until > now else { return nil }
    return member.record
  }

  private func claim(
    _ key: String, _ member: String, _ known: UInt64, _ seizes: Bool, _ attempt: UInt64
  ) -> LedgerAnswer {
    let before = owners[key]
    let isDone = seizes && attempt > 0 && before?.seizures[member] == attempt
    losers[key]?.remove(member)
    if let before, before.name != member, isDone || !seizes && before.generation >= known {
      return .held(by: before.name, generation: before.generation)
    }
    let isKnown = known >= before?.generation ?? 0
    var generation = max(before?.generation ?? 0, known)
    if seizes, !isDone { generation = max(generation + 1, UInt64(now / 1_000_000)) }
    var owner = Owner(name: member, generation: generation, seizures: before?.seizures ?? [:])
    if seizes, attempt > 0 { owner.seizures[member] = attempt }
    owners[key] = owner
    let waiting = (waiters[key] ?? []).union(losers[key] ?? []).sorted()
    if let before, before.name != member {
      losers[key, default: []].insert(before.name)
    } else if before == nil || isKnown {
      waiters[key] = nil
    }
    return .claimed(generation: generation, before: before?.name, waiting: waiting)
  }
}

/// A member's connection to the engine, as the member has last seen it.
private struct MemoryConnection {
  private var isUp = false
  private var isolations = 0

  /// Whether it is there, for each time that this has changed since the last call.
  mutating func changes(of member: String, _ engine: MemoryEngine) -> [Bool] {
    let (wasUp, wasCut) = (isUp, isolations != engine.isolations[member, default: 0])
    (isUp, isolations) = (!engine.isolated.contains(member), engine.isolations[member, default: 0])
    if wasUp, isUp { return wasCut ? [false, true] : [] }
    return wasUp == isUp ? [] : [isUp]
  }
}

/// A member's way to the bus of a `MemoryEngine`.
public final class MemoryBus: Bus {
  private let engine: MemoryEngine
  private let member: String
  private var connection = MemoryConnection()

  public init(_ engine: MemoryEngine, member: String) {
    self.engine = engine
    self.member = member
  }

  public var isUp: Bool { !engine.isolated.contains(member) }
  /// Nodes that the member reports as not heard; and those that others have reported, by their names.
  public var unheard: UInt64 = 0
  public var noted: [String: UInt64] = [:]

  public func note(unheard nodes: UInt64, by member: String) { noted[member] = nodes }

  public func send(_ frame: [UInt8], to target: String, lane: Lane) -> Bool {
    engine.send(frame, from: member, to: target, lane: lane)
  }

  public func takeEvents(into events: inout [BusEvent]) {
    for isUp in connection.changes(of: member, engine) {
      events.append(isUp ? .up(node: "memory") : .down(node: "memory", "isolated"))
    }
    events += engine.take(member)
  }
}

/// A member's way to the ledger of a `MemoryEngine`: answers come with the next look.
public final class MemoryLedger: Ledger {
  private let engine: MemoryEngine
  private let member: String
  private var connection = MemoryConnection()
  private var answers: [LedgerEvent] = []

  public init(_ engine: MemoryEngine, member: String) {
    self.engine = engine
    self.member = member
  }

  public var isUp: Bool { !engine.isolated.contains(member) }

  public func ask(_ question: LedgerQuestion, ticket: UInt64) -> Bool {
    guard isUp, !engine.busy.contains(member) else { return false }
    engine.questions += 1
    let isDeaf = engine.deaf.contains(member)
    let isLost = isDeaf || engine.chance(engine.faults.unknown)
    let isFull = engine.full.contains(member) && engine.writes(question)
    let isSkipped = isLost && !isDeaf && engine.chance(0.5)
    let answer = isFull ? LedgerAnswer.refused("OOM") : isSkipped ? .unknown : engine.answer(question)
    if let trace = engine.trace, !question.isRenewal {
      trace("\(member) asks \(question): \(answer)\(isLost ? " (lost)" : "")")
    }
    answers.append(.answer(ticket: ticket, isLost ? .unknown : answer))
    return true
  }

  public func takeEvents(into events: inout [LedgerEvent]) {
    for isUp in connection.changes(of: member, engine) {
      events.append(isUp ? .up(node: "memory", warnings: []) : .down(node: "memory", "isolated"))
    }
    events += answers
    answers.removeAll()
  }
}

extension LedgerQuestion {
  fileprivate var isRenewal: Bool {
    switch self {
    case .renew, .members: true
    case .incarnation, .leave, .claim, .locate, .owner, .release, .concede: false
    }
  }
}
