// The fence endpoints. What they answer is stored, and so is whatever they show.
import HubGeo
import HubMessages

extension Hub {
  func findFence(_ id: Identifier) -> Int? { fences.find(id, hash: id.text.hashValue(seed: seed)) }

  mutating func answer(_ session: SessionRef, _ question: FenceQuestion) {
    let answer: FenceAnswer
    switch question {
    case .put(let fence, let covering): answer = put(fence, covering)
    case .show(let id): answer = findFence(id).map { .fence(report(ofFence: $0), isNew: false) } ?? .unknown
    case .list(let number, let limit): answer = list(below: number, limit: limit)
    case .delete(let id): answer = delete(id)
    }
    // That nothing can be stored must be heard just then.
    if case .refused = answer { return emit(.fences(session, answer), to: session.loop) }
    emitStored(.fences(session, answer), to: session.loop)
  }

  private func report(ofFence fence: Int) -> FenceReport {
    FenceReport(
      fence: fences.records[fence].fence, updated: fences.records[fence].updated, inside: fences.records[fence].inside)
  }

  private func list(below number: UInt64, limit: Int) -> FenceAnswer {
    let page = fences.page(below: number, limit: limit)
    let hasMore = page.startIndex > 0
    return .list(
      page.reversed().map { report(ofFence: Int($0)) },
      next: hasMore ? page.first.map { fences.records[Int($0)].number } : nil)
  }

  private func refusal(_ code: ErrorCode, _ message: String, retryAfter: Double? = nil) -> FenceAnswer {
    .refused(ErrorReply(code: code, message: message, retryAfter: retryAfter))
  }

  // MARK: Putting

  private mutating func put(_ fence: Fence, _ covering: FenceCovering) -> FenceAnswer {
    let known = findFence(fence.id)
    if let known, fences.records[known].fence == fence { return .fence(report(ofFence: known), isNew: false) }
    guard storage.hasRoom else {
      counters.refusedForStorage += 1
      return refusal(.storageFull, "this hub cannot store fences now; send it again", retryAfter: 5)
    }
    if let known, isRoaming(fences.records[known].fence) != isRoaming(fence) {
      return refusal(.invalidTransition, "a fence does not change from a place to roaming or back: delete it first")
    }
    if let full = fullTable(for: fence, covering, replacing: known) {
      return refusal(.storageFull, full)
    }
    let index = put(fence, covering, at: known, number: nil, updated: now.timestamp)
    storage.write(.fence(durable(fence: index)))
    return .fence(report(ofFence: index), isNew: known == nil)
  }

  private func isRoaming(_ fence: Fence) -> Bool { fence.kind == .roaming }

  /// Which limit there is no room at.
  private mutating func fullTable(for fence: Fence, _ covering: FenceCovering, replacing known: Int?) -> String? {
    let old = known.map { fences.records[$0].fence.positionCount } ?? 0
    if known == nil, fences.count >= limits.fences {
      counters.count(full: .fences)
      return "this hub has \(limits.fences) fences, as many as it may"
    }
    if fences.positions - old + fence.positionCount > limits.fencePositions {
      counters.count(full: .fencePositions)
      return "this hub's fences have \(limits.fencePositions) positions, as many as they may"
    }
    if known == nil, isRoaming(fence), fences.roaming.count >= limits.roamingFences {
      counters.count(full: .roamingFences)
      return "this hub has \(limits.roamingFences) roaming fences, as many as it may"
    }
    guard fences.index.hasRoom(covering, perCell: limits.fencesPerCell) else {
      counters.count(.fencesPerCell)
      return "\(limits.fencesPerCell) fences, as many as there may be, are in one place already"
    }
    return nil
  }

  @discardableResult
  private mutating func put(
    _ fence: Fence, _ covering: FenceCovering, at known: Int?, number: UInt64?, updated: Timestamp
  ) -> Int {
    if let known {
      fences.replace(known, with: fence, covering, updated: updated, rules: timings.fences)
      return known
    }
    let hash = fence.id.text.hashValue(seed: seed)
    return fences.insert(fence, covering, hash: hash, number: number, updated: updated, rules: timings.fences)
  }

  // MARK: Deleting

  private mutating func delete(_ id: Identifier) -> FenceAnswer {
    guard let fence = findFence(id) else { return .unknown }
    guard storage.hasRoom else {
      counters.refusedForStorage += 1
      return refusal(.storageFull, "this hub cannot store that now; send it again", retryAfter: 5)
    }
    tellDeleted(fence)
    if let channel = channels.find(.fence(id)) { forgetEvents(of: channel) }
    storage.write(.fenceDeleted(id))
    fences.remove(fence)
    return .deleted
  }

  /// The last event of the fence's channel: whoever was in it is in it no more, and there are no exits.
  private mutating func tellDeleted(_ fence: Int) {
    let id = fences.records[fence].fence.id
    guard channels.find(.fence(id)) != nil, let channel = eventChannel(ofFence: id) else { return }
    let notice = FenceNotice(fenceID: id, timestamp: now.timestamp)
    let body = "\(FenceWords.name(of: fences.records[fence].fence)) was deleted."
    publishEvent(on: channel) {
      .notification(
        Notification(kind: .message, title: "Fence deleted", body: body, driverID: nil, fence: notice, sequence: $0))
    }
  }

  // MARK: Storing and reading back

  func durable(fence: Int) -> DurableFence {
    DurableFence(
      number: fences.records[fence].number, updated: fences.records[fence].updated, fence: fences.records[fence].fence)
  }

  mutating func load(_ durable: DurableFence) -> Bool {
    let known = findFence(durable.fence.id)
    if let known {
      let isSame = fences.records[known].number == durable.number
      guard isSame, isRoaming(fences.records[known].fence) == isRoaming(durable.fence) else { return false }
    }
    put(
      durable.fence, FenceCovering(durable.fence), at: known, number: durable.number, updated: durable.updated)
    return true
  }

  mutating func loadDeleted(fence id: Identifier) -> Bool {
    guard let fence = findFence(id) else { return false }
    fences.remove(fence)
    return true
  }
}
