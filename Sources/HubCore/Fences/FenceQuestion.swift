// Questions about fences, the answers, and what they change.
public import HubMessages

/// Questions of ops over HTTP.
public enum FenceQuestion: Sendable {
  /// With the fence's covering, made before.
  case put(Fence, FenceCovering)
  case show(Identifier)
  /// A page of fences with lower numbers, newest first: up to `limit`, or as many as have so many `positions`, each
  /// fence counting as `HubLimits.positionsPerListedFence` more.
  case list(below: UInt64, limit: Int, positions: Int = .max)
  case delete(Identifier)
}

/// The answer to a `FenceQuestion`.
public enum FenceAnswer: Sendable {
  /// `isNew` where the id was not there before.
  case fence(FenceReport, isNew: Bool)
  /// `next` is the number below which the list continues; nil at the end.
  case list([FenceReport], next: UInt64?)
  case deleted
  /// There is no such fence.
  case unknown
  case refused(ErrorReply)
}

/// What a question has changed.
enum FenceChange {
  case put(DurableFence)
  case deleted(Fence)
}

extension Fences {
  /// Whether the question would change a fence.
  func isChanged(by question: FenceQuestion) -> Bool {
    switch question {
    case .put(let fence, _): find(fence.id).map { table[$0].fence != fence } ?? true
    case .delete(let id): find(id) != nil
    case .show, .list: false
    }
  }

  /// Answers a question, and gives what is to be recorded and published. Throws where a fence is refused.
  mutating func answer(
    _ question: FenceQuestion, at time: Timestamp, counting counters: inout HubCounters
  ) throws(ErrorReply) -> (answer: FenceAnswer, change: FenceChange?) {
    switch question {
    case .put(let fence, let covering):
      guard isChanged(by: question) else { return (show(fence.id, isNew: false), nil) }
      let isNew = find(fence.id) == nil
      let put = try put(fence, covering, at: time, counting: &counters)
      return (show(fence.id, isNew: isNew), .put(put))
    case .show(let id): return (show(id, isNew: false), nil)
    case .list(let number, let limit, let positions):
      return (list(below: number, limit: limit, positions: positions), nil)
    case .delete(let id):
      guard let fence = remove(id) else { return (.unknown, nil) }
      return (.deleted, .deleted(fence))
    }
  }
}
