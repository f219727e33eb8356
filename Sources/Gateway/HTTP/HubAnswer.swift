// The hub's answer to a request or a session's message.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime

enum HubAnswer {
  /// The result of several turns, or of the journal's reader, which has reserved memory for it.
  case made(Result<Response, Refusal>, memory: MemoryReservation? = nil)
  case ack(Ack)
  case pong(Pong)
  case refused(ErrorReply)
  /// Nil for an unknown driver.
  case query(QueryResult?)
  case trips(TripAnswer)
  case fences(FenceAnswer)
  case credentials(CredentialAnswer)
  case notification(NotificationAnswer)

  /// The hub's reply as the answer to a request; nil for kinds of reply that no request gets.
  init?(_ reply: Reply) {
    switch reply {
    case .ack(let ack): self = .ack(ack)
    case .pong(let pong): self = .pong(pong)
    case .error(let error): self = .refused(error)
    case .connected, .subscribed, .unsubscribed, .sampling, .result: return nil
    }
  }

  static let tooLarge = "the answer would be too large: ask for fewer drivers with limit"
  private static let unknownDriver = "this hub knows no such driver"

  /// The number of tokens to be signed.
  var signatures: Int {
    if case .credentials(.family) = self { return 2 }
    if case .trips(.shared) = self { return 1 }
    return 0
  }

  /// The outcome of the waiting request.
  func outcome(
    for request: HTTPRequest, _ awaited: Awaited, _ context: HTTPContext
  ) throws(Refusal) -> Outcome {
    if case .message(let id) = awaited { return try reply(to: id, request, context) }
    switch self {
    case .made(let result, let memory): return .respond(try result.get(), memory: memory)
    case .ack(let ack):
      switch awaited {
      case .phone(let format): return .respond(PhoneEndpoints.success(format))
      case .move(let trip):
        return .query(.trip(trip), .trip(PendingTrip(id: trip, showsForgotten: false, track: nil, isMoved: true)))
      case .statusSet(let driver): return .query(.driver(driver))
      case .hub, .trip, .fullFences, .trips, .worker, .metrics, .channels, .message, .vehicles:
        return .respond(DriverEndpoints.answer(ack.batch))
      }
    case .pong: throw Refusal(.internalError, "unexpected reply")
    case .refused(let error): throw Refusal(error)
    case .query(nil): throw Refusal(.notFound, HubAnswer.unknownDriver)
    case .query(let result?):
      if case .vehicles(let feed) = awaited, case .drivers(let page) = result {
        return try VehicleFeedEndpoint.answer(page, feed, request, context)
      }
      let response = Response.json { JSONWriter.write(result, time: request.time, into: &$0) }
      guard response.body.count <= context.limits.largestAnswer else { throw Refusal(.tooLarge, HubAnswer.tooLarge) }
      return .respond(response)
    case .trips(.trip(let report, let isNew)) where request.caller?.isShare == true:
      return try TripEndpoints.answer(.trip(report.withoutIDs, isNew: isNew), request, awaited, context)
    case .trips(let answer): return try TripEndpoints.answer(answer, request, awaited, context)
    case .fences(let answer):
      return try FenceEndpoints.answer(answer, awaited, time: request.time, largest: context.limits.largestAnswer)
    case .notification(let answer): return try NotificationEndpoint.answer(answer)
    case .credentials(let answer): return try TokenEndpoints.answer(answer, request, context)
    }
  }

  /// The reply to a message that was posted.
  private func reply(
    to id: MessageID, _ request: HTTPRequest, _ context: HTTPContext
  ) throws(Refusal) -> Outcome {
    let message = PostedMessage(id: id, time: request.time, now: context.now.timestamp)
    if case .made(let result, let memory) = self {
      // A list of drivers that was written over several turns: `{` its members `}`.
      let list = try result.get()
      return .respond(
        .json(capacity: list.body.count + 256) { body in
          JSONWriter.writeResultHead(replyTo: id, into: &body)
          body.append(Array(list.body.dropFirst().dropLast()))
          JSONWriter.writeEnd(
            timestamp: message.now, messageID: PostedMessage.replyNumber, time: message.time, into: &body)
        }, memory: memory)
    }
    let shown = request.caller?.isShare == true ? withoutIDs : self
    guard let reply = shown.reply(to: id) else { throw Refusal(.internalError, "unexpected reply") }
    if case .error(let error) = reply { throw Refusal(error) }
    let response = message.response(reply)
    guard response.body.count <= context.limits.largestAnswer else { throw Refusal(.tooLarge, HubAnswer.tooLarge) }
    return .respond(response)
  }

  /// The answer for the holder of a share.
  var withoutIDs: HubAnswer {
    if case .trips(.trip(let report, let isNew)) = self { return .trips(.trip(report.withoutIDs, isNew: isNew)) }
    return self
  }

  /// The reply to a session's message; nil for what only requests ask.
  func reply(to messageID: MessageID) -> Reply? {
    switch self {
    case .query(let result?): .result(ResultReply(replyTo: messageID, result: result))
    case .trips(.trip(let report, _)): .result(ResultReply(replyTo: messageID, result: .trip(report)))
    case .query(nil): .error(ErrorReply(code: .notFound, message: HubAnswer.unknownDriver, replyTo: messageID))
    case .trips(.refused(let error)), .refused(let error): .error(error)
    case .ack(let ack): .ack(ack)
    case .pong(let pong): .pong(pong)
    case .trips(.list), .trips(.shares), .trips(.shared), .trips(.unshared), .trips(.offers), .trips(.offersStopped),
      .fences, .notification, .credentials, .made:
      nil
    }
  }
}
