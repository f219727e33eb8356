// `GET /v1/sessions?sub=`: whether somebody is connected, for back ends and ops.
import HubBytes
import HubHTTP
import HubMessages

enum SessionEndpoint {
  /// How many sessions (WebSockets and streams of events) an id has open in each role.
  static func show(_ call: HTTPCall) throws(Refusal) -> Outcome {
    guard let text = try call.query.parameter("sub"), let id = Identifier(text) else {
      throw Refusal(.badMessage, "give sub=, an id of 1-64 of A-Z a-z 0-9 . _ -")
    }
    let admissions = call.context.settings.shared.admissions
    let sessions = Role.allCases.map { (role: $0, count: admissions.sessions(of: IdentityKey($0, id))) }
    return .respond(
      .json { body in
        body.append("{\"sub\":", id)
        body.append(",\"sessions\":")
        body.append(list: sessions.filter { $0.count > 0 }) { body, session in
          body.append("{\"role\":", session.role.name)
          body.append(",\"count\":", session.count)
          body.append("}")
        }
        // One of several hubs counts its own.
        body.append(call.context.configuration.cluster == nil ? "}" : ",\"incomplete\":true}")
      })
  }
}
