// `cluster`: the engine's records of members and of owners of trips and drivers. It asks only the ledger, so it works
// while hubs hang. It asks as a hub does, with the same rights, so names of members whose lease has ended are removed.
import HubBackplane
import HubCluster
import HubCommandLine
import HubMessages
import HubSystem
import HubTransport

let cluster = Verb(
  name: "cluster", operands: "status",
  summary: """
    Shows the hubs of a cluster, as its ledger has them: at most 2 s old.
    A hub's lag is how long ago it heard the other that it has not heard for longest (ms); its cells are those that
    others watch there, and that it asks others for. With --trip or --driver also which hub has that trip or driver.
    Exit code 1 where the ledger cannot be asked.
    """,
  options: [
    Option("cluster", "FILE", "the file of serve --cluster, of any hub"),
    Option("trip", "ID", "which hub has this trip?"),
    Option("driver", "ID", "at which hub is this driver?"),
  ],
  run: runCluster)

private func runCluster(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  guard arguments.operands == ["status"] else { throw .usage("cluster takes a word: locationhub cluster status") }
  guard let path = arguments.string("cluster") else { throw .usage("give --cluster FILE, as serve has it") }
  let configuration = try ClusterFile.read(path)
  var wanted: [(name: String, channel: Channel)] = []
  for kind in ["trip", "driver"] {
    guard let text = arguments.string(kind) else { continue }
    guard let id = Identifier(text) else { throw .usage("--\(kind) must be 1-64 of A-Z a-z 0-9 . _ -") }
    wanted.append(("\(kind) \(id)", kind == "trip" ? .trip(id) : .driver(id)))
  }
  let questions = wanted.compactMap { $0.channel.ledgerKey.map { LedgerQuestion.owner(key: $0) } }
  let asker = try system { () throws(SystemError) in
    try LedgerAsker(configuration.engine, [.members] + questions)
  }
  let answers = try asker.ask()
  guard case .members(let members)? = answers.first else { throw .failed("the ledger answers \(answers)") }
  StandardStream.output.write(ClusterStatus.table(members))
  for (index, asked) in wanted.enumerated() {
    guard case .owner(let owner) = answers[index + 1] else { throw .failed("the ledger answers \(answers[index + 1])") }
    StandardStream.output.write("\(asked.name): \(owner.map { "at \($0)" } ?? "no hub has it")\n")
  }
  return .ok
}

enum ClusterStatus {
  /// A line for each member.
  static func table(_ members: [MemberRecord]) -> String {
    if members.isEmpty { return "no hub is a member\n" }
    let rows =
      [["hub", "address", "incarnation", "lag ms", "cells watched", "asked", "version"]]
      + members.map { member in
        let status = member.status
        return [member.name, member.address, "\(member.incarnation)"]
          + [status.map { "\($0.lag)" }, status.map { "\($0.cellsWatched)" }, status.map { "\($0.cellsAsked)" }]
          .map { $0 ?? "-" } + [member.version]
      }
    let last = rows[0].count - 1
    let widths = (0..<last).map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      let cells = (0..<last).map { row[$0] + String(repeating: " ", count: widths[$0] - row[$0].count) }
      return cells.joined(separator: "  ") + "  " + row[last] + "\n"
    }.joined()
  }
}

/// Asks a ledger some questions, on an event loop of its own, and waits for the answers.
private final class LedgerAsker: EventLoopDelegate {
  /// The timeout of everything together, in ns.
  private static let patience: Int64 = 5_000_000_000
  private let loop: EventLoop
  private let links: RedisLinks
  private let ledger: any Ledger
  private let questions: [LedgerQuestion]
  private let engine: EngineConfiguration
  private let deadline: Int64
  private var answers: [UInt64: LedgerAnswer] = [:]
  private var isAsked = false
  private var fault: String?
  private var events: [LedgerEvent] = []

  init(_ engine: EngineConfiguration, _ questions: [LedgerQuestion]) throws(SystemError) {
    self.questions = questions
    self.engine = engine
    loop = try EventLoop()
    links = RedisLinks(loop, limits: BackplaneLimits(), tls: engine.tls, seed: 1)
    ledger = engine.ledger(on: links)
    deadline = loop.now.uptimeNanoseconds + LedgerAsker.patience
    loop.delegate = self
    loop.setLoopTimer(at: loop.now.uptimeNanoseconds)
  }

  func ask() throws(CommandError) -> [LedgerAnswer] {
    loop.run()
    let found = questions.indices.compactMap { answers[UInt64($0)] }
    guard found.count == questions.count else { throw .failed(fault ?? "the ledger does not answer") }
    return found
  }

  func connected(_ id: ConnectionID) { links.connected(id) }
  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) { unsafe links.received(id, bytes) }
  func overflowed(_ id: ConnectionID) { links.overflowed(id) }
  func closed(_ id: ConnectionID, _ cause: CloseCause) { links.closed(id, cause) }

  func turnEnding() {
    let next = links.tick()
    ledger.takeEvents(into: &events)
    for event in events { take(event) }
    events.removeAll()
    links.flush()
    let isOver = answers.count == questions.count || fault != nil || loop.now.uptimeNanoseconds >= deadline
    if isOver { loop.stop() } else { loop.setLoopTimer(at: min(next, deadline)) }
  }

  private func take(_ event: LedgerEvent) {
    switch event {
    case .up where isAsked: break
    case .up:
      isAsked = true
      for (index, question) in questions.enumerated() { _ = ledger.ask(question, ticket: UInt64(index)) }
    case .down(let node, let reason):
      let origin = engine.origin(of: node, isLedger: true, reason: reason).map { "\($0): " } ?? ""
      fault = "\(origin)the ledger at \(node) cannot be asked: \(reason)"
    case .memory: break
    case .answer(let ticket, let answer): answers[ticket] = answer
    }
  }
}
