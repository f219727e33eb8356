// What the times of requests are told apart by in the metrics: families of endpoints, of which there are fewer than of
// paths.

/// A family of endpoints.
enum HTTPFamily: UInt8, CaseIterable {
  case locations, phones, messages, drivers, trips, tracks, fences, notifications, sessions, webhooks, operators, pages,
    tokens, revocations, gtfsRealtime, other

  /// That of a path between its slashes: what follows `/v1/` names it, but for a trip's track.
  init(path: [String]) {
    if path.first != "v1" || path == ["v1", "about"] {
      self = .pages
    } else if path.last?.hasPrefix("track") == true {
      self = .tracks
    } else {
      self = HTTPFamily.allCases.first { $0.name == path[1] } ?? .other
    }
  }

  /// As the label says it.
  var name: String { self == .gtfsRealtime ? "gtfs-realtime" : "\(self)" }
}
