// A session's pace by itself: what it answers, in turn.
import HubMessages
import HubTransport
import Testing

@testable import HubGateway

@Suite struct PacingTests {
  private let rate = Pacing.Rate(units: 10, burst: 5)
  private var limits: Limits {
    var limits = Limits()
    limits.rateWarningSeconds = 5
    limits.rateCloseSeconds = 60
    limits.badMessages = 2
    limits.badMessageWindowSeconds = 60
    return limits
  }

  private func seconds(_ seconds: Double) -> Int64 { 1_000_000_000_000 + nanoseconds(seconds) }

  @Test("who owes may owe; what comes before it is level has to wait, and continues when it is")
  func debt() {
    var pacing = Pacing(rate, now: seconds(0))
    pacing.charge(5, rate, now: seconds(0))
    #expect(!pacing.isInDebt)
    pacing.charge(10, rate, now: seconds(0))
    #expect(pacing.isInDebt && pacing.updateDebt(rate, now: seconds(0.5)))
    pacing.beginPause(now: seconds(0.5))
    guard case .pause(let until) = pacing.check(rate, limits, now: seconds(0.5)) else {
      Issue.record("it is not paused")
      return
    }
    #expect(until >= seconds(1) && until < seconds(1.1))
    guard case .proceed = pacing.check(rate, limits, now: until) else {
      Issue.record("it is paused")
      return
    }
    #expect(!pacing.isPaused && !pacing.isInDebt)
  }

  @Test("who stays over its rate is warned once, and closed with 4429")
  func overRate() {
    var pacing = Pacing(rate, now: seconds(0))
    var received: [Double] = []
    pacing.charge(10_000, rate, now: seconds(0))
    pacing.beginPause(now: seconds(0))
    for second in 1...100 {
      let time = Double(second)
      switch pacing.check(rate, limits, now: seconds(time)) {
      case .proceed: Issue.record("it is still over its rate")
      case .pause: break
      case .warn: received.append(time)
      case .close(let reason):
        #expect(reason == .overRate && time == 60 && received == [5])
        return
      }
    }
    Issue.record("it was not closed")
  }

  @Test("a rate of 0 charges nothing")
  func noRate() {
    let none = Pacing.Rate(units: 0, burst: 1)
    var pacing = Pacing(none, now: seconds(0))
    pacing.charge(1_000_000, none, now: seconds(0))
    #expect(!pacing.isInDebt)
  }

  @Test("who was in debt goes on at once where a new token has no limit")
  func noRateAnyMore() {
    let (some, none) = (Pacing.Rate(units: 1, burst: 1), Pacing.Rate(units: 0, burst: 1))
    var pacing = Pacing(some, now: seconds(0))
    pacing.charge(50, some, now: seconds(0))
    #expect(pacing.isInDebt)
    let isOver = pacing.updateDebt(none, now: seconds(0))
    #expect(!isOver && !pacing.isInDebt)
  }

  @Test("too many messages at fault within the window close with 4400, and others do not")
  func badMessages() {
    func close(_ times: [Double]) -> CloseReason? {
      var pacing = Pacing(rate, now: seconds(0))
      for time in times {
        if case .close(let reason) = pacing.countBadMessage(limits, now: seconds(time)) { return reason }
      }
      return nil
    }
    #expect(close([1, 2]) == nil)
    #expect(close([1, 2, 3]) == .tooManyBadMessages)
    #expect(close([1, 2, 70, 71]) == nil)
  }

  @Test("A quarter of the descriptors, 80 to 512, is kept for files and what is delivered to others")
  func reservedDescriptors() {
    let connections = [60, 128, 1024, 65_536].map { Limits().eventLoop(loops: 1, openFiles: $0).maximumConnections }
    #expect(connections == [16, 48, 768, 65_024])
  }

  @Test("a loop under load pauses twice as long where there are several, and never where it shall not")
  func turnPace() {
    var limits = Limits()
    limits.loop.turnPaceMicroseconds = 200
    let paces = [1, 2, 8].map { limits.eventLoop(loops: $0, openFiles: 1024).turnPaceMicroseconds }
    #expect(paces == [200, 400, 400])
    limits.loop.turnPaceMicroseconds = 0
    #expect(limits.eventLoop(loops: 2, openFiles: 1024).turnPaceMicroseconds == 0)
  }
}
