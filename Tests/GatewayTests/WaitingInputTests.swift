// Input that waits for later turns: who waits, and in which order.
import HubMessages
import HubTransport
import Testing

@testable import HubGateway

@Suite struct WaitingInputTests {
  @Test("who waits is in the list once, however often it is told to, and comes behind the others when it waits again")
  func once() throws {
    var budget = TurnBudget(try EventLoop(), Limits(), Admissions(Limits(), sessionLimit: 1))
    let ids = (0..<3).map { ConnectionID(slot: $0, generation: 7) }
    for id in ids + ids { budget.wait(id) }
    #expect(budget.waitingCount == 3 && budget.takeWaiting() == ids[0])
    budget.wait(ids[1])
    budget.wait(ids[0])
    budget.wait(ids[0])
    #expect((0..<4).map { _ in budget.takeWaiting() } == [ids[1], ids[2], ids[0], nil])
    #expect(!budget.isAnyoneWaiting)
  }

  @Test("a head whose body is awaited counts among what is kept, until the request is there")
  func heads() throws {
    let hub = try HandDrivenHub(clock: HandClock()) { $0.allowsDevelopmentCredentials = true }
    let request = try HandDrivenRequest(
      hub, "/v1/trips?role=ops&id=o1", method: "POST", fields: "X: \(String(repeating: "x", count: 6000))\r\n",
      announcing: 2)
    hub.loop.runTurn(timeoutMilliseconds: 0)
    hub.loop.runTurn(timeoutMilliseconds: 0)
    let kept = hub.sessions.sessions.pointee.shared.admissions.incomplete
    #expect((6000 - Limits().incompleteFreeBytes...6300).contains(kept), "\(kept)")
    request.send("{}")
    try hub.turn {
      request.ownTurn()
      return request.isComplete
    }
    #expect(hub.sessions.sessions.pointee.shared.admissions.incomplete == 0, "\(request.text)")
  }

  @Test(
    "behind as many unanswered subscriptions as a session may have its input waits, also where each message comes alone"
  )
  func unanswered() throws {
    let hub = try HandDrivenHub(clock: HandClock()) { $0.allowsDevelopmentCredentials = true }
    let peer = try HandDrivenPeer(hub, role: "rider", id: "r1")
    let slot = try #require(hub.openSlots.first)
    func ask() { hub.sessions.sessions.pointee.sessions[slot].open.subscriptions.ask() }
    func answer() {
      let loop = hub.sessions.sessions
      loop.pointee.budget.answered(&loop.pointee.sessions[slot])
    }
    func pongs(_ text: String) -> Int {
      peer.send(HandDrivenPeer.frame(HandDrivenPeer.ping(text)))
      peer.turn()
      return peer.messages.count { $0.contains("\"pong\"") }
    }
    let limit = Limits().unansweredSubscriptions
    for _ in 1..<limit { ask() }
    #expect(pongs("before") == 1)
    ask()
    #expect(pongs("first") == 1 && pongs("second") == 1)
    for _ in 1..<limit { answer() }
    #expect(pongs("third") == 1, "all of them are to be answered")
    answer()
    peer.turn()
    let texts = peer.messages.compactMap { $0.firstMatch(of: /"text":"(\w+)"/)?.1 }
    #expect(texts == ["before", "first", "second", "third"])
  }
}
