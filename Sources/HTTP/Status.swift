// Status codes (RFC 9110 §15, RFC 6585) with the reason phrases that the hub sends.

/// An HTTP status code, 100…999.
public struct Status: Sendable, Hashable {
  public let code: UInt16

  /// Nil unless the code has three digits (RFC 9112 §4).
  public init?(code: Int) {
    guard code >= 100, code <= 999 else { return nil }
    self.code = UInt16(code)
  }

  /// `code` has three digits.
  public init(_ code: UInt16) {
    precondition((100...999).contains(code))
    self.code = code
  }

  public static let switchingProtocols = Status(101)
  public static let ok = Status(200)
  public static let created = Status(201)
  public static let noContent = Status(204)
  public static let notModified = Status(304)
  public static let badRequest = Status(400)
  public static let unauthorized = Status(401)
  public static let forbidden = Status(403)
  public static let notFound = Status(404)
  public static let methodNotAllowed = Status(405)
  public static let notAcceptable = Status(406)
  public static let conflict = Status(409)
  public static let contentTooLarge = Status(413)
  public static let uriTooLong = Status(414)
  public static let expectationFailed = Status(417)
  public static let upgradeRequired = Status(426)
  public static let tooManyRequests = Status(429)
  public static let headerFieldsTooLarge = Status(431)
  public static let notImplemented = Status(501)
  public static let serviceUnavailable = Status(503)
  public static let versionNotSupported = Status(505)

  /// Whether a response with this status ends with its head, whatever its fields say. RFC 9112 §6.3.
  public var hasNoBody: Bool { code < 200 || code == 204 || code == 304 }

  /// The phrase for the status line; empty for other codes, which RFC 9112 §4 allows.
  public var reason: StaticString {
    switch code {
    case 101: return "Switching Protocols"
    case 200: return "OK"
    case 201: return "Created"
    case 204: return "No Content"
    case 304: return "Not Modified"
    case 400: return "Bad Request"
    case 401: return "Unauthorized"
    case 403: return "Forbidden"
    case 404: return "Not Found"
    case 405: return "Method Not Allowed"
    case 406: return "Not Acceptable"
    case 409: return "Conflict"
    case 413: return "Content Too Large"
    case 414: return "URI Too Long"
    case 417: return "Expectation Failed"
    case 426: return "Upgrade Required"
    case 429: return "Too Many Requests"
    case 431: return "Request Header Fields Too Large"
    case 500: return "Internal Server Error"
    case 501: return "Not Implemented"
    case 503: return "Service Unavailable"
    case 505: return "HTTP Version Not Supported"
    default: return ""  // an open set of numbers, not an enum
    }
  }
}
