// What can be asked for over HTTP, and how.
import HubHTTP
import HubRuntime

enum Endpoint: Equatable {
  case socket, health, readiness, metrics, locations, nearby, within, trips, fences, notifications
  case driver(String)
  case trip(String)
  case fence(String)
  /// The format where the path names one.
  case track(String, TrackFormat?)

  /// Nil where there is nothing at the path.
  init?(path segments: [String]) {
    switch segments {
    case ["v1", "ws"]: self = .socket
    case ["healthz"]: self = .health
    case ["readyz"]: self = .readiness
    case ["metrics"]: self = .metrics
    case ["v1", "locations"]: self = .locations
    case ["v1", "drivers", "nearby"]: self = .nearby
    case ["v1", "trips"]: self = .trips
    case ["v1", "fences"]: self = .fences
    case ["v1", "notifications"]: self = .notifications
    case ["v1", "drivers", "within"]: self = .within
    default:
      if let track = Endpoint.track(segments) {
        self = track
        return
      }
      guard segments.count == 3, segments[0] == "v1" else { return nil }
      switch segments[1] {
      case "drivers": self = .driver(segments[2])
      case "trips": self = .trip(segments[2])
      case "fences": self = .fence(segments[2])
      default: return nil
      }
    }
  }

  /// `/v1/trips/{id}/track`, with or without a suffix.
  private static func track(_ segments: [String]) -> Endpoint? {
    guard segments.count == 4, segments[0] == "v1", segments[1] == "trips" else { return nil }
    if segments[3] == "track" { return .track(segments[2], nil) }
    guard let format = TrackFormat.allCases.first(where: { segments[3] == "track.\($0.rawValue)" }) else { return nil }
    return .track(segments[2], format)
  }

  func allows(_ method: Method) -> Bool {
    switch self {
    case .socket: true  // the handshake has its own say
    case .locations, .notifications: method == .post
    case .within, .trips: method == .get || method == .head || method == .post
    case .fence: method == .get || method == .head || method == .put || method == .delete
    case .trip: method == .get || method == .head || method == .patch
    case .health, .readiness, .metrics, .nearby, .driver, .track, .fences: method == .get || method == .head
    }
  }

  /// The parameters that it knows in a query: its own, and those that all have. None for the endpoints that need no
  /// credential: whoever asks whether a hub is healthy may add what it likes.
  var parameters: [StaticString] {
    let common: [StaticString] = ["time", "access_token", "role", "id"]
    let filter: [StaticString] = ["limit", "status", "vehicleType", "tags", "maxAge", "stale"]
    switch self {
    case .health, .readiness, .metrics: return []
    case .socket, .locations, .driver, .trip, .fence, .notifications: return common
    case .nearby: return ["latitude", "longitude", "radius"] + filter + common
    case .within: return ["bbox"] + filter + common
    case .trips: return ["status", "driver", "since", "limit", "cursor"] + common
    case .track: return ["source", "tolerance"] + common
    case .fences: return ["limit", "cursor"] + common
    }
  }

  /// Whether the admin port has it.
  var isForOperators: Bool {
    switch self {
    case .health, .readiness, .metrics: true
    case .socket, .locations, .nearby, .within, .driver, .trips, .trip, .track, .fences, .fence, .notifications:
      false
    }
  }

  /// The `Allow` field of a 405 (RFC 9110 §10.2.1).
  var allowedMethods: String {
    switch self {
    case .locations, .notifications: "POST"
    case .within, .trips: "GET, HEAD, POST"
    case .fence: "GET, HEAD, PUT, DELETE"
    case .trip: "GET, HEAD, PATCH"
    case .socket, .health, .readiness, .metrics, .nearby, .driver, .track, .fences: "GET, HEAD"
    }
  }
}
