import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

private let place = Coordinate(latitude: 48.137, longitude: 11.575)!
private let second: Int64 = 1_000_000_000
private let hour = 3600.0

@Suite("Fixes in time")
struct TrackOrderTests {
  @Test("The same millisecond is a duplicate, an earlier one history, and neither is published")
  func order() {
    var tracker = Tracker()
    #expect(tracker.update(.at(10, place)).position != nil)
    #expect(tracker.update(.at(10, place)) == .duplicate)
    #expect(tracker.update(.at(9.999, place)) == .history)
    #expect(tracker.update(.at(10.001, place)).position != nil)
    #expect(tracker.newest == .test(10.001))
  }

  @Test("Old timestamps are no reason to refuse, nor is a replay faster than it was recorded")
  func replay() {
    var tracker = Tracker()
    for step in 0..<100 {
      // One fix a minute, a thousand times as fast.
      let fix = Fix.at(Double(step) * 60 - 1e9, place)
      #expect(tracker.update(fix, receivedAt: Int64(step) * second * 60 / 1000).position != nil)
    }
  }

  @Test("Ten minutes ahead are followed; a millisecond more is held back")
  func limit() {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    var other = tracker
    #expect(tracker.update(.at(601, place), receivedAt: second).position != nil)
    #expect(other.update(.at(601.001, place), receivedAt: second) == .held)
  }

  @Test("A leap that the next fix confirms releases both, the held one first")
  func confirmed() throws {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    #expect(tracker.update(.at(hour, place), receivedAt: second) == .held)
    #expect(tracker.newest == .test(0))
    let outcome = tracker.update(.at(hour + 1, place), receivedAt: 2 * second)
    guard case .acceptedTwo(let held, let position) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(held.timestamp == .test(hour) && position.timestamp == .test(hour + 1))
    #expect(tracker.newest == .test(hour + 1))
  }

  @Test("One wrong timestamp is dropped and does not silence the driver")
  func wrong() {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    #expect(tracker.update(.at(8760 * hour, place), receivedAt: second) == .held)
    for step in 2..<10 {
      #expect(tracker.update(.at(Double(step), place), receivedAt: Int64(step) * second).position != nil)
    }
  }

  @Test("Leaps that do not agree with each other are held one after the other")
  func disagreeing() {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    #expect(tracker.update(.at(10 * hour, place), receivedAt: second) == .held)
    #expect(tracker.update(.at(20 * hour, place), receivedAt: 2 * second) == .held)
    #expect(tracker.update(.at(5 * hour, place), receivedAt: 3 * second) == .held)
    #expect(tracker.update(.at(5 * hour + 1, place), receivedAt: 4 * second).position != nil)
  }

  @Test("Backlog and duplicates say nothing about a held fix")
  func waiting() {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    _ = tracker.update(.at(hour, place), receivedAt: second)
    #expect(tracker.update(.at(hour, place), receivedAt: second) == .duplicate)
    #expect(tracker.update(.at(-50, place), receivedAt: second) == .history)
    #expect(tracker.update(.at(0, place), receivedAt: second) == .duplicate)
    #expect(tracker.update(.at(hour + 1, place), receivedAt: 2 * second).position?.timestamp == .test(hour + 1))
  }

  @Test("Time that passed at the hub is no leap, however long")
  func pause() {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    #expect(tracker.update(.at(12 * hour, place), receivedAt: 12 * 3600 * second).position != nil)
  }

  @Test("A held fix may be in a wrong place: then the next one is published alone")
  func heldAndRefused() throws {
    var tracker = Tracker()
    for step in 0..<30 { _ = tracker.update(.at(Double(step), place), receivedAt: Int64(step) * second) }
    let far = Globe.place(from: place, bearing: 0, meters: 2_000_000).place
    let near = Globe.place(from: place, bearing: 0, meters: 500).place
    #expect(tracker.update(.at(700, far), receivedAt: 30 * second) == .held)
    let outcome = tracker.update(.at(701, near), receivedAt: 31 * second)
    guard case .accepted(let position) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(Globe.distance(position.coordinate, near) < 5)
    #expect(tracker.update(.at(702, near), receivedAt: 32 * second).position != nil)

    #expect(tracker.update(.at(2000, near), receivedAt: 33 * second) == .held)
    guard case .acceptedHeld(let held, .tooFast) = tracker.update(.at(2001, far), receivedAt: 34 * second) else {
      Issue.record("the held fix was lost")
      return
    }
    #expect(held.timestamp == .test(2000))
  }

  @Test("A sparse drive replayed fast is followed, though each of its steps is a leap")
  func sparseReplay() {
    var tracker = Tracker()
    var published = 0
    for step in 0..<40 {
      // Steps of 15 to 45 minutes, a second apart at the hub.
      let time = Double(step) * 1800 + (step % 2 == 0 ? 0 : 900)
      switch tracker.update(.at(time, place), receivedAt: Int64(step) * second) {
      case .accepted, .clockBelieved: published += 1
      case .acceptedTwo: published += 2
      case .acceptedHeld, .history, .duplicate, .held, .clockDoubted, .refused: break
      }
    }
    #expect(published == 39)
    #expect(tracker.newest == .test(39 * 1800 + 900))
  }

  @Test("After a sparse replay, a leap is a leap again as soon as time goes by as at the hub")
  func sparseThenLive() {
    var tracker = Tracker()
    for step in 0..<10 { _ = tracker.update(.at(Double(step) * 1800, place), receivedAt: Int64(step) * second) }
    let start = 9 * 1800.0
    #expect(tracker.update(.at(start + 1, place), receivedAt: 10 * second).position != nil)
    #expect(tracker.update(.at(start + 1000, place), receivedAt: 11 * second) == .held)
  }

  @Test("The next fix confirms a leap only where it agrees: no minute more passed than at the hub")
  func agreement() {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    #expect(tracker.update(.at(hour, place), receivedAt: second) == .held)
    var other = tracker
    #expect(tracker.update(.at(hour + 65, place), receivedAt: 6 * second).position?.timestamp == .test(hour + 65))
    #expect(other.update(.at(hour + 65.001, place), receivedAt: 6 * second) == .held)
    #expect(other.update(.at(7, place), receivedAt: 7 * second).position?.timestamp == .test(7), "not silenced")
  }

  @Test("Leaps of very different lengths are no row, however many there are")
  func unlikeLeaps() {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    var time = 0.0
    for (step, leap) in [1.0, 5, 1, 5, 1, 5].enumerated() {
      time += leap * hour
      #expect(tracker.update(.at(time, place), receivedAt: Int64(step) * second) == .held)
    }
    #expect(tracker.update(.at(7, place), receivedAt: 7 * second).position != nil)
  }

  /// What a driver with a fix a second and a right clock gets published, when `wrong` gives some of them other times.
  private func drive(seconds: Int, wrong: (Int) -> Double?) -> [Double] {
    var tracker = Tracker()
    var published: [Double] = []
    for step in 0..<seconds {
      let time = Double(step)
      let outcome = tracker.update(
        .at(wrong(step) ?? time, place), receivedAt: Int64(step) * second, hubClock: .test(time))
      published += outcome.positions.map { $0.timestamp.seconds(since: .test(0)) }
    }
    return published
  }

  private func seconds(_ range: Range<Int>) -> [Double] { range.map { Double($0) } }

  @Test("Two wrong timestamps that agree do not silence a driver who was followed for a minute; three are believed")
  func twoWrong() {
    let day = 24 * hour
    let two = drive(seconds: 200) { (100..<102).contains($0) ? day + Double($0) : nil }
    #expect(two == seconds(0..<100) + seconds(102..<200))
    let three = drive(seconds: 200) { (100..<103).contains($0) ? day + Double($0) : nil }
    #expect(three == seconds(0..<100) + [day + 101, day + 102])
    let young = drive(seconds: 100) { (30..<32).contains($0) ? day + Double($0) : nil }
    #expect(young == seconds(0..<30) + [day + 30, day + 31])
  }

  @Test("A clock that was behind and is set right is believed with the next fix, however long the driver was followed")
  func wasBehind() {
    let published = drive(seconds: 200) { $0 < 100 ? Double($0) - 24 * hour : nil }
    #expect(published.count == 200)
  }

  @Test("A driver whose clock was ahead and is set right is silent until the right time has caught up")
  func setRight() {
    // Two fixes of a clock that is 15 minutes ahead: in step with the hub ever after, and yet nothing goes back.
    let published = drive(seconds: 1200) { $0 == 10 || $0 == 11 ? Double($0) + 900 : nil }
    #expect(published == seconds(0..<10) + seconds(910..<1200))
  }

  @Test("Whatever comes, what is published never goes back", arguments: 1...20 as ClosedRange<UInt64>)
  func neverBack(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let leaps = [0, 0, 0, 0, 30, 700, -700, 3600, -3600, 86_400, -86_400, 630_000_000]
    var offset = 0.0
    var tracker = Tracker()
    var newest = Timestamp(milliseconds: .min)
    var uptime: Int64 = 0
    for _ in 0..<3000 {
      uptime += Int64.random(in: 0...20, using: &random) * second
      if Int.random(in: 0..<20, using: &random) == 0 { offset = Double(leaps.randomElement(using: &random)!) }
      let wrong = Int.random(in: 0..<10, using: &random) == 0 ? Double(leaps.randomElement(using: &random)!) : 0
      let fix = Fix.at(Double(uptime / second) + offset + wrong, place)
      let outcome = tracker.update(fix, receivedAt: uptime, hubClock: .test(Double(uptime / second)))
      for position in outcome.positions {
        #expect(position.timestamp > newest)
        newest = position.timestamp
      }
    }
    #expect(tracker.newest == newest)
  }

  @Test("Clocks at the ends of what is accepted, and uptimes that go back, do not overflow")
  func extremes() {
    var tracker = Tracker()
    var random = SplitMix64(seed: 8)
    let times = [Timestamp.accepted.lowerBound, Timestamp.accepted.upperBound]
    for _ in 0..<1000 {
      var fix = Fix.at(0, place)
      fix.timestamp = times[Int(random.next() % 2)]
      fix.timestamp.milliseconds = abs(fix.timestamp.milliseconds - Int64(random.next() % 3))
      _ = tracker.update(fix, receivedAt: Int64(bitPattern: random.next()))
    }
  }
}
