// Families of endpoints, by which metrics group the times of requests; there are fewer than paths.

/// A family of endpoints.
enum HTTPFamily: UInt8, CaseIterable {
  case locations, phones, messages, drivers, trips, tracks, fences, notifications, sessions, webhooks, operators, pages,
    tokens, revocations, gtfsRealtime, other

  /// The family of a path's segments, named by the one behind `/v1/`, except for a trip's track.
  init(path: [String]) {
    if path.first != "v1" || path == ["v1", "about"] {
      self = .pages
    } else if path.last?.hasPrefix("track") == true {
      self = .tracks
    } else {
      self = HTTPFamily.allCases.first { $0.name == path[1] } ?? .other
    }
  }

  /// The label in metrics.
  var name: String { self == .gtfsRealtime ? "gtfs-realtime" : "\(self)" }
}
