// The threads beside the loops that have to do with the journal: one writes it, one keeps it small, one reads its past.
import HubJournal
package import HubSystem

package final class JournalThreads: Sendable {
  private let journal: JournalQueue
  private let history: HistoryReader
  private let writers: [Joinable]
  private let reader: Joinable

  /// Starts all three. `onChange` is called when something is stored: it wakes a thread that takes a turn of the hub
  /// then, and who reads the journal as it grows. Where a thread cannot be started the others end, and the journal
  /// takes nothing.
  package init(
    _ journal: JournalQueue, _ writer: WriterBox, maintenance: JournalMaintenance, history: HistoryReader,
    _ configuration: JournalConfiguration, _ log: Log, onChange: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    self.journal = journal
    self.history = history
    do throws(SystemError) {
      let writing = Joinable(try startThread(name: "journal") { write(journal, writer, log, onChange) })
      reader = Joinable(try startThread(name: "history") { history.run(configuration) })
      writers = [writing, Joinable(try startThread(name: "maintenance") { maintenance.run(after: writer.report) })]
    } catch {
      journal.commit.close()
      history.close()
      throw error
    }
  }

  /// Stores what the last turns brought, and returns when all three have ended.
  package func finish() {
    journal.commit.close()
    for thread in writers { thread.join() }
    history.close()
    reader.join()
  }
}

private func write(_ journal: JournalQueue, _ box: WriterBox, _ log: Log, _ onChange: () -> Void) {
  do throws(JournalError) {
    try journal.commit.run(&box.writer) {
      ClockReading.read().unixMilliseconds
    } onChange: {
      onChange()
    }
  } catch {
    log(
      .error, "journal_stopped",
      ["error": "\(error)", "hint": "positions go on, moves of trips are refused; restart the hub"])
  }
}
