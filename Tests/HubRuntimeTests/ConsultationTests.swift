import HubBytes
import HubCore
import HubMessages
import HubSystem
import Testing

@testable import HubRuntime

/// Answers nothing until the test says so.
private final class Consultant {
  var hasRoom = true
  var rounds: [[UInt64]] = []
  var answers: Mailbox<HubInput>?

  func answer(_ ticket: UInt64) -> Bool { answers?.append(.knownFixes(ticket: ticket, [])) ?? false }
}

@Suite struct ConsultationTests {
  private func makeHub() -> Hub {
    let limits = HubLimits(
      drivers: 1, trips: 1, channels: 1, eventsPerChannel: 1, events: 1, queryHits: 1,
      queryBudget: SearchBudget(cells: 1, candidates: 1), fixTimesPerDriver: 1, driversWithFixTimes: 1, profiles: 1)
    return Hub(
      limits: limits, timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText(), seed: 1, outlets: 1,
      now: Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_763_680_000_000)))
  }

  private func makeConsultation(
    _ consultant: Consultant, asking questions: Int
  ) throws -> Consultation<UInt64> {
    var next: UInt64 = 0
    return Consultation(waking: try Waker()) { _, waiting in
      while next < questions {
        next += 1
        waiting.append(next)
      }
    } consult: { round, answers in
      guard consultant.hasRoom else { return false }
      consultant.rounds.append(round)
      consultant.answers = answers
      return true
    }
  }

  @Test("Questions are asked in rounds of 64, the next when all answers of the one before are in")
  func rounds() throws {
    var hub = makeHub()
    let now = Moment(uptime: 1, timestamp: Timestamp(milliseconds: 1_763_680_000_001))
    let consultant = Consultant()
    let consultation = try makeConsultation(consultant, asking: 100)
    consultation.ask(&hub)
    #expect(consultant.rounds == [Array(1...64)])
    for ticket in 1...63 as ClosedRange<UInt64> { #expect(consultant.answer(ticket)) }
    consultation.answer(&hub, now: now)
    consultation.ask(&hub)
    #expect(consultant.rounds.count == 1, "one answer is missing")
    #expect(consultant.answer(64))
    consultation.answer(&hub, now: now)
    consultation.ask(&hub)
    #expect(consultant.rounds == [Array(1...64), Array(65...100)])
  }

  @Test("What finds no room is asked again after the next turn, and nothing is left out")
  func noRoom() throws {
    var hub = makeHub()
    let consultant = Consultant()
    consultant.hasRoom = false
    let consultation = try makeConsultation(consultant, asking: 3)
    consultation.ask(&hub)
    consultation.ask(&hub)
    #expect(consultant.rounds.isEmpty)
    consultant.hasRoom = true
    consultation.ask(&hub)
    #expect(consultant.rounds == [[1, 2, 3]])
  }
}
