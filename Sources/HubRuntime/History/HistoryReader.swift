// The thread that reads the journal's past: tracks, trips that the hub has forgotten, and whatever else is a matter of
// reading files and not of the present. Neither the hub's thread nor a loop ever waits for it.
//
//     a loop   ask: a closure into a bounded queue        its own thread   runs it, and posts what came of it
//              to the mailbox of who asked, whose loop is woken
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
  private let unsent = Atomic<Int>(0)
  private let unsentLimit: Int

  /// `questions` may wait, and answers of `answerBytes` in all.
  package init(questions: Int, answerBytes: Int) {
    self.questions = JobQueue(capacity: questions)
    unsentLimit = answerBytes
  }

  /// Has the question asked; false where too many wait already for one of this role.
  package func ask(for role: Role, _ question: @escaping Question) -> Bool {
    guard questions.append(question, limit: role.share(of: questions.capacity)) else { return false }
    asked.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  /// The thread's body: answers until `close`.
  package func run(_ configuration: JournalConfiguration) {
    let access = HistoryAccess(configuration) { [questions] in questions.isClosed }
    while let question = questions.next() {
      let began = ClockReading.read().uptimeNanoseconds
      question(access)
      busy.wrappingAdd(UInt64(max(0, ClockReading.read().uptimeNanoseconds - began)), ordering: .relaxed)
    }
  }

  /// What is being read is broken off, and what waits is not begun.
  package func close() { questions.close() }

  // MARK: Answers on their way

  /// Takes room for an answer until the result goes away; nil where those that were not read yet leave none.
  package func reserve(_ bytes: Int) -> MemoryReservation? {
    let all = unsent.wrappingAdd(bytes, ordering: .relaxed).newValue
    // One alone always fits: what makes it long has a limit of its own.
    guard all <= unsentLimit || all == bytes else {
      unsent.wrappingSubtract(bytes, ordering: .relaxed)
      return nil
    }
    return MemoryReservation(bytes: bytes, of: self)
  }

  fileprivate func release(_ bytes: Int) { unsent.wrappingSubtract(bytes, ordering: .relaxed) }

  // MARK: Metrics

  package struct Counters: Equatable {
    package var asked: UInt64
    package var busyNanoseconds: UInt64
    package var unsentBytes: Int
  }

  package var counters: Counters {
    Counters(
      asked: asked.load(ordering: .relaxed), busyNanoseconds: busy.load(ordering: .relaxed),
      unsentBytes: unsent.load(ordering: .relaxed))
  }
}

/// The memory that an answer takes while it is made, waits and is sent.
package final class MemoryReservation: Sendable {
  private let bytes: Int
  private let reader: HistoryReader

  fileprivate init(bytes: Int, of reader: HistoryReader) {
    self.bytes = bytes
    self.reader = reader
  }

  deinit { reader.release(bytes) }
}
