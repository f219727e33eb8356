// Questions of the hub that another thread answers: the hub asks, continues, and gets the answer as an input. Each
// question has a ticket, which its answer repeats.
//
//     hub's thread    end of a turn: a round of questions, if the round before is answered
//     other thread    answers one after the other, and wakes the hub's thread for each
//     hub's thread    beginning of a turn: the answers are handled before its inputs
//
// A round is one job of the other thread, so that other jobs get their turn in between, and the mailbox has room for
// all answers of a round: no answer is lost.
package import HubCore
import HubMessages
package import HubSystem

/// The questions of one kind, on the hub's side. Only `HubTurn` uses it.
package final class Consultation<Question: Sendable> {
  private let collect: (inout Hub, inout [Question]) -> Void
  private let consult: ([Question], Mailbox<HubInput>) -> Bool
  private let answers: Mailbox<HubInput>
  private var waiting: [Question] = []
  private var unanswered = 0
  private var batch: [HubInput] = []

  /// `collect` appends the hub's questions. `consult` has a round answered on another thread, by one input for each
  /// question; false where there is no room: it is tried again after another turn. `waker` wakes a thread that then
  /// runs a turn of the hub.
  package init(
    waking waker: Waker, collect: @escaping (inout Hub, inout [Question]) -> Void,
    consult: @escaping ([Question], Mailbox<HubInput>) -> Bool
  ) {
    self.collect = collect
    self.consult = consult
    answers = Mailbox(capacity: RuntimeLimits.questionsPerRound, waking: waker)
  }

  /// Before a turn's inputs: hands the answers to the hub.
  func answer(_ hub: inout Hub, now: Moment) {
    guard unanswered > 0 else { return }
    answers.drain(into: &batch)
    unanswered -= batch.count
    hub.handle(batch, now: now)
    batch.removeAll(keepingCapacity: true)
  }

  /// After a turn: asks the hub's questions.
  func ask(_ hub: inout Hub) {
    collect(&hub, &waiting)
    guard unanswered == 0, !waiting.isEmpty else { return }
    let round = Array(waiting.prefix(RuntimeLimits.questionsPerRound))
    guard consult(round, answers) else { return }
    unanswered = round.count
    waiting.removeFirst(round.count)
  }
}

extension Consultation<HistoryLookup> {
  /// The hub's questions about fixes that are older than what it remembers (HubCore's HistoryLookups.swift), which the
  /// journal's reader answers, before it reads on for others: drivers wait for these with their acknowledgements.
  package static func history(_ reader: HistoryReader, waking waker: Waker) -> Consultation {
    Consultation(waking: waker) { hub, waiting in
      hub.takeLookups(into: &waiting)
    } consult: { round, answers in
      reader.ask(for: .ops, isNext: true) { access in
        for lookup in round {
          let hasRoom = answers.append(.knownFixes(ticket: lookup.ticket, access.known(lookup)))
          precondition(hasRoom, "there is room for the answers of a round")
        }
      }
    }
  }
}
