// Links by which others follow a trip. They are made over HTTP, by the hub of the WebSocket's URL and with its token
// (protocol/faces.md, "Shares").
import HubBytes
import HubClientCore
import HubHTTP
public import HubMessages

/// A link by which whoever has it follows one trip, until the trip ends, or the link does.
public struct Share: Sendable, Equatable {
  /// By which the hub takes the link back: `DELETE /v1/trips/{id}/shares/{shareId}`.
  public let id: Identifier
  /// A page that shows the trip. The token is its fragment, which browsers keep to themselves.
  public let url: String
  /// For a `RiderHub` of its own, in place of the page. It speaks JSON: `HubOptions.codec` is `.json`.
  public let token: String
  /// When it ends before its trip does.
  public let expires: Timestamp?
}

/// A request beside the socket.
struct Post: Sendable {
  let hub: HubURL
  /// Path and query.
  let target: String
  let authorization: String?
  let body: [UInt8]
  /// Until the answer has to be there.
  let seconds: Double

  /// In the form of HTTP/1.1, on a connection that ends with the answer.
  var bytes: [UInt8] {
    var request = ByteBuffer()
    request.append(utf8: "POST \(target) HTTP/1.1\r\nHost: \(hub.authority)\r\nConnection: close\r\n")
    // A token is the app's word: it ends no line.
    if let authorization { OutgoingField("Authorization", authorization).write(into: &request) }
    request.append(utf8: "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n\r\n")
    request.append(body)
    return request.array()
  }
}

/// What came back.
struct PostAnswer: Sendable {
  let status: Int
  let body: [UInt8]
}

extension Post {
  /// The request for a share, of a client that has a token already, or needs none.
  init(sharing trip: TripID, until: Timestamp?, _ session: ClientSession) throws(HubError) {
    let hub = session.configuration.url
    let (path, query) = Post.split(hub.target)
    guard path.hasSuffix(HubURL.defaultPath) else {
      throw HubError(.badURL, "shares need a URL whose path ends with \(HubURL.defaultPath)")
    }
    let token = session.newestToken
    guard token != nil || session.configuration.tokens == nil else {
      throw HubError(.token, "there is no token yet: the client has to be connected first", retry: .later(after: nil))
    }
    var body = ByteBuffer()
    body.append("{")
    body.append("\"expires\":", until, as: hub.time)
    body.append("}")
    self.init(
      hub: hub, target: "\(path.dropLast(HubURL.defaultPath.count))/v1/trips/\(trip)/shares\(query)",
      authorization: token.map { "Bearer \($0)" }, body: body.array(),
      seconds: session.configuration.limits.handshakeSeconds)
  }

  private static func split(_ target: String) -> (path: Substring, query: Substring) {
    let mark = target.firstIndex(of: "?") ?? target.endIndex
    return (target[..<mark], target[mark...])
  }
}

extension Share {
  init(_ answer: PostAnswer, until: Timestamp?) throws(HubError) {
    let members = JSONValue(parsing: answer.body)?.members ?? [:]
    guard answer.status == 201 else { throw Share.refusal(answer.status, members["error"]?.members ?? [:]) }
    guard let id = members["shareId"]?.string.flatMap({ Identifier($0) }), let url = members["url"]?.string,
      let token = members["token"]?.string
    else { throw HubError(.refused, "the hub has answered something else") }
    self.init(id: id, url: url, token: token, expires: until)
  }

  private static func refusal(_ status: Int, _ error: [String: JSONValue]) -> HubError {
    let text = error["message"]?.string ?? "HTTP \(status)"
    guard let name = error["code"]?.string, let code = ErrorCode.allCases.first(where: { "\($0.name)" == name }) else {
      // Not the hub's words, but those of something before it.
      return HubError(.unreachable, text, retry: status >= 500 ? .later(after: nil) : .never)
    }
    return HubError(ErrorReply(code: code, message: text, replyTo: nil))
  }
}
