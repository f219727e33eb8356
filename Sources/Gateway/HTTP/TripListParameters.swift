// The query of `GET /v1/trips`, read into checked values.
import HubBytes
import HubCore
import HubHTTP
import HubMessages

/// Where a list of trips continues. To clients it is opaque.
enum TripCursor: Equatable {
  /// With known trips, of the hub or all hubs of a cluster.
  case known(ListCursor)
  /// With forgotten ones, with smaller numbers.
  case forgotten(below: UInt64)

  init?(_ text: String) {
    if let cursor = ListCursor(text, of: .trips) {
      self = .known(cursor)
      return
    }
    guard let number = UInt64(text.dropFirst(), radix: 36) else { return nil }
    self = .forgotten(below: number)
    guard self.text == text else { return nil }
  }

  var text: String {
    switch self {
    case .known(let cursor): cursor.text(of: .trips)
    case .forgotten(let number): "h" + String(number, radix: 36)
    }
  }
}

struct TripListParameters: Equatable {
  var query: TripListQuery
  /// It continues with forgotten trips.
  var isOfHistory = false

  /// `status` (one or several with commas), `driver`, `since` (a time as `time=` says), `limit`, `cursor`.
  init(_ query: Query, time: TimeFormat, maximumLimit: Int) throws(Refusal) {
    var list = TripListQuery(limit: min(Limits.pageEntries, maximumLimit))
    if let text = try query.parameter("status") {
      list.statuses = try TripListParameters.statuses(text)
    }
    if let text = try query.parameter("driver") {
      guard let id = Identifier(text) else {
        throw Refusal(.badMessage, "driver must be an id: 1-64 of A-Z a-z 0-9 . _ -")
      }
      list.driverID = id
    }
    if let text = try query.parameter("since") {
      guard let since = Timestamp(text, time) else {
        throw Refusal(.badMessage, "since must be a time in the format that time= says (unix_ms by default)")
      }
      list.since = try since.checked("since", time)
    }
    if let limit = try query.pageLimit(maximumLimit) { list.limit = limit }
    if let text = try query.parameter("cursor") {
      guard let cursor = TripCursor(text) else {
        throw Refusal(.badMessage, "cursor must be the value of next in an earlier answer")
      }
      switch cursor {
      case .known(let cursor): (list.below, list.lastHub) = (cursor.number, cursor.hub)
      case .forgotten(let number):
        list.below = number
        isOfHistory = true
      }
    }
    self.query = list
  }

  private static func statuses(_ text: String) throws(Refusal) -> TripStatusSet {
    var states: [TripStatus] = []
    for word in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let status = TripStatus.allCases.first(where: { "\($0.name)" == word }) else {
        throw Refusal(.badMessage, "status must be a comma-separated list of trip states, such as requested,accepted")
      }
      states.append(status)
    }
    return TripStatusSet(states)
  }
}

extension Timestamp {
  /// This time, the start of the range that a request gives as `name`; any time of 1 January 1970 means everything.
  /// Throws for other times before 2000, which are most likely seconds instead of milliseconds.
  func checked(_ name: StaticString, _ format: TimeFormat) throws(Refusal) -> Timestamp {
    if self >= .earliestFromClients || 0..<86_400_000 ~= milliseconds { return self }
    throw Refusal(.badMessage, "\(name): \(format.earlyExplanation)")
  }

  /// A time of a query, in the format of the request.
  init?(_ text: String, _ format: TimeFormat) {
    var text = text
    let made = text.withUTF8 { bytes -> Timestamp? in
      let bytes = UnsafeRawBufferPointer(bytes)
      if format == .rfc3339 { return unsafe Timestamp(rfc3339: bytes) }
      return unsafe parseDouble(bytes).flatMap { Timestamp(number: $0, format: format) }
    }
    guard let made else { return nil }
    self = made
  }
}
