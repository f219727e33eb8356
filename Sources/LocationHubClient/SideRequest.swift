// A request outside the socket, for what a hub offers over HTTP alone: to the WebSocket's hub, with its token.
import HubBytes
import HubClientCore
import HubHTTP
import HubMessages

/// A request outside the socket.
struct SideRequest: Sendable {
  let hub: HubURL
  let method: StaticString
  /// Path and query.
  let target: String
  let authorization: String?
  /// JSON; empty for none.
  let body: [UInt8]
  /// The timeout.
  let seconds: Double

  /// As HTTP/1.1, on a connection that ends with the answer.
  var bytes: [UInt8] {
    var request = ByteBuffer()
    request.append(utf8: "\(method) \(target) HTTP/1.1\r\nHost: \(hub.authority)\r\nConnection: close\r\n")
    // The app's token must not contain a line end.
    if let authorization { OutgoingField("Authorization", authorization).write(into: &request) }
    if !body.isEmpty { request.append(utf8: "Content-Type: application/json\r\n") }
    request.append(utf8: "Content-Length: \(body.count)\r\n\r\n")
    request.append(body)
    return request.array()
  }
}

extension SideRequest {
  /// For a client that has a token, or needs none. `path` follows `/v1`.
  init(
    _ method: StaticString, _ path: String, body: [UInt8] = [], _ session: ClientSession
  ) throws(HubError) {
    let hub = session.configuration.url
    let mark = hub.target.firstIndex(of: "?") ?? hub.target.endIndex
    let socket = hub.target[..<mark]
    guard socket.hasSuffix(HubURL.defaultPath) else {
      throw HubError(.badURL, "this needs a URL whose path ends with \(HubURL.defaultPath)")
    }
    let token = session.newestToken
    guard token != nil || session.configuration.tokens == nil else {
      throw HubError(.token, "there is no token yet: the client has to be connected first", retry: .later(after: nil))
    }
    self.init(
      hub: hub, method: method,
      target: "\(socket.dropLast(HubURL.defaultPath.count))/v1\(path)\(hub.target[mark...])",
      authorization: token.map { "Bearer \($0)" }, body: body, seconds: session.configuration.limits.handshakeSeconds)
  }
}

/// The answer to a request outside the socket.
struct SideAnswer: Sendable {
  let status: Int
  let body: [UInt8]

  /// The members of the body, a JSON object; empty for any other body.
  var members: [String: JSONValue] { JSONValue(parsing: body)?.members ?? [:] }

  /// The refusal as an error.
  var refusal: HubError {
    let error = members["error"]?.members ?? [:]
    let text = error["message"]?.string ?? "HTTP \(status)"
    guard let name = error["code"]?.string, let code = ErrorCode.allCases.first(where: { "\($0.name)" == name }) else {
      // Not from the hub, but from a proxy before it.
      return HubError(.unreachable, text, retry: status >= 500 ? .later(after: nil) : .never)
    }
    return HubError(ErrorReply(code: code, message: text, replyTo: nil))
  }
}
