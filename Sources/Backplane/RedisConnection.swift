// One connection to Redis or Valkey, without its socket: bytes in, events out, time as input.
//
//     idle ─(time)→ connecting ─opened→ greeting ─(all replies good)→ ready ─lost→ idle, after a wait
//
// Commands are pipelined: replies come in the order of the commands. The greeting is AUTH (with an ACL user), the
// scripts (`SCRIPT LOAD`, whose replies are their names), and the channels to subscribe to. An engine that has
// forgotten its scripts (`NOSCRIPT`, after SCRIPT FLUSH or a fail-over) gets them again, and then the command. A
// command whose reply does not come has an unknown outcome: the connection is closed, since later replies could not be
// assigned.
// Commands that need no reply are sent behind CLIENT REPLY SKIP, where the engine's user may.
public import HubBytes

/// The purpose of a connection.
public struct RedisRole: Sendable, Equatable {
  public var user: String?
  public var password: String?
  /// Lua scripts; a command names one by its index.
  public var scripts: [String]
  /// Subscribed channels; such a connection takes no commands.
  public var channels: [String]
  /// Some of its commands need no reply: the greeting asks whether the engine can leave replies out.
  public var skipsReplies = false

  public init(user: String? = nil, password: String? = nil, scripts: [String] = [], channels: [String] = []) {
    self.user = user
    self.password = password
    self.scripts = scripts
    self.channels = channels
  }
}

/// A command, with its script if it runs one.
public enum RedisCommand: Sendable, Equatable {
  case words([[UInt8]])
  /// `EVALSHA` of a script of the role, with its keys and arguments.
  case script(Int, keys: [[UInt8]], arguments: [[UInt8]])
}

/// An event for the connection's owner.
public enum RedisEvent: Sendable, Equatable {
  /// The greeting is complete: it takes commands, or listens.
  case ready
  case reply(ticket: UInt64, RESPValue)
  /// The connection ended before the reply: the command may or may not have been carried out.
  case unknown(ticket: UInt64)
  /// A message published on a channel.
  case message(channel: String, [UInt8])
  /// The connection has ended, or failed.
  case lost(RedisFault)
}

/// Why a connection ended.
public enum RedisFault: Error, Sendable, Equatable, CustomStringConvertible {
  case closed(String)
  case protocolError(RESPError)
  /// The greeting was refused, such as `WRONGPASS …`, or the engine is unsuitable.
  case refused(String)
  /// A reply without a command.
  case unexpectedReply
  case replyTime

  /// What went wrong, in words for operators.
  public var description: String {
    switch self {
    case .closed(let reason), .refused(let reason): reason
    case .protocolError(let error): "not what an engine says: \(error)"
    case .unexpectedReply: "a reply to no command"
    case .replyTime: "no reply in time"
    }
  }
}

/// One connection to Redis or Valkey as a state machine: its greeting, commands with their replies, messages of its
/// channels, pings, and the wait before it connects again. All times are uptime in ns.
public struct RedisConnection: ~Copyable {
  /// How far the connection is.
  public enum Phase: Sendable, Equatable {
    /// Waits to be connected until that time (uptime, ns).
    case idle(until: Int64)
    case connecting
    case greeting
    case ready
  }

  private enum Expected {
    case greeting
    case script(Int)
    case subscribed
    case ping
    /// The reply to `CLIENT REPLY ON`, which shows whether replies can be skipped.
    case skipping
    case command(ticket: UInt64, RedisCommand, isRepeated: Bool)
  }

  public let role: RedisRole
  private let limits: BackplaneLimits
  private var reader: RESPReader
  private var random: UInt64
  public private(set) var phase: Phase
  private var expected: [Expected] = []
  private var nextExpected = 0
  private var scriptDigests: [[UInt8]?]
  /// Whether the engine skips replies on request.
  private var maySkip = false
  /// When the oldest reply is due, and when the engine was last heard (uptime, ns).
  private var deadline = Int64.max
  private var heard: Int64 = 0
  private var backOff: Int64 = 0
  private var replies: [RESPValue] = []
  /// Bytes for the engine; the socket's owner takes them (`takeOutput`).
  private var output = ByteBuffer()
  public private(set) var events: [RedisEvent] = []

  /// `seed` spreads the attempts of hubs that lost one engine together. The first attempt is due at once.
  public init(_ role: RedisRole, limits: BackplaneLimits = BackplaneLimits(), seed: UInt64) {
    self.role = role
    self.limits = limits
    reader = RESPReader(limits)
    random = seed
    phase = .idle(until: .min)
    scriptDigests = role.scripts.map { _ in nil }
  }

  // MARK: The socket

  /// Whether to connect now; then call `connecting`.
  public func wantsToConnect(now: Int64) -> Bool {
    if case .idle(let time) = phase { return time <= now }
    return false
  }

  /// The next attempt, to another node, is due at once.
  mutating func hurry() {
    if case .idle = phase { (phase, backOff) = (.idle(until: .min), 0) }
  }

  /// A connection is being made: it fails if it is not open within `BackplaneLimits.replyTime` (uptime, ns).
  public mutating func connecting(now: Int64) {
    phase = .connecting
    deadline = now + limits.replyTime
  }

  /// The connection is open: sends the greeting.
  public mutating func opened(now: Int64) {
    phase = .greeting
    reader = RESPReader(limits)
    heard = now
    deadline = now + limits.replyTime
    if let password = role.password {
      send([Array("AUTH".utf8)] + [role.user, password].compactMap { $0.map { Array($0.utf8) } }, .greeting)
    }
    for (index, script) in role.scripts.enumerated() { load(script, .script(index)) }
    maySkip = false
    if role.skipsReplies { send(["CLIENT".utf8, "REPLY".utf8, "ON".utf8].map { Array($0) }, .skipping) }
    for channel in role.channels { send(["SUBSCRIBE".utf8, channel.utf8].map { Array($0) }, .subscribed) }
    if nextExpected == expected.count { send([Array("PING".utf8)], .greeting) }
  }

  /// Takes bytes. False: the connection is unusable and must be closed; `lost` was emitted.
  public mutating func received(_ bytes: UnsafeRawBufferPointer, now: Int64) -> Bool {
    heard = now
    do throws(RESPError) {
      try unsafe reader.read(bytes, into: &replies)
    } catch {
      takeReplies(now: now)
      if case .idle = phase { return false }
      lost(.protocolError(error), now: now)
      return false
    }
    takeReplies(now: now)
    if case .idle = phase { return false }
    return true
  }

  /// The connection has ended: commands without a reply are unknown, and the next attempt is due after a wait.
  public mutating func lost(_ fault: RedisFault, now: Int64) {
    if case .idle = phase { return }
    for entry in expected[nextExpected...] {
      if case .command(let ticket, _, _) = entry { events.append(.unknown(ticket: ticket)) }
    }
    expected.removeAll()
    nextExpected = 0
    output.removeAll(keepingAtMost: 65_536)
    replies.removeAll()
    deadline = .max
    backOff = min(max(backOff * 2, limits.firstBackOff), limits.longestBackOff)
    if phase == .ready {
      // An engine with wrong settings is not fixed at once.
      if case .refused = fault { backOff = limits.longestBackOff } else { backOff = limits.firstBackOff }
    }
    phase = .idle(until: now + backOff + Int64(Double(backOff) * limits.backOffJitter * unit()))
    events.append(.lost(fault))
  }

  /// Handles timeouts. False: the connection is unusable and must be closed; `lost` was emitted.
  public mutating func tick(now: Int64) -> Bool {
    switch phase {
    case .idle: return true
    case .connecting, .greeting: break
    case .ready:
      let isQuiet = now - heard >= pingTime && nextExpected == expected.count
      if isQuiet { send([Array("PING".utf8)], .ping, now: now) }
    }
    guard now >= deadline else { return true }
    lost(.replyTime, now: now)
    return false
  }

  /// When `tick` is due next (uptime, ns).
  public var nextTick: Int64 {
    switch phase {
    case .idle(let time): time
    case .connecting, .greeting: deadline
    case .ready: nextExpected == expected.count ? heard + pingTime : deadline
    }
  }

  private var pingTime: Int64 { role.channels.isEmpty ? limits.pingTime : limits.listenerPingTime }

  /// Moves what is to be sent into `buffer`.
  public mutating func takeOutput(into buffer: inout ByteBuffer) {
    unsafe output.withBytes { unsafe buffer.append($0) }
    output.removeAll(keepingAtMost: 65_536)
  }

  /// Whether there are bytes for `takeOutput`.
  public var hasOutput: Bool { !output.isEmpty }

  /// Commands without a reply, and output not taken (`takeOutput`).
  var waiting: (commands: Int, bytes: Int) { (expected.count - nextExpected, output.count) }

  /// The events since the last call, in order; none of them is given again.
  public mutating func takeEvents() -> [RedisEvent] {
    defer { events.removeAll() }
    return events
  }

  // MARK: Commands

  /// Whether a further command of so many bytes is within the limits.
  func hasRoom(for bytes: Int, unsent: Int) -> Bool {
    expected.count - nextExpected < limits.pendingCommands && output.count + unsent + bytes <= limits.unsentBytes
  }

  /// Sends a command whose reply has this ticket. False where the connection is not ready, or at a limit: nothing was
  /// sent. `unsent`: bytes in the socket's buffer. `needsReply`: false where the engine need not give one; then none
  /// comes if the role skips replies and the engine allows that.
  public mutating func submit(
    _ command: RedisCommand, ticket: UInt64, needsReply: Bool = true, unsent: Int = 0, now: Int64
  ) -> Bool {
    guard phase == .ready, role.channels.isEmpty, let words = words(of: command),
      hasRoom(for: RESPWriter.size(of: words), unsent: unsent)
    else { return false }
    if maySkip, !needsReply {
      output.append("*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n")
      RESPWriter.write(words, into: &output)
      return true
    }
    send(words, .command(ticket: ticket, command, isRepeated: false), now: now)
    return true
  }

  private func words(of command: RedisCommand) -> [[UInt8]]? {
    switch command {
    case .words(let words): return words
    case .script(let index, let keys, let arguments):
      guard let name = scriptDigests[index] else { return nil }
      return [Array("EVALSHA".utf8), name, Array("\(keys.count)".utf8)] + keys + arguments
    }
  }

  private mutating func send(_ words: [[UInt8]], _ reply: Expected, now: Int64? = nil) {
    if let now, nextExpected == expected.count { deadline = now + limits.replyTime }
    RESPWriter.write(words, into: &output)
    expected.append(reply)
  }

  private mutating func load(_ script: String, _ reply: Expected) {
    send(["SCRIPT".utf8, "LOAD".utf8, script.utf8].map { Array($0) }, reply)
  }

  // MARK: Replies

  private mutating func takeReplies(now: Int64) {
    let batch = replies
    replies.removeAll(keepingCapacity: true)
    for reply in batch {
      if case .idle = phase { return }
      if !role.channels.isEmpty, takePublished(reply) { continue }
      take(reply, now: now)
    }
  }

  /// A message of a channel; false for any other reply.
  private mutating func takePublished(_ reply: RESPValue) -> Bool {
    guard case .array(let parts) = reply, parts.count == 3, parts[0].text == "message", let channel = parts[1].text,
      let payload = parts[2].bytes
    else { return false }
    events.append(.message(channel: channel, payload))
    return true
  }

  private mutating func take(_ reply: RESPValue, now: Int64) {
    guard nextExpected < expected.count else { return lost(.unexpectedReply, now: now) }
    let entry = expected[nextExpected]
    nextExpected += 1
    if nextExpected == expected.count || nextExpected >= 4096 {
      expected.removeFirst(nextExpected)
      nextExpected = 0
    }
    deadline = expected.isEmpty ? .max : now + limits.replyTime
    switch entry {
    case .ping: break
    case .command(let ticket, let command, let isRepeated):
      if case .error(let text) = reply, text.hasPrefix("NOSCRIPT"), !isRepeated, repeatScript(command, ticket, now) {
        return
      }
      events.append(.reply(ticket: ticket, reply))
    case .greeting, .subscribed: takeGreeting(reply, now: now)
    case .skipping:
      guard case .error(let text) = reply else {
        maySkip = true
        return endGreeting()
      }
      // If the user may not do that, or the engine has no such command, replies come, which costs a little.
      let isOnlyThat = text.hasPrefix("NOPERM") || text.lowercased().hasPrefix("err unknown")
      if isOnlyThat { endGreeting() } else { lost(.refused(text), now: now) }
    case .script(let index):
      scriptDigests[index] = reply.bytes
      takeGreeting(reply, now: now)
    }
  }

  /// A reply that must not be an error; after the last one of them the connection is ready.
  private mutating func takeGreeting(_ reply: RESPValue, now: Int64) {
    if case .error(let text) = reply { return lost(.refused(text), now: now) }
    endGreeting()
  }

  private mutating func endGreeting() {
    guard phase == .greeting, nextExpected == expected.count else { return }
    phase = .ready
    backOff = 0
    events.append(.ready)
  }

  /// The engine has forgotten a script: sends it again, and then the command.
  private mutating func repeatScript(_ command: RedisCommand, _ ticket: UInt64, _ now: Int64) -> Bool {
    guard case .script(let index, _, _) = command, let words = words(of: command) else { return false }
    deadline = now + limits.replyTime
    load(role.scripts[index], .script(index))
    send(words, .command(ticket: ticket, command, isRepeated: true))
    return true
  }

  private mutating func unit() -> Double { Mix64.unit(Mix64.next(&random)) }
}
