// The fence endpoints: ops put, show, list and delete them.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTransport

extension SessionLoop {
  private static let opsOnly = "only ops may see and change fences"

  /// `GET /v1/fences`: the newest first, with `limit` and `cursor`.
  mutating func listFences(
    _ slot: Int, _ exchange: Exchange, _ request: RequestHead, _ credential: Credential
  ) {
    guard credential.role == .ops else { return respond(slot, exchange, .forbidden, .forbidden, Self.opsOnly) }
    do throws(InvalidParameter) {
      let page = try FenceListParameters(request.query, maximumLimit: limits.fencesPerPage)
      exchange.isWaiting = true
      inputs.append(
        .fences(reference(sessions[slot].connection), .list(below: page.below, limit: page.limit)))
    } catch {
      respond(slot, exchange, .badRequest, error.code, error.text)
    }
  }

  /// `PUT`, `GET` and `DELETE /v1/fences/{id}`. The first and the last are answered when they are on stable storage.
  mutating func fence(
    _ slot: Int, _ exchange: Exchange, _ request: RequestHead, _ idText: String, _ credential: Credential
  ) {
    guard credential.role == .ops else { return respond(slot, exchange, .forbidden, .forbidden, Self.opsOnly) }
    guard let id = Identifier(idText) else {
      return respond(slot, exchange, .badRequest, .badMessage, "a fence id is 1-64 of A-Z a-z 0-9 . _ -")
    }
    let question: FenceQuestion
    switch request.method {
    case .put:
      do throws(MessageError) {
        let fence = try exchange.body.withBytes { (bytes) throws(MessageError) in
          try reader.readFence(bytes, id: id)
        }
        charge(exchange, positions: fence.positionCount)
        question = .put(fence, FenceCovering(fence))
      } catch {
        return respond(slot, exchange, error.code.status, error.code, error.text)
      }
    case .delete: question = .delete(id)
    case .get, .head, .post, .options, .patch: question = .show(id)
    }
    exchange.isWaiting = true
    inputs.append(.fences(reference(sessions[slot].connection), question))
  }

  /// The hub's answer.
  mutating func answer(_ slot: Int, _ answer: FenceAnswer) {
    guard let exchange = sessions[slot].exchange, exchange.isWaiting else { return }
    switch answer {
    case .fence(let report, let isNew):
      var body = ByteBuffer(capacity: 512)
      JSONWriter.write(report, time: exchange.time, into: &body)
      var response = Response(.ok, contentType: "application/json", body: body.array())
      if isNew {
        response.status = .created
        response.fields.append(OutgoingField("Location", "/v1/fences/\(report.fence.id)"))
      }
      finish(slot, exchange, response)
    case .list(let reports, let next):
      var body = ByteBuffer(capacity: 64 + reports.count * 256)
      JSONWriter.write(reports, next: next.map { FenceListParameters.cursor($0) }, time: exchange.time, into: &body)
      finish(slot, exchange, Response(.ok, contentType: "application/json", body: body.array()))
    case .deleted: finish(slot, exchange, Response(.noContent))
    case .unknown: finish(slot, exchange, .notFound, .notFound, "this hub has no such fence")
    case .refused(let error): finish(slot, exchange, error)
    }
  }
}

/// The parameters of `GET /v1/fences`.
struct FenceListParameters: Equatable {
  static let defaultLimit = 100

  var below = UInt64.max
  var limit = FenceListParameters.defaultLimit

  /// `limit` and `cursor`.
  init(_ query: Query, maximumLimit: Int) throws(InvalidParameter) {
    limit = min(limit, maximumLimit)
    if let text = try FenceListParameters.text(query, "limit") {
      guard let limit = Int(text), (1...maximumLimit).contains(limit) else {
        throw InvalidParameter(text: "limit must be a whole number from 1 to \(maximumLimit)")
      }
      self.limit = limit
    }
    if let text = try FenceListParameters.text(query, "cursor") {
      guard let number = UInt64(text.dropFirst(), radix: 36), FenceListParameters.cursor(number) == text else {
        throw InvalidParameter(text: "cursor must be what next was in an answer")
      }
      below = number
    }
  }

  /// Where a list goes on. To clients it is a word without meaning.
  static func cursor(_ number: UInt64) -> String { "f" + String(number, radix: 36) }

  private static func text(_ query: Query, _ name: StaticString) throws(InvalidParameter) -> String? {
    do throws(HTTPError) {
      return try query.string(name)
    } catch {
      throw InvalidParameter(text: "\(name) is not well encoded")
    }
  }
}
