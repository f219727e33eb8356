// `GET /v1/gtfs-realtime/vehicle-positions`: all vehicles for planners of journeys.
//
// A feed is built page by page: the hub is asked for the next drivers a turn after the last page was written, so that
// ten thousand of them delay nobody. A complete feed is reused for some seconds: one that is open to everybody costs
// the hub no more than one reader does. If the client that asked disconnects, the next request continues its draft, so
// clients that reset their connections do not stop the feed. A feed of one vehicle type is built for each request, and
// charged.
import HubBytes
import HubCore
import HubHTTP
import HubMessages

/// A loop's newest complete feed, and the state of the next one.
final class VehicleFeeds {
  private var newest: (feed: Result<[UInt8], Refusal>, made: Int64)?
  fileprivate(set) var isBeingMade = false
  /// The unfinished next feed, where the client that asked for it has disconnected.
  fileprivate var abandoned: FeedDraft?

  /// The newest feed at `now` (uptime, ns); nil where it is too old. While the next one is being made, twice the age is
  /// accepted. Throws the refusal where the newest could not be made.
  func body(at now: Int64) throws(Refusal) -> [UInt8]? {
    let age = nanoseconds(Limits.vehicleFeedSeconds) * (isBeingMade ? 2 : 1)
    guard let newest, now - newest.made < age else { return nil }
    return try newest.feed.get()
  }

  func keep(_ feed: Result<[UInt8], Refusal>, now: Int64) { newest = (feed, now) }

  /// A draft of the next feed: the abandoned one if it is recent, else an empty one.
  fileprivate func takeDraft(_ now: Moment) -> FeedDraft {
    defer { abandoned = nil }
    guard let abandoned, now.uptime - abandoned.begun < nanoseconds(Limits.vehicleFeedSeconds) else {
      return FeedDraft(now)
    }
    return abandoned
  }
}

/// A feed's pages so far.
private final class FeedDraft {
  var buffer = ByteBuffer()
  var count = 0
  /// Where the next page begins; nil for the first one.
  var cursor: String?
  let begun: Int64

  init(_ now: Moment) {
    begun = now.uptime
    VehiclePositions.begin(now.timestamp, into: &buffer)
  }
}

/// A feed that is being built. It belongs to the request that waits for it.
final class VehicleFeed {
  private let feeds: VehicleFeeds
  /// Only vehicles of this type; such a feed is not for everybody, and not kept.
  fileprivate let type: InlineText?
  /// Counts a feed of one type for its identity; nil for the feed of all vehicles.
  private let reservation: QuestionReservation?
  private let draft: FeedDraft
  /// Whether the feed is complete, or has failed.
  private var isOver = false

  init(_ feeds: VehicleFeeds, _ type: InlineText?, _ now: Moment, _ reservation: QuestionReservation? = nil) {
    (self.feeds, self.type, self.reservation) = (feeds, type, reservation)
    draft = type == nil ? feeds.takeDraft(now) : FeedDraft(now)
    if type == nil { feeds.isBeingMade = true }
  }

  deinit {
    guard type == nil else { return }
    feeds.isBeingMade = false
    if !isOver { feeds.abandoned = draft }
  }

  fileprivate var cursor: String? { draft.cursor }

  fileprivate func append(_ page: DriverList, atMost limit: Int) throws(Refusal) {
    for report in page.drivers where type == nil || report.vehicleType == type {
      VehiclePositions.write(report, into: &draft.buffer)
      draft.count += 1
    }
    draft.cursor = page.cursor
    guard draft.count <= limit else {
      let refusal = Refusal(.tooLarge, "a feed has at most \(limit) vehicles")
      end(.failure(refusal))
      throw refusal
    }
  }

  /// The complete feed.
  fileprivate func finish() -> [UInt8] {
    let body = draft.buffer.array()
    end(.success(body))
    return body
  }

  /// Ends the feed; later requests get the same result, unless it is of one type.
  private func end(_ feed: Result<[UInt8], Refusal>) {
    isOver = true
    if type == nil { feeds.keep(feed, now: draft.begun) }
  }
}

enum VehicleFeedEndpoint {
  static func show(_ call: HTTPCall) throws(Refusal) -> Outcome {
    if !call.context.configuration.isVehicleFeedPublic {
      guard try call.caller().opensVehicleFeed else {
        throw Refusal(.forbidden, "all vehicles are for ops, and for tokens whose channels have fleet")
      }
    }
    let parameters: [StaticString] = ["vehicleType"] + HTTPRoute.commonParameters
    if let fault = call.query.fault(knowing: parameters) { throw Refusal(.badMessage, "\(fault)") }
    let feeds = call.context.settings.vehicleFeeds
    let now = call.context.now
    _ = try TimeFormat(call.query)
    if let type = try call.query.word("vehicleType") {
      let caller = try call.caller()
      guard caller.opensVehicleFeed else {
        throw Refusal(.forbidden, "vehicleType is for ops, and for tokens whose channels have fleet")
      }
      let reservation = try reserve(for: caller, call.context.settings.shared.admissions)
      return ask(VehicleFeed(feeds, type, now, reservation), call.request, call.context)
    }
    if let body = try feeds.body(at: now.uptime) { return .respond(response(body, isShared: true)) }
    guard !feeds.isBeingMade else {
      throw Refusal(.rateLimited, "the feed is being made", status: .serviceUnavailable, retryAfter: 1)
    }
    return ask(VehicleFeed(feeds, nil, now), call.request, call.context)
  }

  /// Counts a feed of one type for its caller.
  private static func reserve(
    for caller: Credential, _ admissions: Admissions
  ) throws(Refusal) -> QuestionReservation {
    guard
      let reservation = QuestionReservation(
        of: caller, atMost: Limits.typedVehicleFeedsPerIdentity, in: admissions)
    else {
      throw Refusal(
        .rateLimited, "this identity has too many feeds of one vehicle type and tracks under way",
        status: .tooManyRequests, retryAfter: 1, counting: { $0.count(.queriesPerIdentity) })
    }
    return reservation
  }

  /// A page of drivers has come: asks the hub for the next one, or answers.
  static func answer(
    _ page: DriverList, _ feed: VehicleFeed, _ request: HTTPRequest, _ context: HTTPContext
  ) throws(Refusal) -> Outcome {
    try feed.append(page, atMost: context.limits.vehiclesPerFeed)
    guard feed.cursor == nil else { return ask(feed, request, context) }
    return .respond(response(feed.finish(), isShared: feed.type == nil))
  }

  /// Asks for a page. For a feed of one type it is charged now: the hub looks for it also where the asker is gone.
  private static func ask(_ feed: VehicleFeed, _ request: HTTPRequest, _ context: HTTPContext) -> Outcome {
    let states = Set(DriverListQuery.State.allCases).subtracting([.offline])
    var page = DriverListQuery(states: states, limit: context.limits.vehiclesPerTurn)
    if feed.type != nil, request.rateKey != 0 {
      let units = page.limit / WorkUnits.vehicles
      context.settings.shared.admissions.chargeMore(request.rateKey, units, now: context.now.uptime)
    }
    if let cursor = feed.cursor { _ = page.resumes(from: cursor) }
    return .ask([.query(context.session, .list(page), replyTo: nil)], .vehicles(feed))
  }

  private static func response(_ body: [UInt8], isShared: Bool) -> Response {
    var response = Response(.ok, contentType: "application/x-protobuf", body: body)
    response.isShared = isShared
    return response
  }
}
