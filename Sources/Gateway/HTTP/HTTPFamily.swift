// What the times of requests are told apart by in the metrics: families of endpoints, of which there are fewer than of
// paths.

/// A family of endpoints.
enum HTTPFamily: UInt8, CaseIterable {
  case locations, phones, messages, drivers, trips, tracks, fences, notifications, sessions, operators, pages, other

  /// That of paths that begin with `/v1/` and this word.
  init(word: String) { self = HTTPFamily.allCases.first { $0.name == word } ?? .other }

  /// As the label says it.
  var name: String { "\(self)" }
}
