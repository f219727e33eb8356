// Questions about drivers, over HTTP and over the socket, and what the hub says to them.
import HubBytes
import HubCore
import HubGeo
import HubHTTP
import HubMessages

extension SessionLoop {
  // MARK: Over HTTP

  /// `GET /v1/drivers/{id}`: ops, or the driver itself.
  mutating func driver(_ slot: Int, _ exchange: Exchange, _ idText: String, _ credential: Credential) {
    guard let id = Identifier(idText) else {
      return respond(slot, exchange, .badRequest, .badMessage, "a driver id is 1-64 of A-Z a-z 0-9 . _ -")
    }
    guard mayAsk(about: id, credential) else {
      return respond(slot, exchange, .forbidden, .forbidden, "only ops and the driver itself may see this")
    }
    exchange.isWaiting = true
    inputs.append(.query(reference(sessions[slot].connection), .driver(id)))
  }

  private func mayAsk(about driver: Identifier, _ credential: Credential) -> Bool {
    credential.role == .ops || credential.role == .driver && credential.id == driver
  }

  /// `GET /v1/drivers/nearby`, `GET /v1/drivers/within`, and `POST` to that with a polygon.
  mutating func drivers(
    _ slot: Int, _ exchange: Exchange, _ request: RequestHead, _ endpoint: Endpoint, _ credential: Credential
  ) {
    do throws(MessageError) {
      let search = try readSearch(exchange, request, endpoint)
      charge(exchange, positions: search.area.positionCount)
      let audience = try audience(of: credential.role, asking: search)
      if let refusal = refusalOfQuery(slot, credential) {
        return respond(
          slot, exchange, refusal.isOwnLimit ? .tooManyRequests : .serviceUnavailable, refusal.code, refusal.message,
          retryAfter: 1)
      }
      exchange.isWaiting = true
      inputs.append(
        .query(reference(sessions[slot].connection), .drivers(search, audience, by: credential.actor)))
    } catch {
      respond(slot, exchange, error.code.status, error.code, error.text)
    }
  }

  private mutating func readSearch(
    _ exchange: Exchange, _ request: RequestHead, _ endpoint: Endpoint
  ) throws(MessageError) -> DriverSearch {
    do throws(InvalidParameter) {
      guard request.method == .post else {
        return endpoint == .within ? try DriverSearch(box: request.query) : try DriverSearch(nearby: request.query)
      }
      return try DriverSearch(try polygons(exchange), request.query)
    } catch {
      throw MessageError(code: error.code, text: error.text)
    }
  }

  private mutating func polygons(_ exchange: Exchange) throws(InvalidParameter) -> MultiPolygon {
    do throws(MessageError) {
      return try exchange.body.withBytes { (bytes) throws(MessageError) in try reader.readPolygons(bytes) }
    } catch {
      charge(exchange, positions: error.checkedPositions)
      throw InvalidParameter(code: error.code, text: error.text)
    }
  }

  private func audience(of role: HubMessages.Role, asking search: DriverSearch) throws(MessageError) -> Audience {
    do throws(SearchRefusal) {
      return try SearchRefusal.audience(of: role, asking: search, maximumLimit: limits.hub.queryHits)
    } catch {
      throw MessageError(code: error.code, text: error.text)
    }
  }

  // MARK: Over the socket

  mutating func query(_ slot: Int, _ messageID: MessageID, _ request: QueryRequest) {
    guard let credential = sessions[slot].credential else { return }
    let session = reference(sessions[slot].connection)
    switch request {
    case .driver(let id):
      guard mayAsk(about: id, credential) else {
        return refuse(slot, messageID, .forbidden, "only ops and the driver itself may see this")
      }
      inputs.append(.query(session, .driver(id), replyTo: messageID))
    case .trip(let id): askForTrip(slot, messageID, id, credential)
    case .drivers(let search):
      do throws(MessageError) {
        let audience = try audience(of: credential.role, asking: search)
        if var refusal = refusalOfQuery(slot, credential) {
          refusal.replyTo = messageID
          return send(.error(refusal), to: slot)
        }
        inputs.append(.query(session, .drivers(search, audience, by: credential.actor), replyTo: messageID))
      } catch {
        refuse(slot, messageID, error.code, error.text)
      }
    }
  }

  // MARK: Answers of the hub

  /// The hub's answer, to the request or the message that asked.
  mutating func answer(_ slot: Int, _ result: QueryResult?, replyTo: MessageID?) {
    var result = result
    if case .drivers(var list) = result {
      let isCompressed = replyTo != nil && sessions[slot].encoding.isCompressed
      guard mayWriteAtOnce(list, isCompressed: isCompressed) else { return writeOverTurns(slot, list, replyTo) }
      list.sort()
      result = .drivers(list)
    }
    guard let replyTo else { return answerRequest(slot, result) }
    guard let result else { return refuse(slot, replyTo, .notFound, "this hub knows no such driver") }
    send(.result(ResultReply(replyTo: replyTo, result: result)), to: slot)
  }

  private mutating func answerRequest(_ slot: Int, _ result: QueryResult?) {
    guard let exchange = sessions[slot].exchange, exchange.isWaiting else { return }
    guard let result else {
      return finish(slot, exchange, .notFound, .notFound, "this hub knows no such driver")
    }
    var body = ByteBuffer(capacity: 512)
    JSONWriter.write(result, time: exchange.time, into: &body)
    guard body.count <= limits.largestAnswer else {
      return finish(slot, exchange, .contentTooLarge, .tooLarge, SessionLoop.tooLargeAnswer)
    }
    finish(slot, exchange, Response(.ok, contentType: "application/json", body: body.array()))
  }

  static let tooLargeAnswer = "the answer would be too large: ask for fewer drivers with limit"
}
