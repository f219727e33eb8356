// Shares as a trip holds them: how many, for how long, and how often.
import HubBytes
import HubMessages
import Testing

@testable import HubCore

@Suite struct TripSharesTests {
  private let start = Timestamp(milliseconds: 1_763_680_000_000)

  private func trip() throws -> Trip {
    Trip(
      id: try #require(Identifier("T1")), number: 1, status: .requested, at: start, by: .ops,
      now: Moment(uptime: 0, timestamp: start))
  }

  private func share(_ number: Int, expires: Timestamp? = nil) throws -> TripShare {
    TripShare(id: try #require(Identifier("s\(number)")), created: start, expires: expires)
  }

  @Test("shares that have expired make room for others")
  func expired() throws {
    var trip = try trip()
    let end = Timestamp(milliseconds: start.milliseconds + 1000)
    for number in 0..<HubLimits.sharesPerTrip { try trip.share(try share(number, expires: end), at: start) }
    #expect(throws: ErrorReply.self) { try trip.share(try share(100), at: start) }
    try trip.share(try share(101), at: end)
    #expect(trip.shares.map(\.id) == [try share(101).id])
  }

  @Test("a trip is shared so many times, however many of its shares have ended")
  func made() throws {
    var trip = try trip()
    for number in 0..<HubLimits.sharesMadePerTrip {
      let share = try share(number)
      try trip.share(share, at: start)
      #expect(try trip.endShare(share.id).holder == share.holder)
    }
    let refusal = #expect(throws: ErrorReply.self) { try trip.share(try share(100), at: start) }
    #expect(refusal?.code == .rateLimited && refusal?.isOwnLimit == true)
    #expect(trip.shares.count == HubLimits.sharesMadePerTrip && trip.shares.allSatisfy(\.isEnded))
  }

  @Test("a share that has ended is not made again by who repeats late that it is made")
  func repeatedLate() throws {
    var trip = try trip()
    let (first, second) = (try share(1), try share(2))
    let holder = Actor(role: .rider, id: first.holder)
    try trip.share(first, at: start)
    #expect(trip.isShared(with: holder, at: start))
    _ = try trip.endShare(first.id)
    for share in [first, second, first] {
      try trip.share(share, at: start)
      // However far back the clock is set.
      for time in [start, Timestamp(milliseconds: 0)] { #expect(!trip.isShared(with: holder, at: time)) }
    }
    #expect(throws: ErrorReply.self) { try trip.endShare(first.id) }
    #expect(trip.shares.filter { !$0.isEnded } == [second])
  }

  @Test("a restart makes no room for more shares, however many have ended")
  func restarted() throws {
    var trip = try trip()
    for number in 0..<HubLimits.sharesMadePerTrip {
      try trip.share(try share(number), at: start)
      _ = try trip.endShare(try share(number).id)
    }
    var restarted = Trip(trip.durable, now: 1)
    #expect(restarted.shares == trip.shares)
    #expect(throws: ErrorReply.self) { try restarted.share(try share(100), at: start) }
  }

  @Test("shares that have expired count, also where a restart has read the trip's record")
  func expiredAndRestarted() throws {
    var trip = try trip()
    for number in 0..<HubLimits.sharesMadePerTrip {
      let time = Timestamp(milliseconds: start.milliseconds + Int64(number))
      try trip.share(try share(number, expires: Timestamp(milliseconds: time.milliseconds + 1)), at: time)
    }
    #expect(trip.shares.count == 1)
    var bytes = ByteBuffer()
    RecordWriter.write(.trip(trip.durable), into: &bytes)
    let read = try bytes.withBytes { bytes throws(RecordError) in
      var reader = RecordReader(bytes)
      return try DurableRecord.next(from: &reader)
    }
    guard case .trip(let durable) = read else {
      Issue.record("\(String(describing: read))")
      return
    }
    var restarted = Trip(durable, now: 1)
    #expect(throws: ErrorReply.self) { try restarted.share(try share(100), at: Timestamp(milliseconds: .max)) }
  }
}
