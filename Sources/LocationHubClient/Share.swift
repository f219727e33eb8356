// Links by which others follow a trip. They are made and revoked over HTTP, at the WebSocket's hub with its token
// (protocol/http.md, "POST /v1/trips/{id}/shares").
import HubBytes
import HubClientCore
public import HubMessages

/// A link whose holders follow one trip, until the trip or the link ends.
public struct Share: Sendable, Equatable {
  /// Identifies the link for `RiderHub.revoke(_:of:)`.
  public let id: Identifier
  /// A page that shows the trip. The token is in its fragment, which browsers do not send.
  public let url: String
  /// A token for a `RiderHub`, instead of the page. It needs JSON: `HubOptions.codec` is `.json`.
  public let token: String
  /// When the link ends; nil where it ends with its trip.
  public let expires: Timestamp?
}

extension SideRequest {
  /// Makes a share of a trip.
  init(sharing trip: TripID, until: Timestamp?, _ session: ClientSession) throws(HubError) {
    var body = ByteBuffer()
    body.append("{")
    body.append("\"expires\":", until, as: session.configuration.url.time)
    body.append("}")
    try self.init("POST", "/trips/\(trip)/shares", body: body.array(), session)
  }

  /// Ends a share.
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
