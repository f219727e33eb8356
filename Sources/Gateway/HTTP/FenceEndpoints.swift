// The fence endpoints: ops put, show, list and delete them.
import HubCore
import HubHTTP
import HubMessages

enum FenceEndpoints {
  /// Newest first, with `limit` and `cursor`.
  static func list(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let page = try FenceListParameters(call.query, maximumLimit: call.context.limits.fencesPerPage)
    let positions = page.isWhole ? Limits.positionsPerFencePage : .max
    return .ask(
      [.fences(call.context.session, .list(below: page.below, limit: page.limit, positions: positions))],
      page.isWhole ? .fullFences : .hub)
  }

  static func show(_ call: HTTPCall) throws(Refusal) -> Outcome { ask(.show(try call.id(of: "fence")), call) }

  /// Answered, like `delete`, once it is stored.
  static func put(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let id = try call.id(of: "fence")
    let fence = try unsafe call.read { (reader, bytes) throws(MessageError) in
      try unsafe reader.readFence(bytes, id: id)
    }
    call.request.charge(positions: fence.positionCount)
    return ask(.put(fence, FenceCovering(fence)), call)
  }

  static func delete(_ call: HTTPCall) throws(Refusal) -> Outcome { ask(.delete(try call.id(of: "fence")), call) }

  private static func ask(_ question: FenceQuestion, _ call: HTTPCall) -> Outcome {
    .ask([.fences(call.context.session, question)])
  }

  static func answer(
    _ answer: FenceAnswer, _ awaited: Awaited, time: TimeFormat, largest: Int
  ) throws(Refusal) -> Outcome {
    switch answer {
    case .fence(let report, let isNew):
      let location = OutgoingField("Location", "/v1/fences/\(report.fence.id)")
      return .respond(
        .json(isNew ? .created : .ok, fields: isNew ? [location] : []) {
          JSONWriter.write(report, time: time, into: &$0)
        })
    case .list(let reports, let next):
      let cursor = next.map { FenceListParameters.cursor($0) }
      let isWhole = if case .fullFences = awaited { true } else { false }
      let response = Response.json(capacity: 64 + reports.count * 256) {
        JSONWriter.write(reports, isWhole: isWhole, next: cursor, time: time, into: &$0)
      }
      guard response.body.count <= largest else {
        throw Refusal(.tooLarge, "the answer would be too large: ask for fewer fences with limit")
      }
      return .respond(response)
    case .deleted: return .respond(Response(.noContent))
    case .unknown: throw Refusal(.notFound, "this hub has no such fence")
    case .refused(let error): throw Refusal(error)
    }
  }
}

/// The parameters of `GET /v1/fences`.
struct FenceListParameters: Equatable {
  var below = UInt64.max
  var limit: Int
  /// With polygons and corridors, not only their bounding boxes.
  var isWhole = false

  /// `limit`, `cursor` and `shape`.
  init(_ query: Query, maximumLimit: Int) throws(Refusal) {
    limit = try query.pageLimit(maximumLimit) ?? min(Limits.pageEntries, maximumLimit)
    if let shape = try query.parameter("shape") {
      guard shape == "full" || shape == "box" else { throw Refusal(.badMessage, "shape must be box or full") }
      isWhole = shape == "full"
    }
    guard let text = try query.parameter("cursor") else { return }
    guard let number = UInt64(text.dropFirst(), radix: 36), FenceListParameters.cursor(number) == text else {
      throw Refusal(.badMessage, "cursor must be the value of next in an earlier answer")
    }
    below = number
  }

  /// The cursor of a list. To clients it is opaque.
  static func cursor(_ number: UInt64) -> String { "f" + String(number, radix: 36) }
}
