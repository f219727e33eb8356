// `replay`: recorded drives, sent as live.
//
// By ClientLoop and not by DriverHub, which sends only as often as advised, rounds numbers as its queue does, and
// learns by a heartbeat that they are stored: here every fix is sent as recorded, at any pace, and the program ends
// when the hub, asked for it, has stored the last one.
import Glibc
import HubClientLoop
import HubCommandLine
import HubMessages
import HubSimulation
import HubSystem
import HubTransport

let replay = Verb(
  name: "replay", operands: "TRACE.csv [more…]",
  summary: """
    Sends recorded drives as if they were live.
    Timestamps stay as recorded; fixes go out at --speed times their pace, but never faster than the hub's rate allows.
    Several traces are several drivers at the same time: from --driver D1 on they are D1, D2, …, and trips likewise.
    Ends when everything was sent and the hub says that it is stored, but for a last fix that it may hold back. It fails
    where the hub stores no more, and where SIGINT or SIGTERM ends it before that.
    """,
  options: ClientOptions.options + [
    Option("speed", "FACTOR", "times the recorded pace; 0 for as fast as the rate allows (10)"),
    Option("driver", "ID", "the first driver (D1)"),
    Option("trip", "ID", "the first driver's trip, which its fixes name (T1)"),
  ],
  run: runReplay)

private func runReplay(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  let options = try ClientOptions(arguments)
  let speed = try arguments.value("speed", .number(0...1e6)) ?? 10
  guard speed == 0 || speed >= 1e-3 else { throw .usage("--speed must be 0, or from 0.001 to 1000000") }
  guard !arguments.operands.isEmpty else { throw .usage("replay needs a trace: locationhub replay TRACE.csv") }
  var routes: [ReplayRoute] = []
  for (index, path) in arguments.operands.enumerated() {
    guard let driver = try (arguments.identifier("driver") ?? Identifier("D1"))?.incremented(by: index) else {
      throw .usage("--driver is too long to be numbered")
    }
    guard let trip = try (arguments.identifier("trip") ?? Identifier("T1"))?.incremented(by: index) else {
      throw .usage("--trip is too long to be numbered")
    }
    routes.append(ReplayRoute(path: path, driver: driver, trip: trip, fixes: try readTrace(path)))
  }
  try options.checkTokens(for: routes.count)
  try system { () throws(SystemError) in try blockSignals([SIGINT, SIGTERM]) }
  let clients = try options.makeLoop()
  let replayer = Replayer(clients, options, speed: speed)
  try clients.stopAtSignals()
  return try replayer.run(routes)
}

/// One trace and its driver.
struct ReplayRoute {
  var path: String
  var driver: Identifier
  var trip: Identifier?
  var fixes: [Fix]
}

extension Identifier {
  /// The id of the nth driver: the number at its end is incremented, or begins at 2. Nil where that is too long.
  func incremented(by count: Int) -> Identifier? {
    guard count > 0 else { return self }
    let name = description
    let digits = name.reversed().prefix { $0.isNumber }.count
    let stem = name.dropLast(min(digits, 9))
    let number = Int(name.suffix(min(digits, 9))) ?? 1
    return Identifier("\(stem)\(number + count)")
  }
}

private final class Replayer: ClientLoopDelegate {
  /// One driver under way.
  private struct Run {
    let route: ReplayRoute
    var next = 0
    /// When the first fix was sent (uptime, ns), and how long after it the next one is due (ns).
    var start: Int64?
    var offset: Int64 = 0
    /// Consecutive pongs without new confirmations.
    var idlePongs = 0
    var isOpen = false
    var isDone = false
    var unconfirmed = 0
    /// The number of the last fix's message.
    var last: UInt64?
    /// Only the last fix is unconfirmed: a hub may hold the newest back until the next one confirms it.
    var isHeldBack = false
    var refused = 0
    var lastRefusal: String?
    var seconds = 0.0

    /// The longest pause that is kept, in seconds of the recording, so that one wrong timestamp does not stop a replay.
    static let longestPause = 600.0

    /// Advances to the next fix, due after the recorded interval divided by the speed.
    mutating func advance(speed: Double) {
      let this = route.fixes[next]
      next += 1
      guard speed > 0, next < route.fixes.count else { return }
      let recorded = route.fixes[next].timestamp.seconds(since: this.timestamp)
      offset += Int64(min(max(recorded, 0), Run.longestPause) / speed * 1e9)
    }
  }

  /// The limit of a client's queue before the next fix is read from the trace.
  private static let backlog = 64
  /// After so many pongs without confirmations, 10 s, the rest will not be stored.
  private static let idlePongs = 50
  private static let pingInterval: Int64 = 200_000_000

  private let clients: ClientLoop
  private let options: ClientOptions
  private let speed: Double
  private var runs: [Run] = []
  private var report: ConnectionReport
  private var failure: CommandError?
  private var isSlowed = false

  init(_ clients: ClientLoop, _ options: ClientOptions, speed: Double) {
    self.clients = clients
    self.options = options
    self.speed = speed
    report = ConnectionReport(timeoutSeconds: options.connectTimeout, now: clients.now.uptime)
    clients.delegate = self
  }

  func run(_ routes: [ReplayRoute]) throws(CommandError) -> ExitCode {
    for (number, route) in routes.enumerated() {
      runs.append(Run(route: route))
      clients.add(try options.configuration(.driver, route.driver, number: number))
    }
    tick()
    clients.run()
    let isComplete = runs.allSatisfy { $0.isDone && ($0.unconfirmed == 0 || $0.isHeldBack) }
    finish(clients)
    for index in runs.indices where runs[index].start != nil { StandardStream.output.write(summary(index) + "\n") }
    if let failure { throw failure }
    // Ended by a signal, or with fixes that the hub has not stored, its work is incomplete.
    return isComplete ? .ok : .failed
  }

  // MARK: Sending

  func due(_ client: ClientID) {
    let index = client.index
    if runs[index].next < runs[index].route.fixes.count { send(client) } else { confirm(client) }
  }

  private func send(_ client: ClientID) {
    let index = client.index
    let now = clients.now.uptime
    let session = clients.session(client)
    while runs[index].next < runs[index].route.fixes.count {
      let time = timeOfNext(index)
      if time > now { return clients.schedule(client, at: time) }
      guard session.backlog < Replayer.backlog else {
        noteSlow(session)
        return clients.schedule(client, at: now + 20_000_000)
      }
      runs[index].last = session.nextNumber
      clients.send(runs[index].route.fixes[runs[index].next], trip: runs[index].route.trip, from: client)
      runs[index].advance(speed: speed)
    }
    clients.schedule(client, at: now + 1_000_000)
  }

  private func timeOfNext(_ index: Int) -> Int64 {
    let start = runs[index].start ?? clients.now.uptime
    runs[index].start = start
    return start + runs[index].offset
  }

  private func noteSlow(_ session: ClientSession) {
    guard speed > 0, !isSlowed, session.state == .open, let rate = session.connected?.limits.rate, rate > 0 else {
      return
    }
    isSlowed = true
    ConnectionReport.say(
      "--speed \(fixed(speed, 1)) is more than the hub's \(fixed(rate, 1)) messages a second; going at that")
  }

  // MARK: The end

  /// All fixes are sent or queued: sends pings until all are stored, or the hub confirms no more.
  private func confirm(_ client: ClientID) {
    let index = client.index
    let session = clients.session(client)
    if session.unconfirmed == 0 || runs[index].idlePongs >= Replayer.idlePongs { return complete(client) }
    if session.backlog == 0 { clients.ping(client) }
    clients.schedule(client, at: clients.now.uptime + Replayer.pingInterval)
  }

  private func complete(_ client: ClientID) {
    let index = client.index
    guard !runs[index].isDone else { return }
    runs[index].isDone = true
    let session = clients.session(client)
    runs[index].unconfirmed = session.unconfirmed
    runs[index].isHeldBack = session.unconfirmed == 1 && session.oldestDurable == runs[index].last
    runs[index].seconds = Double(clients.now.uptime - (runs[index].start ?? clients.now.uptime)) / 1e9
    if runs.allSatisfy({ $0.isDone }) { clients.stop() }
  }

  private func summary(_ index: Int) -> String {
    let run = runs[index]
    let counters = clients.session(ClientID(index: index)).counters
    let sent = run.next
    var text = "\(run.route.path): \(sent) of \(run.route.fixes.count) fixes sent as driver \(run.route.driver)"
    if let trip = run.route.trip { text += " on trip \(trip)" }
    if run.isDone {
      text += " in \(fixed(run.seconds, 1)) s (\(fixed(Double(sent) / max(run.seconds, 0.001), 1))/s)"
    }
    text += ", \(run.refused) refused"
    if let refusal = run.lastRefusal { text += " (\(refusal))" }
    if counters.fixesResent > 0 { text += ", \(counters.fixesResent) sent again after a break" }
    if counters.fixesDropped > 0 { text += ", \(counters.fixesDropped) dropped" }
    if !run.isDone {
      text += ", not finished"
    } else if run.isHeldBack {
      text += ", the last one held back by the hub"
    } else if run.unconfirmed > 0 {
      text += ", not all stored: the hub has not confirmed \(run.unconfirmed) messages with fixes"
    } else {
      text += ", all stored"
    }
    return text
  }

  // MARK: What happens

  func opened(_ client: ClientID, _ connected: Connected) {
    runs[client.index].isOpen = true
    report.opened(options.url)
    if !runs[client.index].isDone { clients.schedule(client, at: clients.now.uptime) }
  }

  func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {
    switch envelope.message {
    // What these refuse stays in the client's queue, and is sent again.
    case .reply(.error(let error)) where [.storageFull, .rateLimited].contains(error.code): break
    case .reply(.error(let error)):
      runs[client.index].refused += 1
      runs[client.index].lastRefusal = "\(error.code.name): \(error.message)".withoutControls
    case .reply(.ack(let ack)):
      if let rejected = ack.batch?.rejected { runs[client.index].refused += rejected.count }
    case .reply(.pong): noteStored(client)
    case .reply, .publication, .unknown: break
    }
  }

  private func noteStored(_ client: ClientID) {
    let index = client.index
    guard runs[index].next == runs[index].route.fixes.count else { return }
    let left = clients.session(client).unconfirmed
    runs[index].idlePongs = left < runs[index].unconfirmed ? 0 : runs[index].idlePongs + 1
    runs[index].unconfirmed = left
    if left == 0 { complete(client) }
  }

  func closed(_ client: ClientID, _ disconnection: Disconnection) {
    runs[client.index].isOpen = false
    let (isLast, now) = (!runs.contains { $0.isOpen && !$0.isDone }, clients.now.uptime)
    if let failure = report.closed(disconnection, options.url, isLast: isLast, now: now) { fail(failure) }
  }

  func tick() {
    if let failure = report.check(now: clients.now.uptime, options.url) { return fail(failure) }
    clients.scheduleTick(at: clients.now.uptime + 250_000_000)
  }

  private func fail(_ failure: CommandError) {
    self.failure = self.failure ?? failure
    clients.stop()
  }
}
