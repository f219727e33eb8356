// `POST /v1/messages`: one message as it would be sent over a socket, for clients that have none. It is answered with
// the reply's envelope, by the same rules as a session's message (MessageRules.swift).
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime

/// What the reply to a posted message needs.
struct PostedMessage {
  /// Nil where it could not be read.
  var id: MessageID?
  let time: TimeFormat
  let now: Timestamp
}

enum MessageEndpoint {
  /// A request has one reply.
  private static let replyNumber: UInt64 = 1

  static func post(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let (request, context, caller) = (call.request, call.context, try call.caller())
    request.postedMessage = PostedMessage(id: nil, time: call.time, now: context.now.timestamp)
    let envelope: ClientEnvelope
    do throws(MessageError) {
      envelope = try unsafe request.body.withBytes { (bytes) throws(MessageError) in
        try unsafe context.settings.reader.read(bytes, time: call.time, isValidUTF8: false)
      }
    } catch {
      request.postedMessage?.id = error.messageID
      request.charge(positions: error.checkedPositions)
      throw Refusal(error)
    }
    request.postedMessage?.id = envelope.messageID
    let bytes = request.body.count
    request.charge(units: WorkUnits.of(envelope.message, bytes: bytes) - WorkUnits.of(bytes: bytes))
    return try outcome(of: envelope, caller, call.time, context)
  }

  private static func outcome(
    of envelope: ClientEnvelope, _ caller: Credential, _ time: TimeFormat, _ context: HTTPContext
  ) throws(Refusal) -> Outcome {
    let awaited = Awaited.message(envelope.messageID)
    switch envelope.message {
    case .subscribe, .unsubscribe, .refresh:
      throw Refusal(.badMessage, "this is for sessions: open a WebSocket, or a stream with GET /v1/events")
    case .locationUpdate, .locationBatch, .driverStatus, .tripStatus, .tripChange, .query, .ping: break
    }
    var rules = MessageRules(context, SessionRights(caller, expires: .max), envelope)
    rules.isPosted = true
    switch rules.outcome {
    case .ask(let input): return .ask([input] + (caller.vehicleInput.map { [$0] } ?? []), awaited)
    case .query(let question): return .query(question, awaited)
    case .reply(let reply): return .respond(response(reply, time: time, now: context.now.timestamp))
    case .refuse(let refusal): throw Refusal(refusal.error)
    case .subscribe, .refresh: preconditionFailure("refused before")
    }
  }

  // MARK: Replies

  /// The hub's answer as the reply to the message.
  static func answer(
    _ answer: HubAnswer, to id: MessageID, _ request: HTTPRequest, _ context: HTTPContext
  ) throws(Refusal) -> Outcome {
    let now = context.now.timestamp
    if case .made(let result, let room) = answer {
      // A list of drivers that was written over several turns: `{` its members `}`.
      let list = try result.get()
      return .respond(
        .json(capacity: list.body.count + 256) { body in
          JSONWriter.writeResultHead(replyTo: id, into: &body)
          body.append(Array(list.body.dropFirst().dropLast()))
          JSONWriter.writeEnd(timestamp: now, messageID: replyNumber, time: request.time, into: &body)
        }, room: room)
    }
    let shown = request.caller?.isShare == true ? answer.withoutIDs : answer
    guard let reply = shown.reply(to: id) else { throw Refusal(.internalError, "an answer to what was not asked") }
    if case .error(let error) = reply { throw Refusal(error) }
    let response = response(reply, time: request.time, now: now)
    guard response.body.count <= context.limits.largestAnswer else { throw Refusal(.tooLarge, HubAnswer.tooLarge) }
    return .respond(response)
  }

  private static func response(_ reply: Reply, _ status: Status = .ok, time: TimeFormat, now: Timestamp) -> Response {
    .json(status) { JSONWriter.write(reply, timestamp: now, messageID: replyNumber, time: time, into: &$0) }
  }

  /// A refusal as the reply to a message.
  static func response(_ refusal: Refusal, to message: PostedMessage) -> Response {
    let error = ErrorReply(
      code: refusal.code, message: refusal.message, replyTo: message.id,
      retryAfter: refusal.retryAfter.map(Double.init), status: refusal.tripStatus)
    var response = response(.error(error), refusal.status, time: message.time, now: message.now)
    response.fields += refusal.fields
    return refusal.retryAfter.map(response.retryAfter(seconds:)) ?? response
  }
}
