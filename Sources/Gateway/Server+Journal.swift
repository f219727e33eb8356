// A server's journal: read before the server starts, then two threads, one that writes and one that keeps.
import HubCore
import HubJournal
import HubMessages
import HubSystem

extension Server {
  static func recover(
    _ configuration: ServerConfiguration, _ shared: SharedState, into hub: inout Hub, _ life: HubLife
  ) throws(JournalError) -> WriterBox? {
    guard let configured = configuration.journal, let journal = shared.journal else { return nil }
    return try configured.recover(into: &hub, recordLimit: journal.recordLimit, newEpoch: life, shared.log)
  }

  /// What can be done about it.
  static func hint(_ error: JournalError) -> String {
    switch error {
    case .damaged: "; --accept-loss goes on from before it and keeps the damaged files aside"
    case .locked: "; give this hub a --data of its own, or --no-journal"
    case .system: "; give a directory that the hub may write to with --data, or --no-journal to store nothing"
    case .otherVersion: "; use the program that wrote it, or give this hub another --data"
    case .full, .gone, .stopped: ""
    }
  }

  /// Nil without a journal.
  static func makeKeeper(
    _ configuration: ServerConfiguration, _ shared: SharedState, _ life: HubLife
  ) -> JournalKeeper? {
    guard let configured = configuration.journal, let journal = shared.journal else { return nil }
    return JournalKeeper(journal, configured, shared.log) {
      HubBox(life.makeHub(configuration, now: ClockReading.read()))
    }
  }

  /// Runs the journal's writer. `waker` wakes whoever runs the hub.
  static func startJournal(
    _ box: WriterBox, _ journal: JournalQueue, waking waker: Waker, _ log: Log
  ) throws(SystemError) -> Joinable {
    let thread = try startThread(name: "journal") {
      do throws(JournalError) {
        try journal.commit.run(&box.writer) {
          ClockReading.read().unixMilliseconds
        } onChange: {
          waker.wake()
        }
      } catch {
        log(
          .error, "journal_stopped",
          ["error": "\(error)", "hint": "positions go on, moves of trips are refused; restart the hub"])
      }
    }
    return Joinable(thread)
  }

  static func startKeeper(_ keeper: JournalKeeper, after report: RecoveryReport) throws(SystemError) -> Joinable {
    Joinable(try startThread(name: "keeper") { keeper.run(after: report) })
  }
}
