// The tracker over a restart: what is stored beside a position must make the next fix no worse than without one.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct TrackerRestartTests {
  /// As it is read back from the bytes of a journal.
  private func restarted(_ tracker: Tracker, _ position: Position) throws -> Tracker {
    var bytes = [UInt8](repeating: 0xAA, count: StoredTracking.size)
    bytes.withUnsafeMutableBytes {
      StoredTracking(clockOffset: 12, sendingInterval: 3, motion: tracker.storedMotion).write(into: $0)
    }
    let read = bytes.withUnsafeBytes { StoredTracking($0) }
    let stored = try #require(read)
    #expect(stored.clockOffset == 12 && stored.sendingInterval == 3)
    var fresh = Tracker()
    fresh.resume(at: position, stored.motion)
    fresh.resume(after: position.timestamp, published: nil, receivedAt: 0)
    return fresh
  }

  /// Mean error of the first position after a restart at every tenth fix: with the filter's state stored, without a
  /// restart, and with a filter that begins anew; and how many fixes were refused or absorbed.
  private func compare(
    _ errors: PhoneErrors, every: Double, seed: UInt64
  ) throws -> (resumed: Double, unbroken: Double, fresh: Double, rejected: (resumed: Int, unbroken: Int)) {
    let samples = SimulatedDrive(seed: seed, seconds: 3000).fixes(errors, every: every, seed: seed)
    var tracker = Tracker()
    var last: Position?
    var (resumed, unbroken, fresh, count) = (0.0, 0.0, 0.0, 0.0)
    var rejected = (resumed: 0, unbroken: 0)
    for (number, sample) in samples.enumerated() {
      let before = tracker
      let position = tracker.update(sample.fix).position
      defer { last = position ?? last }
      guard number > 60, number % 10 == 0, let position, let last else { continue }
      var second = try restarted(before, last)
      guard let again = second.update(sample.fix).position else {
        rejected.resumed += 1
        continue
      }
      var third = Tracker()
      resumed += Globe.distance(again.coordinate, sample.truth)
      unbroken += Globe.distance(position.coordinate, sample.truth)
      fresh += Globe.distance(third.update(sample.fix).position!.coordinate, sample.truth)
      rejected.resumed += again.absorbed == nil ? 0 : 1
      rejected.unbroken += position.absorbed == nil ? 0 : 1
      count += 1
    }
    return (resumed / count, unbroken / count, fresh / count, rejected)
  }

  @Test(
    "the first position after a restart is as good as without one",
    arguments: [PhoneErrors(), .bad, PhoneErrors(white: 3, stated: 8, hasMotion: false)], [1.0, 4])
  func firstPosition(errors: PhoneErrors, every: Double) throws {
    for seed in 1...4 as ClosedRange<UInt64> {
      let errorsOf = try compare(errors, every: every, seed: seed)
      // Of a bad phone many positions are in doubt for one fix, and what could take them back is not stored.
      let worse = errors.wild > 0 ? 1.15 : 1.08
      #expect(errorsOf.resumed < errorsOf.unbroken * worse + 0.02, "\(errorsOf)")
      #expect(abs(errorsOf.rejected.resumed - errorsOf.rejected.unbroken) <= 2, "\(errorsOf)")
    }
  }

  @Test("without what was learnt of a bad phone it would be worse")
  func worth() throws {
    let errorsOf = try compare(.bad, every: 1, seed: 2)
    #expect(errorsOf.fresh > errorsOf.resumed * 1.3, "\(errorsOf)")
  }

  @Test("a fix far off is not believed after a restart either, and a car that stands keeps standing")
  func gate() throws {
    var tracker = Tracker()
    var position: Position?
    for second in 0..<60 {
      position = tracker.update(.at(Double(second), at(48, 11), accuracy: 5, speed: 0)).position
    }
    var second = try restarted(tracker, position!)
    #expect(second.filter?.isStanding == true)
    let far = Globe.place(from: at(48, 11), bearing: 90, meters: 300).place
    let outcome = second.update(.at(61, far, accuracy: 5, speed: 0))
    #expect(outcome.position?.absorbed != nil, "\(outcome)")
    #expect(Globe.distance(outcome.position!.coordinate, at(48, 11)) < 3)
    var third = try restarted(tracker, position!)
    #expect(third.update(.at(59, at(48, 11), accuracy: 5)) == .duplicate)
    #expect(third.update(.at(58, at(48, 11), accuracy: 5)) == .history)
  }

  @Test("bytes that no hub writes are refused: an offset out of range, flags, a number that no filter has")
  func refused() {
    var random = SplitMix64(seed: 5)
    for _ in 0..<20_000 {
      let bytes = (0..<StoredTracking.size).map { _ in UInt8.random(in: 0...255, using: &random) }
      guard let read = bytes.withUnsafeBytes({ StoredTracking($0) }) else { continue }
      var again = [UInt8](repeating: 0, count: StoredTracking.size)
      again.withUnsafeMutableBytes { read.write(into: $0) }
      #expect(again == bytes)
      guard let motion = read.motion else { continue }
      var tracker = Tracker()
      let position = Position(
        coordinate: at(48, 11), speed: 3, heading: 2, accuracy: 4, confidence: .high, timestamp: .test(0))
      tracker.resume(at: position, motion)
      #expect(tracker.update(.at(1, at(48, 11))).position?.accuracy.isFinite == true)
    }
    #expect([UInt8](repeating: 255, count: StoredTracking.size).withUnsafeBytes { StoredTracking($0) } == nil)
  }
}
