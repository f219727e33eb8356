// Replies of a newer hub in binary: what of them an older client reads.
import HubBytes
import HubMessages
import Testing

@Suite struct BinaryNewerHubTests {
  private let time = Timestamp(milliseconds: 1_763_680_000_000)

  /// `reply` with a keyword of a newer hub in the byte that is so far from its end.
  private func newer(_ reply: Reply, _ keyword: Int) throws -> ServerEnvelope {
    var peer = BinaryPeer()
    let id = try #require(MessageID("r1"))
    var bytes = peer.write(ServerEnvelope(messageID: id, timestamp: time, message: .reply(reply)))
    #expect(try peer.readServer(bytes)?.message == .reply(reply))
    bytes[bytes.count - keyword] = 200
    let read = try #require(try peer.readServer(bytes))
    #expect(read.messageID == id && read.timestamp == time && read.unknownEvent == nil)
    return read
  }

  @Test("an answer or an end counts whatever keyword of a newer hub is in it: that part is missing, as in JSON")
  func newerKeywords() throws {
    let (id, trip) = (try #require(MessageID("m7")), try #require(Identifier("T1")))
    let state = TripState(tripID: trip, status: .accepted, driverID: nil, timestamp: time)
    let eta = ETAUpdate(
      tripID: trip, target: .pickup, eta: 60, distance: 300, arrivalTime: time, basis: .route, after: 3)
    var answer = Subscribed(
      replyTo: id, channel: .trip(trip), sequence: 3, epoch: try #require(InlineText("e")), recovered: false,
      snapshot: Subscribed.Snapshot(trip: state))
    let rest = Reply.subscribed(answer)
    answer.snapshot?.eta = eta
    let replies: [(whole: Reply, keyword: Int, rest: Reply)] = [
      (
        .sampling(SamplingAdvice(interval: 1, minDistance: 2, reason: .watched)), 1,
        .sampling(SamplingAdvice(interval: 1, minDistance: 2, reason: nil))
      ),
      (
        .unsubscribed(Unsubscribed(replyTo: nil, channel: .fleet, reason: .revoked)), 1,
        .unsubscribed(Unsubscribed(replyTo: nil, channel: .fleet, reason: nil))
      ),
      (
        .error(ErrorReply(code: .invalidTransition, message: "no", replyTo: id, status: .completed)), 1,
        .error(ErrorReply(code: .invalidTransition, message: "no", replyTo: id))
      ),
      (.ack(Ack(replyTo: id, trip: state)), 8, .ack(Ack(replyTo: id))),
      (.subscribed(answer), 2, rest),
    ]
    for (whole, keyword, rest) in replies {
      let read = try newer(whole, keyword)
      #expect(read.message == .reply(rest) && read.unknownReplyTo == nil)
    }
  }

  @Test("a result with a keyword of a newer hub is unknown, and says what it answers, as in JSON")
  func newerResult() throws {
    let (id, trip) = (try #require(MessageID("m7")), try #require(Identifier("T1")))
    let report = TripReport(tripID: trip, status: .accepted, timestamp: time, created: time, updated: time)
    let results: [(QueryResult, keyword: Int)] = [
      (.trip(report), 19), (.driver(DriverReport(driverID: trip, status: .available)), 1),
      // The kind of result.
      (.drivers(DriverList(drivers: [], more: 0)), 3),
    ]
    for (result, keyword) in results {
      let read = try newer(.result(ResultReply(replyTo: id, result: result)), keyword)
      #expect(read.message == .unknown(type: "result") && read.unknownReplyTo == id)
    }
  }
}
