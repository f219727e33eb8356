// The endpoints of webhooks: ops see their progress and failed events, have events delivered again, and set webhooks
// where the operator allows it (`--webhook-allow`). The webhooks' thread answers, without the hub.
import HubBytes
import HubHTTP
import HubMessages
import HubWebhooks

enum WebhookEndpoints {
  static func list(_ call: HTTPCall) throws(Refusal) -> Outcome { try ask(.list, call) }

  static func show(_ call: HTTPCall) throws(Refusal) -> Outcome { try ask(.show(try name(call)), call) }

  /// Answered, like all changes, once it is stored.
  static func put(_ call: HTTPCall) throws(Refusal) -> Outcome {
    guard !call.context.configuration.webhookReceivers.isEmpty else {
      throw Refusal(.forbidden, "this hub's webhooks are set by its operator alone (--webhook-allow)")
    }
    let members = try call.object(
      atMost: call.context.limits.unwantedBodyBytes, of: WebhookDefinition.memberNames, shown: shownMembers)
    let definition: WebhookDefinition
    do throws(WebhookFault) {
      definition = try WebhookDefinition(name: call.parameters[0], members: members)
    } catch {
      throw Refusal(error)
    }
    return try ask(.put(definition), call)
  }

  static func delete(_ call: HTTPCall) throws(Refusal) -> Outcome { try ask(.delete(try name(call)), call) }

  static func dead(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let limit = try call.query.pageLimit(call.context.limits.deadLettersPerPage) ?? 100
    return try ask(.dead(try name(call), limit: limit), call)
  }

  static func enable(_ call: HTTPCall) throws(Refusal) -> Outcome { try ask(.enable(try name(call)), call) }

  static func test(_ call: HTTPCall) throws(Refusal) -> Outcome { try ask(.test(try name(call)), call) }

  static func rotateSecret(_ call: HTTPCall) throws(Refusal) -> Outcome { try ask(.rotateSecret(try name(call)), call) }

  /// `since`, `from` or `ids`, one of them.
  static func replay(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let names = ["since", "from", "ids"]
    let members = try call.object(atMost: call.context.limits.unwantedBodyBytes, of: names)
    let given = names.filter { members[$0].map { $0 != .null } ?? false }
    guard given.count == 1, let value = members[given[0]] else {
      throw Refusal(.badMessage, "give since, from or ids, one of them")
    }
    let replay: WebhookReplay
    switch given[0] {
    case "since":
      guard let time = Timestamp(value, as: call.time) else { throw Refusal(.badMessage, "since must be a time") }
      replay = .since(try time.checked("since", call.time))
    case "from": replay = .from(try eventID(value))
    default:
      guard let ids = value.elements, 1...WebhookReplay.maximumEvents ~= ids.count else {
        throw Refusal(.badMessage, "ids must be 1 to \(WebhookReplay.maximumEvents) ids of events")
      }
      replay = .events(try ids.map { (id) throws(Refusal) in try eventID(id) })
    }
    return try ask(.replay(try name(call), replay), call)
  }

  private static func eventID(_ value: JSONValue) throws(Refusal) -> EventID {
    guard let id = value.string.flatMap({ EventID($0) }) else {
      throw Refusal(.badMessage, "an event's id is the value of webhook-id, such as evt_3k9_120_64")
    }
    return id
  }

  private static func name(_ call: HTTPCall) throws(Refusal) -> String {
    guard WebhookEndpoint.isName(call.parameters[0]) else {
      throw Refusal(.badMessage, "a webhook's name is 1-32 of a-z 0-9 - _")
    }
    return call.parameters[0]
  }

  private static func ask(_ question: WebhookQuestion, _ call: HTTPCall) throws(Refusal) -> Outcome {
    guard call.context.settings.shared.webhooks != nil else {
      throw Refusal(.notFound, "this hub stores nothing, so it delivers no events (--no-journal)")
    }
    return .consult(.webhooks(question, call.time))
  }

  // MARK: Answers

  static func response(_ answer: WebhookAnswer, _ time: TimeFormat) -> Result<Response, Refusal> {
    switch answer {
    case .list(let reports):
      .success(
        .json(capacity: 64 + 512 * reports.count) { body in
          body.append("{\"webhooks\":")
          body.append(list: reports) { write($1, secret: nil, into: &$0) }
          body.append("}")
        })
    case .webhook(let report, let secret):
      .success(
        .json(secret == nil ? .ok : .created, fields: secret == nil ? [] : [noStore]) {
          write(report, secret: secret, into: &$0)
        })
    case .dead(let letters): .success(.json(capacity: 64 + 256 * letters.count) { write(letters, time, into: &$0) })
    case .deleted: .success(Response(.noContent))
    case .tested(let status, let reason, let milliseconds):
      .success(
        .json { body in
          body.append("{\"delivered\":", status.map { (200..<300).contains($0) } ?? false)
          body.append(",\"status\":", status)
          body.append(",\"reason\":", reason.isEmpty ? nil : reason)
          body.append(",\"seconds\":", milliseconds.rounded() / 1000)
          body.append("}")
        })
    case .secret(let secret, let until):
      .success(
        .json(fields: [noStore]) { body in
          body.append("{\"secret\":", secret)
          body.append(",\"previousUntil\":", until, as: time)
          body.append("}")
        })
    case .refused(let fault): .failure(Refusal(fault))
    }
  }

  /// What `write` shows of a webhook beside what was put; not its secret, which the hub makes.
  private static let shownMembers = [
    "id", "source", "state", "position", "channelsBehind", "underWay", "oldestUndelivered", "delivered", "failed",
    "dead", "lost",
  ]

  /// The answer contains a secret (RFC 9111 §5.2.2.5).
  private static let noStore = OutgoingField("Cache-Control", "no-store")

  private static func write(_ report: WebhookReport, secret: String?, into body: inout ByteBuffer) {
    body.append("{\"id\":", report.name)
    body.append(",\"source\":", report.isOfHTTP ? "http" : "file")
    body.append(",\"url\":", report.url)
    body.append(",\"channels\":", report.channels)
    body.append(",\"types\":", report.types)
    body.append(",\"concurrency\":", report.concurrency)
    body.append(",\"giveUpAfter\":", report.giveUpAfterSeconds)
    body.append(",\"state\":", report.state.rawValue)
    body.append(",\"position\":", report.position.map { "\($0.group)_\($0.record)" })
    body.append(",\"channelsBehind\":", report.figures.lanes)
    body.append(",\"underWay\":", report.figures.underWay)
    body.append(",\"oldestUndelivered\":", Double(report.figures.oldestMilliseconds) / 1000)
    body.append(",\"delivered\":", report.figures.delivered)
    body.append(",\"failed\":", report.figures.failed)
    body.append(",\"dead\":", report.figures.dead)
    body.append(",\"lost\":", report.figures.lost)
    body.append(",\"secret\":", secret)
    body.append("}")
  }

  private static func write(_ letters: [DeadLetter], _ time: TimeFormat, into body: inout ByteBuffer) {
    body.append("{\"dead\":")
    body.append(list: letters) { body, letter in
      body.append("{\"time\":", letter.time, as: time)
      body.append(",\"id\":", letter.id)
      body.append(",\"channel\":", letter.channel)
      body.append(",\"reason\":", letter.reason)
      body.append("}")
    }
    body.append("}")
  }
}

extension Refusal {
  fileprivate init(_ fault: WebhookFault) {
    switch fault {
    case .bad(let text): self.init(.badMessage, text)
    case .forbidden(let text): self.init(.forbidden, text)
    case .unknown(let text): self.init(.notFound, text)
    case .full(let text): self.init(.storageFull, text)
    case .busy(let text): self.init(.rateLimited, text, status: .tooManyRequests, retryAfter: 1)
    case .failed(let text): self.init(.storageFull, text, retryAfter: 5)
    }
  }

  /// The limit of questions to the webhooks' thread is reached.
  static let webhooksAreBusy = Refusal(.rateLimited, "the webhook service is busy", retryAfter: 1)
}
