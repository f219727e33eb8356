// A device that has another network, or one again: what of a wait, or of a connection that stands, that ends.
import HubMessages
import Testing

@testable import HubClientCore

@Suite struct NetworkChangeTests {
  private func failing(_ stage: Stage, times: Int) throws {
    stage.session.start(now: stage.now)
    for _ in 0..<times {
      #expect(try stage.flush() == .connect)
      _ = stage.session.transportEnded(stage.now, failure: .connectFailed(errno: 101))
      try stage.reachDeadline()
    }
    #expect(try stage.flush() == .connect)
    _ = stage.session.transportEnded(stage.now, failure: .connectFailed(errno: 101))
  }

  @Test("a wait that the back-off asked for ends within a second, at random, and is not drawn out")
  func waiting() throws {
    var waits: Set<Int64> = []
    for seed in 1...50 {
      let stage = try Stage(seed: UInt64(seed))
      try failing(stage, times: 6)
      #expect(try #require(stage.session.deadline) - stage.now.uptime >= 30_000_000_000)
      for _ in 0..<3 {
        let before = try #require(stage.session.deadline)
        stage.session.networkChanged(stage.now)
        #expect(try #require(stage.session.deadline) <= before)
      }
      let wait = try #require(stage.session.deadline) - stage.now.uptime
      #expect(wait >= 0 && wait < 1_000_000_000)
      waits.insert(wait)
      try stage.reachDeadline()
      #expect(try stage.flush() == .connect)
      // Without a network again the wait is as long as before.
      let end = stage.session.transportEnded(stage.now, failure: .connectFailed(errno: 101))
      guard case .retry(let after) = end.next else { return #expect(Bool(false)) }
      #expect(after >= 30)
    }
    #expect(waits.count == 50)
  }

  @Test("a wait that the hub asked for stays", arguments: [1001, 1013, 4413, 4429] as [UInt16])
  func asked(code: UInt16) throws {
    let stage = try Stage()
    try stage.open()
    stage.sayClose(code)
    try stage.flush()
    _ = stage.session.transportEnded(stage.now)
    let state = stage.session.state
    stage.session.networkChanged(stage.now)
    guard case .waiting = state else { return #expect(Bool(false)) }
    #expect(stage.session.state == state)
  }

  @Test("a connection that stands has 5 s to answer a ping; whatever is heard answers")
  func standing() throws {
    let stage = try Stage()
    try stage.open()
    stage.session.networkChanged(stage.now)
    stage.session.networkChanged(stage.now)
    try stage.flush()
    #expect(stage.messages.count { if case .ping = $0.message { true } else { false } } == 1)
    #expect(stage.session.deadline == stage.now.uptime + 5_000_000_000)
    stage.say(Reply.sampling(HubMessages.SamplingAdvice(interval: 4, minDistance: 10, reason: .standing)))
    #expect(try #require(stage.session.deadline) > stage.now.uptime + 20_000_000_000)
    stage.session.networkChanged(stage.now)
    try stage.flush()
    try stage.reachDeadline()
    #expect(try stage.flush() == .abort)
    let end = stage.session.transportEnded(stage.now)
    #expect(end.cause == .silent)
    guard case .retry(let after) = end.next else { return #expect(Bool(false)) }
    #expect(after <= 5)
  }

  @Test("where nothing waits and nothing stands, nothing happens")
  func otherwise() throws {
    let stage = try Stage()
    stage.session.networkChanged(stage.now)
    #expect(stage.session.state == .idle)
    stage.session.start(now: stage.now)
    stage.session.networkChanged(stage.now)
    #expect(stage.session.state == .connecting)
    stage.session.close(stage.now)
    stage.session.networkChanged(stage.now)
    #expect(stage.session.state == .ended(.closedByUs))
  }
}
