// Links by which others follow a trip. They are made and taken back over HTTP, by the hub of the WebSocket's URL and
// with its token (protocol/http.md, "POST /v1/trips/{id}/shares").
import HubBytes
import HubClientCore
public import HubMessages

/// A link by which whoever has it follows one trip, until the trip ends, or the link does.
public struct Share: Sendable, Equatable {
  /// By which the link is taken back: `RiderHub.revoke(_:of:)`.
  public let id: Identifier
  /// A page that shows the trip. The token is its fragment, which browsers keep to themselves.
  public let url: String
  /// For a `RiderHub` of its own, in place of the page. It speaks JSON: `HubOptions.codec` is `.json`.
  public let token: String
  /// When it ends before its trip does.
  public let expires: Timestamp?
}

extension SideRequest {
  /// For a share of a trip.
  init(sharing trip: TripID, until: Timestamp?, _ session: ClientSession) throws(HubError) {
    var body = ByteBuffer()
    body.append("{")
    body.append("\"expires\":", until, as: session.configuration.url.time)
    body.append("}")
    try self.init("POST", "/trips/\(trip)/shares", body: body.array(), session)
  }

  /// For the end of a share.
  init(revoking share: Identifier, of trip: TripID, _ session: ClientSession) throws(HubError) {
    try self.init("DELETE", "/trips/\(trip)/shares/\(share)", session)
  }
}

extension Share {
  init(_ answer: SideAnswer, until: Timestamp?) throws(HubError) {
    guard answer.status == 201 else { throw answer.refusal }
    guard let id = answer.members["shareId"]?.string.flatMap({ Identifier($0) }),
      let url = answer.members["url"]?.string, let token = answer.members["token"]?.string
    else { throw .anotherAnswer }
    self.init(id: id, url: url, token: token, expires: until)
  }
}
