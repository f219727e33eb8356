// `POST /v1/messages`: one message as over a socket, for clients without one. The answer is the reply's envelope, by
// the rules of sessions' messages (MessageRules.swift).
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime

/// The state for the reply to a posted message.
struct PostedMessage {
  /// Nil where it could not be read.
  var id: MessageID?
  let time: TimeFormat
  let now: Timestamp
  /// A request has one reply.
  static let replyNumber: UInt64 = 1

  /// A reply to it.
  func response(_ reply: Reply, _ status: Status = .ok) -> Response {
    .json(status) {
      JSONWriter.write(reply, timestamp: now, messageID: PostedMessage.replyNumber, time: time, into: &$0)
    }
  }

  /// A refusal as the reply to it.
  func response(_ refusal: Refusal) -> Response {
    let error = ErrorReply(
      code: refusal.code, message: refusal.message, replyTo: id, retryAfter: refusal.retryAfter.map(Double.init),
      status: refusal.tripStatus)
    var response = response(.error(error), refusal.status)
    response.fields += refusal.fields
    return refusal.retryAfter.map(response.retryAfter(seconds:)) ?? response
  }
}

enum MessageEndpoint {
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
    if case .query = envelope.message { request.isReadOnly = true }
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
    case .locationUpdate, .locationBatch, .driverStatus, .tripStatus, .tripChange, .offerDecline, .query, .ping:
      break
    }
    var rules = MessageRules(context, SessionRights(caller, expires: .max), envelope)
    rules.isPosted = true
    switch rules.outcome {
    case .ask(let input): return .ask([input] + (caller.vehicleInput.map { [$0] } ?? []), awaited)
    case .query(let question): return .query(question, awaited)
    case .reply(let reply):
      let message = PostedMessage(id: envelope.messageID, time: time, now: context.now.timestamp)
      return .respond(message.response(reply))
    case .refuse(let refusal): throw Refusal(refusal.error)
    case .subscribe, .refresh: preconditionFailure("refused before")
    }
  }
}
