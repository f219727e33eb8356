// A driver's clock that was ahead, was believed, and is set right: distinguished from a backlog, and followed after a
// minute without going back in time.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

private let place = Coordinate(latitude: 48.137, longitude: 11.575)!

/// A driver's tracker with a phone whose clock a test sets.
private struct Phone {
  var tracker = Tracker()
  /// Seconds of the hub's uptime, and how far the phone's clock is ahead of that.
  var uptime = 0.0
  var ahead: Double
  /// What was published, in order.
  var published: [Timestamp] = []

  init(ahead: Double) { self.ahead = ahead }

  /// A fix of `delay` seconds ago that is sent now; in a batch where it is not live.
  mutating func send(after seconds: Double = 1, delay: Double = 0, live: Bool = true) -> Tracker.Outcome {
    uptime += seconds
    let outcome = tracker.update(
      .at(uptime + ahead - delay, place), sent: live ? .test(uptime + ahead) : nil,
      receivedAt: Int64((uptime * 1e9).rounded()))
    if let position = outcome.position { published.append(position.published) }
    return outcome
  }

  mutating func drive(_ count: Int, every seconds: Double = 1) -> [Tracker.Outcome] {
    (0..<count).map { _ in send(after: seconds) }
  }

  var isRising: Bool { zip(published, published.dropFirst()).allSatisfy { $0 < $1 } }
}

extension Tracker.Outcome {
  fileprivate var isDoubt: Bool { if case .clockDoubted = self { true } else { false } }
  fileprivate var isBelief: Bool { if case .clockBelieved = self { true } else { false } }
}

@Suite("A clock that was wrong")
struct ClockChangeTests {
  @Test("one that was 3 h ahead is followed after 60 s by the right time, and published times go on rising")
  func setRight() throws {
    var phone = Phone(ahead: 10_800)
    #expect(phone.drive(100).allSatisfy { $0.position != nil })
    let before = try #require(phone.published.last)
    phone.ahead = 0
    #expect(phone.send() == .clockDoubted(secondsBehind: 10_799))
    #expect(phone.drive(59).allSatisfy { $0.isDoubt })
    #expect(phone.send().isBelief, "60 s after the first")
    let later = phone.drive(3600).compactMap(\.position)
    #expect(later.count == 3600 && phone.isRising)
    #expect(later.allSatisfy { $0.timeSource == .hub && $0.published > before })
    let first = try #require(later.first)
    #expect(first.timestamp == .test(162), "the fix's own time is what the hub computes with")
    #expect(first.published.milliseconds - before.milliseconds == 501, "half as fast as the hub's clock")
  }

  @Test("one that was at the end of time is set right: published times stay within what can be written and stored")
  func endOfTime() throws {
    let last = Timestamp.accepted.upperBound
    var phone = Phone(ahead: last.seconds(since: .test(0)) - 10)
    #expect(phone.drive(10).contains { $0.position != nil })
    phone.ahead = 0
    #expect(phone.drive(200).contains { $0.isBelief })
    #expect(phone.published.count > 100 && phone.published.allSatisfy { $0 <= last } && phone.published.last == last)
  }

  @Test("once the fixes have caught up their own times are published again")
  func caughtUp() throws {
    var phone = Phone(ahead: 900)
    _ = phone.drive(100)
    phone.ahead = 0
    _ = phone.drive(61)
    let positions = phone.drive(2000).compactMap(\.position)
    #expect(positions.count == 2000 && phone.isRising)
    let caught = try #require(positions.firstIndex { $0.timeSource == .fix })
    #expect((1600...1700).contains(caught), "two seconds for each that is left")
    #expect(positions[caught...].allSatisfy { $0.published == $0.timestamp && $0.timeSource == .fix })
    // After a pause they have caught up at once.
    var other = Phone(ahead: 900)
    _ = other.drive(100)
    other.ahead = 0
    _ = other.drive(61)
    #expect(other.send(after: 1000).position?.timeSource == .fix)
    #expect(other.isRising)
  }

  @Test("a driver that sends seldom is believed with the first fix after 60 s that agrees")
  func seldom() {
    var phone = Phone(ahead: 7200)
    _ = phone.drive(5, every: 120)
    phone.ahead = 0
    #expect(phone.send(after: 120).isDoubt)
    #expect(phone.send(after: 120).isBelief)
    #expect(phone.isRising)
  }

  @Test("a phone that empties its queue sends old fixes in new envelopes, and is not taken for it")
  func queue() {
    var phone = Phone(ahead: 0)
    _ = phone.drive(100)
    // An hour without a network; the newest fix is sent first, and then the queue, oldest first.
    _ = phone.send(after: 3600)
    for delay in stride(from: 3600.0, to: 60, by: -1) { #expect(phone.send(after: 0.01, delay: delay) == .history) }
    for _ in 0..<50 { #expect(phone.send(after: 1, delay: 120) == .history, "a stream that is late") }
    #expect(phone.send().position?.timeSource == .fix)
  }

  @Test(
    "a queue of whole messages, with their old envelopes, is believed by nobody: it runs faster than the hub's clock")
  func staleEnvelopes() {
    var phone = Phone(ahead: 0)
    _ = phone.drive(100)
    phone.uptime += 3600
    _ = phone.send()
    phone.ahead = -3600
    for _ in 0..<600 {  // 3600 s of fixes, each 6 s, in 120 s
      phone.ahead += 5.8
      let outcome = phone.send(after: 0.2)
      #expect(outcome.position == nil)
    }
    phone.ahead = 0
    #expect(phone.send().position?.timeSource == .fix)
  }

  @Test("batches say nothing about the clock, neither for nor against it")
  func batches() {
    var phone = Phone(ahead: 10_800)
    _ = phone.drive(100)
    phone.ahead = 0
    for _ in 0..<100 { #expect(phone.send(live: false) == .history) }
    #expect(phone.send().isDoubt)
    for _ in 0..<20 {
      #expect(phone.send(live: false) == .history)
      #expect(phone.send().isDoubt)
    }
    #expect(phone.send(after: 30).isBelief)
  }

  @Test("where the old clock speaks again, nothing has happened")
  func backAgain() {
    var phone = Phone(ahead: 10_800)
    _ = phone.drive(100)
    phone.ahead = 0
    #expect(phone.drive(50).allSatisfy { $0.isDoubt })
    phone.ahead = 10_800
    #expect(phone.send().position?.timeSource == .fix)
    phone.ahead = 0
    #expect(phone.drive(50).allSatisfy { $0.isDoubt }, "a new minute begins")
  }

  @Test("a clock that was set back by up to a minute is caught up with before it would be believed")
  func smallSteps() {
    var phone = Phone(ahead: 60)
    _ = phone.drive(10)
    phone.ahead = 0
    #expect(phone.drive(60).allSatisfy { $0 == .history || $0 == .duplicate })
    #expect(phone.send().position?.timeSource == .fix)
  }

  @Test("a message that is late, or comes twice, does not begin the minute anew; a clock that is set again does")
  func disturbances() {
    var phone = Phone(ahead: 10_800)
    _ = phone.drive(100)
    phone.ahead = 0
    _ = phone.drive(30)
    phone.ahead = -20  // sent 20 s ago
    #expect(phone.send() == .history)
    phone.ahead = 0
    #expect(phone.send(after: 0.001).isDoubt)
    #expect(phone.send(after: 0) == .history, "twice")
    #expect(phone.send(after: 40).isBelief)
    phone = Phone(ahead: 10_800)
    _ = phone.drive(100)
    phone.ahead = 0
    _ = phone.drive(50)
    phone.ahead = 3600
    #expect(phone.drive(60).allSatisfy { $0.isDoubt })
    #expect(phone.send().isBelief)
  }

  @Test("a leap ahead is held back by the new clock as by any other, also one to where the old clock was")
  func leaps() {
    var phone = Phone(ahead: 10_800)
    _ = phone.drive(100)
    phone.ahead = 0
    _ = phone.drive(61)
    _ = phone.drive(100)
    phone.ahead = 10_800
    #expect(phone.send() == .held)
    phone.ahead = 0
    #expect(phone.send().position?.timeSource == .hub)
    phone.ahead = 3600
    #expect(phone.send() == .held)
    phone.ahead = 0
    #expect(phone.drive(10).allSatisfy { $0.position != nil })
    #expect(phone.isRising)
    // A leap that is confirmed, twice beyond what was published.
    phone.ahead = 90_000
    #expect(phone.send() == .held)
    #expect(phone.send().position?.timeSource == .fix)
    #expect(phone.isRising)
  }

  @Test("a clock that is set back twice is followed twice, and published times go on from where they are")
  func twice() {
    var phone = Phone(ahead: 10_800)
    _ = phone.drive(100)
    phone.ahead = 5000
    _ = phone.drive(61)
    _ = phone.drive(100)
    phone.ahead = 0
    #expect(phone.drive(60).allSatisfy { $0.isDoubt })
    #expect(phone.send().isBelief)
    #expect(phone.drive(100).allSatisfy { $0.position?.timeSource == .hub })
    #expect(phone.isRising)
    #expect(phone.tracker.latest == phone.published.last)
  }

  @Test("whatever clocks and queues do, published times rise, and no fix is published twice")
  func random() {
    var random = SplitMix64(seed: 17)
    for _ in 0..<200 {
      var phone = Phone(ahead: 0)
      var seen: Set<Int64> = []
      for _ in 0..<300 {
        if Int.random(in: 0..<40, using: &random) == 0 {
          phone.ahead = Double(Int.random(in: -5...5, using: &random)) * 1800
        }
        let delay = Int.random(in: 0..<10, using: &random) == 0 ? Double.random(in: 0...1000, using: &random) : 0
        let seconds = Double(Int.random(in: 1...40, using: &random))
        let isLive = Int.random(in: 0..<10, using: &random) > 0
        if case .accepted(let position) = phone.send(after: seconds, delay: delay, live: isLive) {
          seen.insert(position.published.milliseconds)
        }
      }
      #expect(phone.isRising)
      #expect(Set(phone.published).count == phone.published.count && seen.count <= phone.published.count)
    }
  }
}
