// `POST /v1/notifications`: back ends and ops tell whoever follows a trip, a driver or a fence something.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTransport

extension SessionLoop {
  /// Answered when the notification is on stable storage.
  mutating func postNotification(_ slot: Int, _ exchange: Exchange, _ credential: Credential) {
    guard credential.role == .ops else {
      return respond(slot, exchange, .forbidden, .forbidden, "only ops may post notifications")
    }
    do throws(MessageError) {
      let post = try exchange.body.withBytes { (bytes) throws(MessageError) in try reader.readNotification(bytes) }
      exchange.isWaiting = true
      inputs.append(.notify(reference(sessions[slot].connection), post))
    } catch {
      respond(slot, exchange, error.code.status, error.code, error.text)
    }
  }

  /// The hub's answer.
  mutating func answer(_ slot: Int, _ answer: NotificationAnswer) {
    guard let exchange = sessions[slot].exchange, exchange.isWaiting else { return }
    switch answer {
    case .published(let channel, let sequence, let isNew):
      var body = ByteBuffer()
      JSONWriter.writeNotified(channel, sequence: sequence, into: &body)
      finish(
        slot, exchange, Response(isNew ? .created : .ok, contentType: "application/json", body: body.array()))
    case .refused(let error) where error.code == .unknownChannel:
      finish(slot, exchange, .notFound, error.code, error.message)
    case .refused(let error): finish(slot, exchange, error)
    }
  }
}
