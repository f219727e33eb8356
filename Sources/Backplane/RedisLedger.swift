// The ledger in Redis or Valkey, by scripts (RedisScripts.swift) on one connection.
//
// Its settings are checked before use: a ledger that may evict keys, is too old for ACL rules, or is a replica is
// refused with a text for the operator. Settings of durability cause warnings: the ledger may be one node, since the
// hubs restore what it forgets. With sentinels (Sentinels.swift), the master is looked for again whenever the
// connection ends, they name another one, or the node becomes a replica.

/// The ledger on one node of Redis or Valkey. Only the thread of its event loop uses it.
public final class RedisLedger: Ledger {
  private enum Check: UInt64, CaseIterable {
    case version = 1
    case policy
    case appendOnly
    case appendSync
    case role
  }

  /// Tickets of the checks, above those of questions, and that of the question for the node's memory.
  private static let checkTickets: UInt64 = 1 << 63
  private static let memoryTicket = checkTickets | 1 << 62
  /// How long the ledger keeps an owner that does not claim again, the claim of the hub that is to begin a trip, and a
  /// waiting member, in ms.
  private static let ownerTime = 7 * 86_400_000
  private static let beginningTime = 3_600_000
  private static let waitTime = 86_400_000

  private let links: RedisLinks
  private let link: LinkID
  private let address: LedgerAddress
  private var sentinels: Sentinels?
  private var questions: [UInt64: LedgerQuestion] = [:]
  private var unchecked: Set<UInt64> = []
  private var warnings: [String] = []
  private var isAppending = true
  private var refusal: String?
  /// When the node's memory was asked for (uptime, ns).
  private var memoryAskedAt = Int64.min / 2
  public private(set) var isUp = false

  /// The ledger at an address; `role` has the credentials, and `sentinelRole` those of sentinels.
  public init(
    _ links: RedisLinks, at address: LedgerAddress, role: RedisRole, sentinelRole: RedisRole = RedisRole()
  ) {
    self.links = links
    self.address = address
    var scripted = role
    scripted.scripts = RedisScripts.all
    switch address {
    case .node(let node): link = links.add(scripted, to: node)
    case .sentinels(let sentinels, let name):
      link = links.add(scripted, to: nil)
      self.sentinels = Sentinels(links, sentinels, name: name, role: sentinelRole)
    }
  }

  /// The node's name for operators.
  private var node: String { links.node(link).map { "\($0)" } ?? "\(address)" }

  /// Uses the node that the sentinels call the master.
  private func follow(_ events: inout [LedgerEvent]) {
    guard sentinels != nil else { return }
    let fault = sentinels?.turn(isUrgent: !isUp)
    if let fault, !isUp { events.append(.down(node: node, fault)) }
    let known = links.node(link)
    if let master = sentinels?.master(orElse: known), master != known { links.move(link, to: master) }
  }

  /// Sends a question's script; its answer is an event with this ticket. False where the ledger is not usable, or its
  /// connection is at a limit: nothing was sent.
  public func ask(_ question: LedgerQuestion, ticket: UInt64) -> Bool {
    guard isUp, links.submit(RedisLedger.command(question), ticket: ticket, to: link) else { return false }
    questions[ticket] = question
    return true
  }

  /// Appends the answers and the changes of the ledger's state since the last call. Once a turn, after
  /// `RedisLinks.tick`.
  public func takeEvents(into events: inout [LedgerEvent]) {
    follow(&events)
    askMemory()
    for event in links.takeEvents(of: link) {
      switch event {
      case .ready: check()
      case .reply(let ticket, let value):
        if ticket == RedisLedger.memoryTicket {
          if let memory = EngineCheck.memory(value) { events.append(.memory(memory)) }
        } else if ticket & RedisLedger.checkTickets != 0 {
          take(check: ticket, value, &events)
        } else if let question = questions.removeValue(forKey: ticket) {
          events.append(.answer(ticket: ticket, RedisLedger.answer(value, to: question)))
          if case .error(let text) = value, text.hasPrefix("READONLY") { links.refuse(link, EngineCheck.isReplica) }
        }
      case .unknown(let ticket):
        if questions.removeValue(forKey: ticket) != nil { events.append(.answer(ticket: ticket, .unknown)) }
      case .message: break
      case .lost(let fault):
        isUp = false
        unchecked.removeAll()
        events.append(.down(node: node, "\(fault)"))
      }
    }
  }

  /// Asks for the node's memory again after a while: one that is full refuses claims and leases, of all hubs.
  private func askMemory() {
    guard isUp, links.now - memoryAskedAt >= links.limits.memoryTime else { return }
    memoryAskedAt = links.now
    _ = links.submit(.words([Array("INFO".utf8), Array("memory".utf8)]), ticket: RedisLedger.memoryTicket, to: link)
  }

  // MARK: Settings

  private func check() {
    (warnings, refusal) = ([], nil)
    for check in Check.allCases {
      let words: [String] =
        switch check {
        case .version: ["INFO", "server"]
        case .policy: ["CONFIG", "GET", "maxmemory-policy"]
        case .appendOnly: ["CONFIG", "GET", "appendonly"]
        case .appendSync: ["CONFIG", "GET", "appendfsync"]
        case .role: ["ROLE"]
        }
      let ticket = RedisLedger.checkTickets | check.rawValue
      if links.submit(.words(words.map { Array($0.utf8) }), ticket: ticket, to: link) { unchecked.insert(ticket) }
    }
  }

  private func take(check ticket: UInt64, _ value: RESPValue, _ events: inout [LedgerEvent]) {
    guard unchecked.remove(ticket) != nil, let check = Check(rawValue: ticket & ~RedisLedger.checkTickets) else {
      return
    }
    switch check {
    case .version: refusal = EngineCheck.version(value) ?? refusal
    case .policy:
      let finding = EngineCheck.policy(value)
      refusal = finding.refusal ?? refusal
      if let warning = finding.warning { warnings.append(warning) }
    case .appendOnly:
      let warning = EngineCheck.appendOnly(value)
      if let warning { warnings.append(warning) }
      isAppending = warning == nil
    case .appendSync:
      if isAppending, let warning = EngineCheck.appendSync(value) { warnings.append(warning) }
    case .role:
      let finding = EngineCheck.role(value)
      if let warning = finding.warning { warnings.append(warning) }
      // It may become the master, or another one may: to be tried again.
      if finding.isReplica { return links.refuse(link, EngineCheck.isReplica) }
    }
    guard unchecked.isEmpty else { return }
    // It is checked again, since a setting can be changed.
    if let refusal { return links.refuse(link, refusal) }
    isUp = true
    events.append(.up(node: node, warnings: warnings))
  }

  // MARK: Questions and answers

  private static func command(_ question: LedgerQuestion) -> RedisCommand {
    func script(_ script: RedisScripts.Script, _ keys: [String], _ arguments: [String] = []) -> RedisCommand {
      .script(
        script.rawValue, keys: keys.map { Array("lh:\($0)".utf8) }, arguments: arguments.map { Array($0.utf8) })
    }
    switch question {
    case .incarnation: return script(.incarnation, ["incarnation"])
    case .renew(let member, let lease):
      return script(
        .renew, ["m:\(member.name)", "members", "incarnation", "s:\(member.name)"],
        [member.name, "\(member.incarnation)", member.text, "\(lease)", member.status?.text ?? ""])
    case .leave(let name, let incarnation): return script(.leave, ["m:\(name)", "members"], [name, "\(incarnation)"])
    case .members: return script(.members, ["members"], ["lh:m:", "lh:s:"])
    case .claim(let key, let member, let known, let seizes, let attempt):
      let time = key.hasPrefix("i:") ? beginningTime : ownerTime
      return script(
        .claim, ["o:\(key)", "w:\(key)"], [member, "\(known)", seizes ? "1" : "0", "\(time)", "\(attempt)"])
    case .locate(let key, let asker): return script(.locate, ["o:\(key)", "w:\(key)"], [asker, "\(waitTime)"])
    case .owner(let key): return .words(["HGET", "lh:o:\(key)", "owner"].map { Array($0.utf8) })
    case .release(let key, let member): return script(.release, ["o:\(key)", "w:\(key)"], [member])
    case .concede(let key, let member): return .words(["SREM", "lh:w:\(key)", "from:\(member)"].map { Array($0.utf8) })
    }
  }

  private static func answer(_ value: RESPValue, to question: LedgerQuestion) -> LedgerAnswer {
    if case .error(let text) = value { return .refused(text) }
    let strange = LedgerAnswer.refused("an answer that makes no sense: \(value)")
    switch question {
    case .incarnation: return value.integer.map { .incarnation(UInt64(clamping: $0)) } ?? strange
    case .renew:
      guard let other = value.integer else { return strange }
      return other > 0 ? .superseded(by: UInt64(other)) : .renewed(wasKnown: other == 0)
    case .leave, .release, .concede: return .done
    case .members: return members(value) ?? strange
    case .claim: return claimed(value) ?? strange
    case .locate, .owner: return .owner(value.text)
    }
  }

  /// Reads the members. Entries that are no member's record, written by others, are left out.
  private static func members(_ value: RESPValue) -> LedgerAnswer? {
    guard case .array(let parts) = value, parts.count % 3 == 0 else { return nil }
    var found: [MemberRecord] = []
    for index in stride(from: 0, to: parts.count, by: 3) {
      guard let name = parts[index].text, let text = parts[index + 1].text,
        var member = MemberRecord(name: name, text: text)
      else { continue }
      member.status = parts[index + 2].text.flatMap(MemberStatus.init)
      found.append(member)
    }
    return .members(found.sorted { $0.name < $1.name })
  }

  private static func claimed(_ value: RESPValue) -> LedgerAnswer? {
    guard case .array(let parts) = value, parts.count >= 3, let isClaimed = parts[0].integer,
      let owner = parts[1].text, let generation = parts[2].integer
    else { return nil }
    guard isClaimed == 1 else { return .held(by: owner, generation: UInt64(clamping: generation)) }
    return .claimed(
      generation: UInt64(clamping: generation), before: owner.isEmpty ? nil : owner,
      waiting: parts[3...].compactMap(\.text).sorted())
  }
}

/// Checks of the engine's version and settings.
enum EngineCheck {
  /// Why this version cannot be used; nil where it can.
  static func version(_ info: RESPValue) -> String? {
    guard let text = info.text else { return nil }  // without permission: missing features show soon
    guard let version = member("redis_version", of: text) else { return nil }
    let numbers = version.split(separator: ".").prefix(2).compactMap { Int($0) }
    guard numbers.count == 2, numbers.lexicographicallyPrecedes([6, 2]) else { return nil }
    return "redis_version:\(version): 6.2 or newer is needed, for ACL rules of channels"
  }

  /// Nil where the node does not say.
  static func memory(_ info: RESPValue) -> LedgerMemory? {
    guard let text = info.text, let used = member("used_memory", of: text).flatMap({ UInt64($0) }) else { return nil }
    return LedgerMemory(used: used, limit: member("maxmemory", of: text).flatMap { UInt64($0) } ?? 0)
  }

  /// A member of `INFO`.
  private static func member(_ name: String, of info: String) -> Substring? {
    let lines = info.split(whereSeparator: \.isNewline)
    return lines.first { $0.hasPrefix("\(name):") }?.dropFirst(name.utf8.count + 1)
  }

  static func policy(_ configuration: RESPValue) -> (refusal: String?, warning: String?) {
    guard let policy = value(configuration) else {
      return (nil, "CONFIG GET is not allowed: that maxmemory-policy is noeviction cannot be checked")
    }
    guard policy != "noeviction" else { return (nil, nil) }
    return ("maxmemory-policy \(policy): it must be noeviction, or the engine drops owners and members", nil)
  }

  static let isReplica = "it is a replica: the ledger must be the master"

  static func role(_ role: RESPValue) -> (isReplica: Bool, warning: String?) {
    guard case .array(let parts) = role, let word = parts.first?.text else {
      return (false, "ROLE is not allowed: that this node is the master cannot be checked")
    }
    guard word == "master" else { return (true, nil) }
    let hasReplica = if parts.count > 2, case .array(let replicas) = parts[2] { !replicas.isEmpty } else { false }
    return (false, hasReplica ? nil : "no replica: where its disk is lost, the hubs write back what they know")
  }

  static func appendOnly(_ configuration: RESPValue) -> String? {
    value(configuration) == "no"
      ? "appendonly no: a restart of the engine forgets; the hubs write back what they know" : nil
  }

  static func appendSync(_ configuration: RESPValue) -> String? {
    guard let when = value(configuration), when != "always" else { return nil }
    return "appendfsync \(when): a crash of its machine forgets what is newest; the hubs write back what they know"
  }

  private static func value(_ configuration: RESPValue) -> String? {
    if case .array(let parts) = configuration, parts.count == 2 { parts[1].text } else { nil }
  }
}
