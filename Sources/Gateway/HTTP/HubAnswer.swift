// What the hub says to who has asked it something, as the answer to a request or to a session's message.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime

enum HubAnswer {
  /// What was made of it over several turns, or by the reader of the journal, which has taken room for it.
  case made(Result<Response, Refusal>, room: MemoryReservation? = nil)
  case ack(Ack)
  case pong(Pong)
  case refused(ErrorReply)
  /// Nil for a driver that nobody knows.
  case query(QueryResult?)
  case trips(TripAnswer)
  case fences(FenceAnswer)
  case notification(NotificationAnswer)

  /// A reply to a session that stands for a request; nil for one that answers none.
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

  /// What becomes of the request that waits for it.
  func outcome(
    for request: HTTPRequest, _ awaited: Awaited, _ context: HTTPContext
  ) throws(Refusal) -> Outcome {
    if case .message(let id) = awaited { return try MessageEndpoint.answer(self, to: id, request, context) }
    switch self {
    case .made(let result, let room): return .respond(try result.get(), room: room)
    case .ack(let ack):
      if case .phone(let format) = awaited { return .respond(PhoneEndpoints.success(format)) }
      return .respond(DriverEndpoints.answer(ack.batch))
    case .pong: throw Refusal(.internalError, "an answer to what was not asked")
    case .refused(let error): throw Refusal(error)
    case .query(nil): throw Refusal(.notFound, HubAnswer.unknownDriver)
    case .query(let result?):
      let response = Response.json { JSONWriter.write(result, time: request.time, into: &$0) }
      guard response.body.count <= context.limits.largestAnswer else { throw Refusal(.tooLarge, HubAnswer.tooLarge) }
      return .respond(response)
    case .trips(.trip(let report, let isNew)) where request.caller?.isShare == true:
      return try TripEndpoints.answer(.trip(report.withoutIDs, isNew: isNew), request, awaited, context)
    case .trips(let answer): return try TripEndpoints.answer(answer, request, awaited, context)
    case .fences(let answer):
      return try FenceEndpoints.answer(answer, awaited, time: request.time, largest: context.limits.largestAnswer)
    case .notification(let answer): return try NotificationEndpoint.answer(answer)
    }
  }

  /// As the holder of a share may see it.
  var withoutIDs: HubAnswer {
    if case .trips(.trip(let report, let isNew)) = self { return .trips(.trip(report.withoutIDs, isNew: isNew)) }
    return self
  }

  /// The reply to a session that asked by this message; nil for what only requests ask.
  func reply(to messageID: MessageID) -> Reply? {
    switch self {
    case .query(let result?): .result(ResultReply(replyTo: messageID, result: result))
    case .trips(.trip(let report, _)): .result(ResultReply(replyTo: messageID, result: .trip(report)))
    case .query(nil): .error(ErrorReply(code: .notFound, message: HubAnswer.unknownDriver, replyTo: messageID))
    case .trips(.refused(let error)), .refused(let error): .error(error)
    case .ack(let ack): .ack(ack)
    case .pong(let pong): .pong(pong)
    case .trips(.list), .trips(.shares), .trips(.shared), .trips(.unshared), .fences, .notification, .made: nil
    }
  }
}
