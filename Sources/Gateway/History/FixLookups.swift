// The hub's questions about older fixes on their way to the journal's reader, and the answers on their way back
// (HubCore's HistoryLookups.swift). It belongs to who has the hub.
//
//     hub's thread      after a turn: a round of questions, if the one before was answered
//     reader's thread   answers one after the other, and wakes the hub's thread for each
import HubCore
import HubMessages
import HubSystem

final class FixLookups {
  /// Questions of one round: it is one entry of the reader's queue, so that those of HTTP get their turn in between.
  private static let questionsOfRound = 64

  private let reader: HistoryReader
  private let log: Log
  private let answers: Mailbox<HubInput>
  private var waiting: [HistoryLookup] = []
  private var unanswered = 0
  private var batch: [HubInput] = []

  /// `waker` wakes a thread that takes the hub then.
  init(reader: HistoryReader, log: Log, waking waker: Waker) {
    self.reader = reader
    self.log = log
    answers = Mailbox(capacity: FixLookups.questionsOfRound, waking: waker)
  }

  /// Nil where nothing is stored.
  convenience init?(_ shared: SharedState, waking waker: Waker) {
    guard let reader = shared.history else { return nil }
    self.init(reader: reader, log: shared.log, waking: waker)
  }

  /// Before a turn: what was answered goes into the hub.
  func answer(_ hub: inout Hub, now: Moment) {
    guard unanswered > 0 else { return }
    answers.drain(into: &batch)
    unanswered -= batch.count
    hub.handle(batch, now: now)
    batch.removeAll(keepingCapacity: true)
  }

  /// After a turn: what the hub wants to know is asked. Where the reader has no room it is asked after another turn.
  func ask(_ hub: inout Hub) {
    hub.takeLookups(into: &waiting)
    guard unanswered == 0, !waiting.isEmpty else { return }
    let round = Array(waiting.prefix(FixLookups.questionsOfRound))
    let isAsked = reader.ask(for: .ops) { [answers, log] access in
      for lookup in round {
        let hasRoom = answers.append(.knownFixes(ticket: lookup.ticket, access.known(lookup, log)))
        precondition(hasRoom, "there is room for the answers of a round")
      }
    }
    guard isAsked else { return }
    unanswered = round.count
    waiting.removeFirst(round.count)
  }
}
