// Settings of `serve` that exclude each other.
import HubCommandLine
import HubGateway

extension ServeOptions {
  /// Refuses settings of the journal beside `no-journal`, which on the command line wins over file and environment.
  func refuseStorage(_ given: Arguments, _ faults: inout Faults) {
    let none = given.values("no-journal").last?.origin ?? ""
    let storage = ServeOptions.storage.map(\.name).filter { $0 != "no-journal" }.compactMap { given.values($0).last }
    if let other = storage.first(where: { none != "--no-journal" || $0.origin.hasPrefix("--") }) {
      faults.add(.usage("\(other.origin) cannot be combined with \(none)"))
    }
    if let other = ["webhooks", "webhook-allow"].compactMap({ given.values($0).last }).first {
      faults.add(.usage("\(other.origin) needs the journal: it cannot be combined with \(none)"))
    }
  }

  /// Checks values that contradict each other, given or by default.
  func checkRelations(_ faults: inout Faults) {
    let limits = server.limits
    let message = ("max-message", limits.messageBytes)
    let outbox = ("max-outbox", limits.outboxBytesPerSession)
    let relations: [(smaller: (String, Int), larger: (String, Int), reason: String)] = [
      (message, outbox, "what one client sends must fit into what waits for another"),
      (outbox, ("max-outboxes", limits.outboxBytes), "one session's unsent bytes are among those of all"),
      (message, ("max-incomplete", limits.incompleteBytes), "one message must fit while it comes"),
    ]
    for (smaller, larger, reason) in relations where smaller.1 > larger.1 {
      faults.add(.usage("--\(smaller.0) (\(smaller.1)) is more than --\(larger.0) (\(larger.1)): \(reason)"))
    }
  }
}
