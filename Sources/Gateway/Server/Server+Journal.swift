// A server's journal: read before the server starts.
import HubCore
import HubJournal
import HubMessages
import HubRuntime
import HubSystem

extension Server {
  static func recover(
    _ configuration: ServerConfiguration, _ shared: SharedState, into hub: inout Hub, _ incarnation: Incarnation
  ) throws(JournalError) -> WriterBox? {
    guard let configured = configuration.journal, let journal = shared.journal else { return nil }
    return try configured.recover(into: &hub, recordLimit: journal.recordLimit, newEpoch: incarnation.epoch, shared.log)
    {
      shared.serviceManager?.extendStart(at: ClockReading.read().uptimeNanoseconds)
    }
  }

  /// Advice about an error.
  static func hint(_ error: JournalError) -> String {
    switch error {
    case .damaged: "; --accept-loss continues from before it and keeps the damaged files aside"
    case .locked: "; give this hub a --data of its own, or --no-journal"
    case .system: "; give a directory that the hub may write to with --data, or --no-journal to store nothing"
    case .otherVersion: "; use the program that wrote it, or give this hub another --data"
    case .full, .gone, .stopped: ""
    }
  }

  /// Nil without a journal.
  static func makeMaintenance(
    _ configuration: ServerConfiguration, _ shared: SharedState, _ incarnation: Incarnation
  ) -> JournalMaintenance? {
    guard let configured = configuration.journal, let journal = shared.journal else { return nil }
    return JournalMaintenance(journal, configured, shared.log) {
      HubBox(incarnation.makeHub(configuration, now: ClockReading.read()))
    }
  }
}
