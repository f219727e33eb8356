// A connection to the engine as a state machine: greeting, pipelining, scripts, time, limits, what is lost.
import HubBackplane
import HubBytes
import HubTestSupport
import Testing

/// A connection with the engine's side played by hand.
private final class Bench {
  private var connection: RedisConnection
  var now: Int64 = 1_000_000_000

  init(_ role: RedisRole = RedisRole(), _ limits: BackplaneLimits = BackplaneLimits()) {
    connection = RedisConnection(role, limits: limits, seed: 5)
  }

  /// The commands that were sent since the last time.
  func sent() -> [[String]] {
    var buffer = ByteBuffer()
    connection.takeOutput(into: &buffer)
    var reader = RESPReader()
    var values: [RESPValue] = []
    do throws(RESPError) {
      try buffer.withBytes { (bytes) throws(RESPError) in try reader.read(bytes, into: &values) }
    } catch {
      Issue.record("\(error)")
    }
    return values.map { value in
      if case .array(let words) = value { words.map { $0.text ?? "?" } } else { ["?"] }
    }
  }

  @discardableResult
  func reply(_ text: String) -> Bool {
    Array(text.utf8).withUnsafeBytes { connection.received($0, now: now) }
  }

  /// Connected and greeted.
  func open() {
    connecting()
    opened()
    _ = sent()
    reply("+PONG\r\n")
    #expect(takeEvents() == [.ready])
  }

  func submit(_ words: String..., ticket: UInt64) -> Bool {
    submit(.words(words.map { Array($0.utf8) }), ticket: ticket)
  }

  func submit(_ command: RedisCommand, ticket: UInt64, needsReply: Bool = true, unsent: Int = 0) -> Bool {
    connection.submit(command, ticket: ticket, needsReply: needsReply, unsent: unsent, now: now)
  }

  func connecting() { connection.connecting(now: now) }
  func opened() { connection.opened(now: now) }
  func lost(_ fault: RedisFault) { connection.lost(fault, now: now) }
  func tick() -> Bool { connection.tick(now: now) }
  func takeEvents() -> [RedisEvent] { connection.takeEvents() }
  func wantsToConnect(after nanoseconds: Int64 = 0) -> Bool { connection.wantsToConnect(now: now + nanoseconds) }
  /// From now to the next look at the clock.
  var wait: Int64 { connection.nextTick - now }
}

@Suite struct RedisConnectionTests {
  @Test("The greeting names the ACL user, loads the scripts, and only then the connection is ready")
  func greeting() {
    let bench = Bench(RedisRole(user: "hub", password: "secret", scripts: ["return 1", "return 2"]))
    #expect(bench.wantsToConnect())
    bench.connecting()
    #expect(!bench.wantsToConnect())
    bench.opened()
    #expect(
      bench.sent() == [
        ["AUTH", "hub", "secret"], ["SCRIPT", "LOAD", "return 1"], ["SCRIPT", "LOAD", "return 2"],
      ])
    bench.reply("+OK\r\n$3\r\naaa\r\n")
    #expect(bench.takeEvents() == [])
    #expect(!bench.submit("PING", ticket: 1))
    bench.reply("$3\r\nbbb\r\n")
    #expect(bench.takeEvents() == [.ready])
    #expect(bench.submit(.script(1, keys: [[65]], arguments: [[66], []]), ticket: 2))
    #expect(bench.sent() == [["EVALSHA", "bbb", "1", "A", "B", ""]])
  }

  @Test("A greeting that is refused ends the connection with the engine's words; a password alone is AUTH's old form")
  func refusedGreeting() {
    let bench = Bench(RedisRole(password: "wrong"))
    bench.connecting()
    bench.opened()
    #expect(bench.sent() == [["AUTH", "wrong"]])
    #expect(!bench.reply("-WRONGPASS invalid username-password pair\r\n"))
    #expect(
      bench.takeEvents() == [.lost(.refused("WRONGPASS invalid username-password pair"))])
    #expect(!bench.wantsToConnect())
  }

  @Test("Replies of pipelined commands find their tickets in order, whatever they are and however they are cut")
  func pipelining() {
    let bench = Bench()
    bench.open()
    for ticket in 1...3 { #expect(bench.submit("GET", "k", ticket: UInt64(ticket))) }
    #expect(bench.sent().count == 3)
    bench.reply("$1\r\na\r\n-ERR no\r")
    #expect(bench.takeEvents() == [.reply(ticket: 1, .bulk([97]))])
    #expect(bench.submit("GET", "k", ticket: 4))
    bench.reply("\n*1\r\n:5\r\n$-1\r\n")
    #expect(
      bench.takeEvents() == [
        .reply(ticket: 2, .error("ERR no")), .reply(ticket: 3, .array([.number(5)])), .reply(ticket: 4, .null),
      ])
  }

  @Test("A script that the engine has forgotten is loaded again and the command repeated, once")
  func noScript() {
    let bench = Bench(RedisRole(scripts: ["return 7"]))
    bench.connecting()
    bench.opened()
    _ = bench.sent()
    bench.reply("$2\r\nab\r\n")
    _ = bench.takeEvents()
    let command = RedisCommand.script(0, keys: [], arguments: [])
    #expect(bench.submit(command, ticket: 9))
    #expect(bench.submit("GET", "k", ticket: 10))
    _ = bench.sent()
    bench.reply("-NOSCRIPT No matching script.\r\n+x\r\n")
    #expect(bench.takeEvents() == [.reply(ticket: 10, .status("x"))])
    #expect(bench.sent() == [["SCRIPT", "LOAD", "return 7"], ["EVALSHA", "ab", "0"]])
    bench.reply("$2\r\nab\r\n:7\r\n")
    #expect(bench.takeEvents() == [.reply(ticket: 9, .number(7))])
    #expect(bench.submit(command, ticket: 11))
    bench.reply("-NOSCRIPT x\r\n$2\r\nab\r\n-NOSCRIPT again\r\n")
    #expect(bench.takeEvents() == [.reply(ticket: 11, .error("NOSCRIPT again"))])
    // It says that, and nothing more.
    #expect(bench.submit(command, ticket: 12))
    bench.reply("-NOSCRIPT x\r\n")
    bench.now += BackplaneLimits().replyTime
    #expect(bench.wait == 0 && !bench.tick())
  }

  @Test("A listening connection distinguishes messages from replies, and takes no commands")
  func listening() {
    let bench = Bench(RedisRole(channels: ["a", "b"]))
    bench.connecting()
    bench.opened()
    #expect(bench.sent() == [["SUBSCRIBE", "a"], ["SUBSCRIBE", "b"]])
    bench.reply("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n")
    #expect(bench.takeEvents() == [.message(channel: "a", Array("hi".utf8))])
    bench.reply("*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n")
    #expect(bench.takeEvents() == [.ready])
    #expect(!bench.submit("GET", "k", ticket: 1))
    #expect(bench.wait == BackplaneLimits().listenerPingTime)
    bench.now += BackplaneLimits().listenerPingTime
    #expect(bench.tick())
    #expect(bench.sent() == [["PING"]])
    bench.reply("*2\r\n$4\r\npong\r\n$0\r\n\r\n")
    bench.now += BackplaneLimits().replyTime
    #expect(bench.tick())
    #expect(bench.takeEvents() == [])
  }

  @Test("A listening connection that a network has cut off silently ends within 1.25 s of the last word on it")
  func silence() {
    let bench = Bench(RedisRole(channels: ["a"]))
    bench.connecting()
    bench.opened()
    bench.reply("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
    _ = bench.takeEvents()
    let end = bench.now + 1_250_000_000
    var looks = 0
    while bench.tick() {
      looks += 1
      bench.now += bench.wait
    }
    #expect(bench.now == end && looks == 2 && bench.takeEvents() == [.lost(.replyTime)])
  }

  @Test("An engine that refuses the connection itself in that reply is refused, not taken for one that cannot skip")
  func refusedWhileAsking() {
    var role = RedisRole()
    role.skipsReplies = true
    let bench = Bench(role)
    bench.connecting()
    bench.opened()
    bench.reply("-ERR max number of clients reached\r\n")
    #expect(bench.takeEvents() == [.lost(.refused("ERR max number of clients reached"))])
  }

  /// A connection that was asked whether it may skip replies, and has this answer.
  private func makeSkipping(_ answer: String) -> Bench {
    var role = RedisRole()
    role.skipsReplies = true
    let bench = Bench(role)
    bench.connecting()
    bench.opened()
    #expect(bench.sent() == [["CLIENT", "REPLY", "ON"]])
    bench.reply(answer)
    #expect(bench.takeEvents() == [.ready])
    return bench
  }

  private let publish = RedisCommand.words(["PUBLISH", "c", "x"].map { Array($0.utf8) })

  @Test("A command that needs no reply has it skipped, and is not waited for; the others' replies find their tickets")
  func skippedReplies() {
    let bench = makeSkipping("+OK\r\n")
    let rest = bench.wait
    #expect(bench.submit(publish, ticket: 1, needsReply: false))
    #expect(bench.sent() == [["CLIENT", "REPLY", "SKIP"], ["PUBLISH", "c", "x"]])
    #expect(bench.wait == rest)
    #expect(bench.submit(publish, ticket: 2))
    #expect(bench.submit(publish, ticket: 3, needsReply: false))
    #expect(bench.submit(publish, ticket: 4))
    #expect(bench.sent().map { $0[0] } == ["PUBLISH", "CLIENT", "PUBLISH", "PUBLISH"])
    bench.reply(":1\r\n:2\r\n")
    #expect(bench.takeEvents() == [.reply(ticket: 2, .number(1)), .reply(ticket: 4, .number(2))])
  }

  @Test("Where the engine does not allow that replies are skipped, they come")
  func unskippedReplies() {
    let bench = makeSkipping("-NOPERM this user has no permissions to run the 'client|reply' command\r\n")
    #expect(bench.submit(publish, ticket: 1, needsReply: false))
    #expect(bench.sent() == [["PUBLISH", "c", "x"]])
    bench.reply(":1\r\n")
    #expect(bench.takeEvents() == [.reply(ticket: 1, .number(1))])
    // The next connection asks anew.
    bench.lost(.closed("reset"))
    _ = bench.takeEvents()
    bench.connecting()
    bench.opened()
    bench.reply("+OK\r\n")
    #expect(bench.takeEvents() == [.ready] && bench.submit(publish, ticket: 2, needsReply: false))
    #expect(bench.sent().suffix(2).map { $0[0] } == ["CLIENT", "PUBLISH"])
  }

  @Test("Without a reply in time the connection ends, and every command without one has an unknown outcome")
  func replyTime() {
    let bench = Bench()
    bench.open()
    #expect(bench.submit("GET", "k", ticket: 1))
    #expect(bench.submit("GET", "k", ticket: 2))
    bench.now += BackplaneLimits().replyTime - 1
    #expect(bench.tick())
    bench.reply("+a\r\n")
    bench.now += BackplaneLimits().replyTime - 1
    #expect(bench.tick())
    #expect(bench.wait == 1)
    bench.now += 1
    #expect(!bench.tick())
    #expect(
      bench.takeEvents() == [.reply(ticket: 1, .status("a")), .unknown(ticket: 2), .lost(.replyTime)])
  }

  @Test("Bytes that drip in without completing a reply do not put the end off")
  func drippingReply() {
    let bench = Bench()
    bench.open()
    #expect(bench.submit("GET", "k", ticket: 1))
    for byte in ["$", "9", "\r"] {
      bench.now += BackplaneLimits().replyTime / 3 - 1
      bench.reply(byte)
      #expect(bench.tick())
    }
    bench.now += 4
    #expect(!bench.tick())
  }

  @Test("What is no reply, and a reply to nothing, end the connection")
  func strangeReplies() {
    let bench = Bench()
    bench.open()
    #expect(!bench.reply("+who asked?\r\n"))
    #expect(bench.takeEvents() == [.lost(.unexpectedReply)])
    let other = Bench()
    other.open()
    #expect(other.submit("GET", "k", ticket: 3))
    #expect(!other.reply("+a\r\nHTTP/1.1"))
    #expect(
      other.takeEvents() == [
        .reply(ticket: 3, .status("a")), .lost(.protocolError(.type(UInt8(ascii: "H")))),
      ])
  }

  @Test("Waits between attempts double up to the longest, with chance on top, and begin anew after a good connection")
  func backOff() {
    var limits = BackplaneLimits()
    (limits.firstBackOff, limits.longestBackOff, limits.backOffJitter) = (100, 1000, 0.5)
    let bench = Bench(RedisRole(), limits)
    for expected in [100, 200, 400, 800, 1000, 1000] as [Int64] {
      bench.connecting()
      bench.lost(.closed("refused"))
      let wait = bench.wait
      #expect(wait >= expected && wait <= expected + expected / 2)
      #expect(!bench.wantsToConnect(after: expected - 1))
      bench.now += wait
      #expect(bench.wantsToConnect())
    }
    _ = bench.takeEvents()
    bench.open()
    bench.lost(.closed("reset"))
    #expect(bench.wait <= 150)
  }

  @Test("A connection that is not made in time is given up")
  func connectTime() {
    let bench = Bench()
    bench.connecting()
    bench.now += BackplaneLimits().replyTime
    #expect(!bench.tick())
    #expect(bench.takeEvents() == [.lost(.replyTime)])
  }

  @Test("Commands are refused at both limits, and taken again when there is room")
  func commandLimits() {
    var limits = BackplaneLimits()
    limits.pendingCommands = 2
    let bench = Bench(RedisRole(), limits)
    bench.open()
    #expect(bench.submit("A", ticket: 1))
    #expect(bench.submit("A", ticket: 2))
    #expect(!bench.submit("A", ticket: 3))
    bench.reply("+a\r\n")
    #expect(bench.submit("A", ticket: 4))
    limits = BackplaneLimits()
    limits.unsentBytes = 1000
    let other = Bench(RedisRole(), limits)
    other.open()
    #expect(!other.submit(.words([[UInt8](repeating: 1, count: 1000)]), ticket: 1))
    #expect(other.submit(.words([[UInt8](repeating: 1, count: 940)]), ticket: 1))
    #expect(!other.submit("A", ticket: 2))
    _ = other.sent()
    #expect(!other.submit(.words([[65]]), ticket: 2, unsent: 990))
    #expect(other.submit("A", ticket: 2))
  }
}
