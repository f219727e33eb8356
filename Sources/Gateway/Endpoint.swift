// What can be asked for over HTTP, and how.
import HTTP

enum Endpoint: Equatable {
  case socket, health, readiness, metrics, locations, nearby, within
  case driver(String)

  /// Nil where there is nothing at the path.
  init?(path segments: [String]) {
    switch segments {
    case ["v1", "ws"]: self = .socket
    case ["healthz"]: self = .health
    case ["readyz"]: self = .readiness
    case ["metrics"]: self = .metrics
    case ["v1", "locations"]: self = .locations
    case ["v1", "drivers", "nearby"]: self = .nearby
    case ["v1", "drivers", "within"]: self = .within
    default:
      guard segments.count == 3, segments[0] == "v1", segments[1] == "drivers" else { return nil }
      self = .driver(segments[2])
    }
  }

  func allows(_ method: Method) -> Bool {
    switch self {
    case .socket: true  // the handshake has its own say
    case .locations: method == .post
    case .within: method == .get || method == .head || method == .post
    case .health, .readiness, .metrics, .nearby, .driver: method == .get || method == .head
    }
  }

  /// Whether the admin port has it.
  var isForOperators: Bool {
    switch self {
    case .health, .readiness, .metrics: true
    case .socket, .locations, .nearby, .within, .driver: false
    }
  }

  /// The `Allow` field of a 405 (RFC 9110 §10.2.1).
  var allowedMethods: String {
    switch self {
    case .locations: "POST"
    case .within: "GET, HEAD, POST"
    case .socket, .health, .readiness, .metrics, .nearby, .driver: "GET, HEAD"
    }
  }
}
