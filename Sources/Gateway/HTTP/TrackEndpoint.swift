// `GET /v1/trips/{id}/track`, with `.geojson`, `.gpx` or `.csv` or by `Accept`: the hub decides about the right and
// gives what it knows; then the journal is read.
import HubHTTP
import HubMessages
import HubRuntime

enum TrackEndpoint {
  /// For those who may subscribe to the trip. `suffix`: that of the path.
  static func show(_ call: HTTPCall, _ suffix: TrackFormat?) throws(Refusal) -> Outcome {
    guard try !call.caller().isShare else {
      throw Refusal(.forbidden, "a share opens its trip, not the track before it")
    }
    guard call.context.settings.hasHistory else {
      throw Refusal(.notFound, "this hub stores nothing, so it has no tracks (--no-journal)")
    }
    guard let format = suffix ?? TrackFormat(accept: call.request.head.fields.string("accept")) else {
      throw Refusal(
        .badMessage, "a track is application/geo+json, application/gpx+xml or text/csv", status: .notAcceptable)
    }
    var track = TrackRequest(format: format)
    if let text = try call.query.parameter("source") {
      guard let source = TrackSource(rawValue: text) else {
        throw Refusal(.badMessage, "source must be raw or filtered")
      }
      track.source = source
    }
    if let text = try call.query.parameter("tolerance") {
      guard let meters = Double(text), (0...1_000_000).contains(meters) else {
        throw Refusal(.badMessage, "tolerance must be 0 to 1000000 metres")
      }
      track.toleranceMeters = meters
    }
    return try TripEndpoints.show(call, track: track)
  }
}
