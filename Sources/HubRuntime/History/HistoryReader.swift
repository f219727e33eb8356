// The thread that reads the journal's past: tracks, forgotten trips, and other questions to files. Neither the hub's
// thread nor a loop waits for it.
//
//     a loop   ask: a closure into a bounded queue        its own thread   runs it, and posts the answer to the
//              asker's mailbox, whose loop is woken
import HubCore
import HubJournal
package import HubMessages
import HubSystem
import Synchronization

/// The queue to the reader's thread.
package final class HistoryReader: Sendable {
  /// Runs on the reader's thread; posts its own answer.
  package typealias Question = @Sendable (HistoryAccess) -> Void

  private let questions: JobQueue<Question>
  private let asked = Atomic<UInt64>(0)
  private let busy = Atomic<UInt64>(0)
  /// The memory of unsent answers.
  package let memory: MemoryBudget

  /// The limits of waiting `questions`, and of unsent answers' bytes.
  package init(questions: Int, answerBytes: Int) {
    self.questions = JobQueue(capacity: questions)
    memory = MemoryBudget(bytes: answerBytes)
  }

  /// Queues the question, or puts it before all that wait; false at the role's limit.
  package func ask(for role: Role, isNext: Bool = false, _ question: @escaping Question) -> Bool {
    guard questions.append(question, limit: role.share(of: questions.capacity), isNext: isNext) else { return false }
    asked.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  /// The thread's body: answers until `close`.
  package func run(_ configuration: JournalConfiguration, _ log: Log) {
    let access = HistoryAccess(configuration, log) { [questions] in questions.isClosed }
    while let question = questions.next() {
      let began = ClockReading.read().uptimeNanoseconds
      question(access)
      busy.wrappingAdd(UInt64(max(0, ClockReading.read().uptimeNanoseconds - began)), ordering: .relaxed)
    }
  }

  /// Aborts the present question and drops waiting ones.
  package func close() { questions.close() }

  // MARK: Metrics

  package struct Counters: Equatable {
    package var asked: UInt64
    package var busyNanoseconds: UInt64
    package var unsentBytes: Int
  }

  package var counters: Counters {
    Counters(
      asked: asked.load(ordering: .relaxed), busyNanoseconds: busy.load(ordering: .relaxed),
      unsentBytes: memory.reservedBytes)
  }
}
