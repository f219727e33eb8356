// Answers out of the journal: who pays for them, and who has no room for one more.
import HubCore
import HubJournal
import HubMessages
import Testing

@testable import HubGateway
@testable import HubRuntime

@Suite struct JournalAnswerTests {
  private let session = SessionRef(outlet: 0, slot: 1, generation: 1)
  private let trip = HistoryQuestion.forgotten(Identifier("t1")!, nil, .unixMilliseconds)

  @Test("for whom there is no room the journal is not read")
  func noRoom() throws {
    var opened = 0
    func open() throws(JournalError) -> JournalHistory {
      opened += 1
      throw .stopped
    }
    let access = HistoryAccess(.silent, isStopping: { false }, opening: open)
    let memory = MemoryBudget(bytes: 100)
    let (rider, other) = (MemoryOwner(1, .rider), MemoryOwner(2, .rider))
    let unread = try #require(MemoryReservation(30, of: memory, by: rider))
    func refusal(of owner: MemoryOwner) -> Refusal? {
      var answer = WorkerAnswer(to: session, nil)
      answer.take(trip, by: owner, from: access, in: memory, Limits())
      if case .failure(let refusal) = answer.result { return refusal }
      return nil
    }
    #expect(refusal(of: rider)?.code == .rateLimited && opened == 0)
    #expect(refusal(of: other)?.code == .internalError && opened == 1)
    withExtendedLifetime(unread) {}
  }

  @Test("questions about webhooks are no questions to the journal: neither room nor refusals are counted together")
  func webhooks() throws {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.journal = JournalConfiguration(directory: "nobody opens it")
    }
    let request = try HandDrivenRequest(hub, "/v1/webhooks?role=ops&id=o1")
    try hub.turn {
      request.ownTurn()
      return request.isComplete
    }
    #expect(request.status == "503", "the webhooks' thread does not run")
    #expect(hub.counters.historyRefused == 0 && hub.counters.historyFull == 0)
  }

  @Test("the address is charged for the records that were read")
  func charge() {
    var limits = Limits()
    limits.requestRate = 1e-6
    limits.requestBurst = 100
    let admissions = Admissions(limits, sessionLimit: 1)
    for (rateKey, records, left) in [(7, 99, 100), (7, 1250, 88), (0, 5000, 88)] as [(UInt64, Int, Int)] {
      var answer = WorkerAnswer(to: session, nil, rateKey: rateKey)
      answer.records = records
      answer.charge(admissions, now: 0)
      #expect(admissions.allowance(7, now: 0).left == left, "\(records)")
    }
  }
}
