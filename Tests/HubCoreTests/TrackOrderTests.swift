import Geo
import Messages
import TestSupport
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
    #expect(tracker.heldAndDropped == 0)
  }

  @Test("One wrong timestamp is dropped and does not silence the driver")
  func wrong() {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    #expect(tracker.update(.at(8760 * hour, place), receivedAt: second) == .held)
    for step in 2..<10 {
      #expect(tracker.update(.at(Double(step), place), receivedAt: Int64(step) * second).position != nil)
    }
    #expect(tracker.heldAndDropped == 1)
  }

  @Test("Leaps that do not agree with each other are held one after the other")
  func disagreeing() {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    #expect(tracker.update(.at(10 * hour, place), receivedAt: second) == .held)
    #expect(tracker.update(.at(20 * hour, place), receivedAt: 2 * second) == .held)
    #expect(tracker.update(.at(5 * hour, place), receivedAt: 3 * second) == .held)
    #expect(tracker.heldAndDropped == 2)
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
    #expect(tracker.heldAndDropped == 1)
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
      case .accepted: published += 1
      case .acceptedTwo: published += 2
      case .acceptedHeld, .history, .duplicate, .held, .refused: break
      }
    }
    #expect(published == 39 && tracker.heldAndDropped == 1)
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

  /// A driver with a fix each two seconds, of which two came from a clock a day ahead.
  private func misled() -> Tracker {
    var tracker = Tracker()
    _ = tracker.update(.at(0, place), receivedAt: 0)
    _ = tracker.update(.at(24 * hour, place), receivedAt: second)
    #expect(tracker.update(.at(24 * hour + 1, place), receivedAt: 2 * second).position != nil)
    return tracker
  }

  @Test("Two wrong timestamps that agree silence a driver for half a minute and no longer")
  func twoWrong() throws {
    var tracker = misled()
    let there = Globe.place(from: place, bearing: 0, meters: 300).place
    var first: Double?
    for step in stride(from: 4.0, to: 120, by: 2) {
      guard let position = tracker.update(.at(step, there), receivedAt: Int64(step) * second).position else { continue }
      first = first ?? step
      #expect(position.timestamp == .test(step) && Globe.distance(position.coordinate, there) < 5)
    }
    #expect(try #require(first) == 34)
    #expect(tracker.newest == .test(118))
  }

  @Test("A backlog never brings the track back: it comes faster than it was recorded")
  func backlog() {
    var tracker = misled()
    for step in 0..<2000 {
      let outcome = tracker.update(.at(4 + Double(step) * 5, place), receivedAt: Int64(step) * second / 10)
      #expect(outcome == .history)
    }
    #expect(tracker.newest == .test(24 * hour + 1))
  }

  @Test("Nor does anything behind the newest while fixes at its side come")
  func backlogBesideLive() {
    var tracker = misled()
    for step in 4..<300 {
      let uptime = Int64(step) * second
      if step % 10 == 0 {
        #expect(tracker.update(.at(24 * hour + Double(step), place), receivedAt: uptime).position != nil)
      }
      #expect(tracker.update(.at(Double(step), place), receivedAt: uptime) == .history)
    }
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
