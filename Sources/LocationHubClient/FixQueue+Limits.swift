// What is dropped when the driver's queue is full, and what does not belong to the driver.
import HubMessages

extension FixQueue {
  /// Drops the oldest fixes. If a segment has moves that cannot be read, it stays, and the next one's fixes are
  /// dropped.
  func makeRoom() {
    var index = 0
    while isOpen, index < segments.count - 1, fixes > FixQueue.maximumFixes || bytes > FixQueue.maximumBytes {
      if segments[index].fixes == 0 || !giveUp(segment: index) { index += 1 }
    }
  }

  /// Drops the fixes of a segment, and its moves, too, unless they are to be kept. False, without a change, where moves
  /// are to be kept and the disk fails.
  @discardableResult
  func giveUp(segment index: Int, keepingMoves: Bool = true) -> Bool {
    let segment = segments[index]
    let hasMoves = keepingMoves && moves.contains { segment.holds($0.number) }
    var kept: [UInt8] = []
    var lost: [UInt64] = []
    do throws(FileFailure) {
      let entries = try content(of: segment).entries.filter { $0.0 > confirmedThrough }
      lost = entries.filter { $0.1.isFix }.map(\.0)
      if hasMoves {
        kept = entries.reduce(into: SegmentHead(dropped: dropped, owner: segment.owner.id).bytes()) { bytes, entry in
          if !entry.1.isFix { bytes += StoredRecord.entry(entry.0, entry.1).bytes() }
        }
        try files.replace(segment.name, with: kept)
      }
    } catch {
      failure = error
      guard !hasMoves else { return false }
      // Unreadable: these numbers were its fixes'.
      let first = max(segment.first, confirmedThrough + 1)
      lost = Array((first..<max(first, segment.last + 1)).prefix(segment.fixes))
    }
    if !hasMoves {
      do throws(FileFailure) { try files.remove(segment.name) } catch { failure = error }
    }
    if !keepingMoves { loseMoves(where: segment.holds) }
    lose(lost)
    segments[index].fixes = 0
    segments[index].bytes = kept.count
    if !hasMoves { segments.remove(at: index) }
    if cursor.segment == segment.first { cursor.offset = 0 }
    markDropped()
    return true
  }

  /// Stores the number of dropped fixes, if the disk takes it.
  func markDropped() {
    guard let last = segments.last, last.bytes < FixQueue.segmentBytes + StoredRecord.headBytes else { return }
    do throws(FileFailure) { try write(StoredRecord.mark(confirmedThrough, dropped: dropped).bytes()) } catch {
      failure = error
    }
  }

  private func noteGone(_ number: UInt64) { if number < cursor.number { droppedInFlight.append(number) } }

  /// Counts these fixes as dropped.
  func lose(_ numbers: [UInt64]) {
    for number in numbers { noteGone(number) }
    lose(numbers.count)
  }

  /// Counts so many fixes as dropped.
  private func lose(_ count: Int) {
    let (sum, isOver) = dropped.addingReportingOverflow(UInt64(count))
    dropped = isOver ? .max : sum
    fixes = max(0, fixes - count)
    oldestFix = nil
  }

  /// Drops the moves of these entries, and notes their ids for their callers.
  func loseMoves(where isLost: (UInt64) -> Bool) {
    lostMoves += moves.filter { isLost($0.number) }.map(\.id)
    moves.removeAll { isLost($0.number) }
  }

  func dropOldestUnsaved() {
    guard let index = unsaved.firstIndex(where: { $0.record.isFix }) else { return }
    noteGone(unsaved.remove(at: index).number)
    lose(1)
  }

  /// Drops what the disk has not taken of other drivers than this one, including moves, and gives their ids; fixes are
  /// counted.
  func dropUnsaved(notOf id: Identifier) -> [Identifier] {
    let others = unsaved.filter { $0.owner.map { $0 != id } ?? false }
    unsaved.removeAll { $0.owner.map { $0 != id } ?? false }
    loseMoves { number in others.contains { $0.number == number } }
    lose(others.count { $0.record.isFix })
    return others.compactMap(\.owner)
  }
}
