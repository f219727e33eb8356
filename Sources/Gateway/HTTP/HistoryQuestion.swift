// Questions of requests to worker threads: to the journal's reader for tracks and forgotten trips, and to the webhooks'
// thread.
import HubBytes
import HubCore
import HubGeo
import HubHTTP
import HubMessages
import HubRuntime
import HubWebhooks

/// The form of a track.
struct TrackRequest: Sendable, Equatable {
  var format: TrackFormat
  var source = TrackSource.filtered
  /// Metres; 0 for all points.
  var toleranceMeters = 0.0
}

/// A question to a worker thread.
enum WorkerQuestion: Sendable {
  case history(HistoryQuestion)
  case webhooks(WebhookQuestion, TimeFormat)
}

enum HistoryQuestion: Sendable {
  /// A trip that the hub has forgotten, or its track.
  case forgotten(Identifier, TrackRequest?, TimeFormat)
  /// The track of a known trip.
  case track(TripReport, TrackRequest, TimeFormat)
  /// A page of trips that ended by a time, behind others that the hub knows.
  case trips(TripListQuery, endedBy: Timestamp, behind: [TripReport], TimeFormat)

  /// Answers on the reader's thread.
  func answer(from access: HistoryAccess, _ limits: Limits) -> Result<Response, Refusal> {
    do throws(HistoryError) {
      switch self {
      case .forgotten(let id, let track, let time):
        guard let trip = try access.trip(id) else {
          return .failure(Refusal(.unknownTrip, "neither the hub nor its journal has such a trip"))
        }
        return .success(
          try track.map { (track) throws(HistoryError) in
            try access.response(trip, track, time, limits)
          } ?? Response(trip, time: time))
      case .track(let trip, let track, let time): return .success(try access.response(trip, track, time, limits))
      case .trips(let query, let endedBy, let known, let time):
        var trips = try access.trips(query, endedBy: endedBy, limit: limits.historyTrips)
        let hasMore = trips.count > query.limit
        if hasMore { trips.removeLast() }
        let next = hasMore ? trips.last.map { TripCursor.forgotten(below: $0.number) } : nil
        let forgotten = trips.map { trip in
          var short = trip.report
          short.route = nil
          return short
        }
        return .success(Response(known + forgotten, next: next, time: time))
      }
    } catch {
      return .failure(Refusal(error))
    }
  }
}

extension HistoryAccess {
  /// A trip's track in the requested form.
  fileprivate func response(
    _ trip: TripReport, _ request: TrackRequest, _ time: TimeFormat, _ limits: Limits
  ) throws(HistoryError) -> Response {
    var track = try track(of: trip, request.source, limit: limits.trackFixes, rules: limits.hub.tracking)
    if request.toleranceMeters > 0 { track = track.simplified(toleranceMeters: request.toleranceMeters) }
    var bytes = ByteBuffer()
    request.format.write(track, time: time, into: &bytes)
    let name = "attachment; filename=\"\(trip.tripID).\(request.format.rawValue)\""
    return Response(
      .ok, contentType: request.format.mediaType, body: bytes.array(),
      fields: [OutgoingField("Content-Disposition", name)])
  }
}

extension Refusal {
  fileprivate init(_ error: HistoryError) {
    switch error {
    case .journal: self.init(.internalError, "the journal cannot be read there; see journal verify")
    case .tooManyFixes(let limit):
      self.init(.tooLarge, "this trip has more than \(limit) fixes; see journal export")
    case .tooManyTrips(let limit):
      self.init(.tooLarge, "more than \(limit) trips have ended since then; see journal export")
    case .stopping: self.init(.shuttingDown, "the hub is shutting down", retryAfter: 5)
    }
  }

  /// Too many images wait for the disk, or are unread.
  static func mapIsBusy(with reason: String = "this hub reads its map for many others now") -> Refusal {
    Refusal(.rateLimited, reason, retryAfter: 1, counting: { $0.count(.tileQuestions) })
  }

  /// Too many questions wait for the reader, or too many of its answers are unread.
  static let journalIsBusy = Refusal(
    .rateLimited, "the journal's reader is busy", retryAfter: 1)
}
