// `GET /v1/sessions?sub=`: whether somebody is connected, for back ends and ops.
import HubBytes
import HubCore
import HubHTTP
import HubMessages

enum SessionEndpoint {
  /// How many sessions (WebSockets and streams of events) an id has open in each role, at all hubs of a cluster.
  static func show(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let id = try call.query.subject()
    if call.context.configuration.cluster != nil {
      return .ask([.credentials(call.context.session, .sessions(of: id), nil)])
    }
    return .respond(response(id, call.context.settings.shared.admissions.openSessions(of: id), isComplete: true))
  }

  static func response(_ id: Identifier, _ counts: [Role: Int], isComplete: Bool) -> Response {
    let sessions = Role.allCases.map { (role: $0, count: counts[$0] ?? 0) }
    return .json { body in
      body.append("{\"sub\":", id)
      body.append(",\"sessions\":")
      body.append(list: sessions.filter { $0.count > 0 }) { body, session in
        body.append("{\"role\":", session.role.name)
        body.append(",\"count\":", session.count)
        body.append("}")
      }
      body.append(isComplete ? "}" : ",\"incomplete\":true}")
    }
  }
}

extension Query {
  /// The id that `sub=` names.
  func subject() throws(Refusal) -> Identifier {
    guard let text = try parameter("sub"), let id = Identifier(text) else {
      throw Refusal(.badMessage, "give sub=, an id of 1-64 of A-Z a-z 0-9 . _ -")
    }
    return id
  }
}
