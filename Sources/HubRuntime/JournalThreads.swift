// The journal's worker threads, beside the loops: one writes, one maintains, one reads the past.
import HubJournal
package import HubSystem

package final class JournalThreads: Sendable {
  private let journal: JournalQueue
  private let history: HistoryReader
  private let writers: [Joinable]
  private let reader: Joinable

  /// Starts all three. `onChange` is called when something is stored: it wakes a thread that then runs a turn of the
  /// hub, and readers that follow the journal. If a thread cannot be started the others end, and the journal takes
  /// nothing.
  package init(
    _ journal: JournalQueue, _ writer: WriterBox, maintenance: JournalMaintenance, history: HistoryReader,
    _ configuration: JournalConfiguration, _ log: Log, onChange: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    self.journal = journal
    self.history = history
    do throws(SystemError) {
      let writing = Joinable(try startThread(name: "journal") { write(journal, writer, log, onChange) })
      reader = Joinable(try startThread(name: "history") { history.run(configuration, log) })
      writers = [writing, Joinable(try startThread(name: "maintenance") { maintenance.run(after: writer.report) })]
    } catch {
      journal.commit.close()
      history.close()
      throw error
    }
  }

  /// Stores the last turns' records, and returns when all three have ended.
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
      ["error": "\(error)", "hint": "positions continue, moves of trips are refused; restart the hub"])
  }
}
