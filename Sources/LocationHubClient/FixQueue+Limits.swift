// What gives way when the driver's queue is full, and what is no driver's to send any more.
import HubMessages

extension FixQueue {
  /// The oldest fixes go. Those of a segment with moves that the disk does not let go stay, and the next ones' go.
  func makeRoom() {
    var index = 0
    while isOpen, index < segments.count - 1, fixes > FixQueue.maximumFixes || bytes > FixQueue.maximumBytes {
      if segments[index].fixes == 0 || !giveUp(segment: index) { index += 1 }
    }
  }

  /// The fixes of a segment go, and its moves, too, where it is not to keep them. False where moves are to stay and the
  /// disk does not let them be read, or written: then all stays.
  @discardableResult
  func giveUp(segment index: Int, keepingMoves: Bool = true) -> Bool {
    let segment = segments[index]
    let hasMoves = keepingMoves && moves.contains(where: segment.holds)
    var kept: [UInt8] = []
    var lost: [UInt64] = []
    do throws(FileFailure) {
      let entries = try content(of: segment).entries.filter { $0.0 > arrived }
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
      // Unread: these numbers were its fixes'.
      let first = max(segment.first, arrived + 1)
      lost = Array((first..<max(first, segment.last + 1)).prefix(segment.fixes))
    }
    if !hasMoves {
      do throws(FileFailure) { try files.remove(segment.name) } catch { failure = error }
    }
    if !keepingMoves { moves.removeAll(where: segment.holds) }
    lose(lost)
    segments[index].fixes = 0
    segments[index].bytes = kept.count
    if !hasMoves { segments.remove(at: index) }
    if cursor.segment == segment.first { cursor.offset = 0 }
    markDropped()
    return true
  }

  /// The count outlives the app, if the disk takes it.
  func markDropped() {
    guard let last = segments.last, last.bytes < FixQueue.segmentBytes + StoredRecord.headBytes else { return }
    do throws(FileFailure) { try write(StoredRecord.mark(arrived, dropped: dropped).bytes()) } catch {
      failure = error
    }
  }

  private func noteGone(_ number: UInt64) { if number < cursor.number { goneOnTheirWay.append(number) } }

  /// These fixes are gone.
  func lose(_ numbers: [UInt64]) {
    for number in numbers { noteGone(number) }
    lose(numbers.count)
  }

  /// So many fixes give way.
  private func lose(_ count: Int) {
    let (sum, isOver) = dropped.addingReportingOverflow(UInt64(count))
    dropped = isOver ? .max : sum
    fixes = max(0, fixes - count)
    oldestFix = nil
  }

  func dropOldestUnsaved() {
    guard let index = unsaved.firstIndex(where: { $0.record.isFix }) else { return }
    noteGone(unsaved.remove(at: index).number)
    lose(1)
  }

  /// What the disk has not taken goes, moves, too; fixes are counted.
  func dropUnsaved() {
    let lost = unsaved.count { $0.record.isFix }
    for entry in unsaved where !entry.record.isFix { moves.removeAll { $0 == entry.number } }
    unsaved = []
    lose(lost)
  }

  /// What was on its way is not any more.
  func forgetOnTheirWay() { goneOnTheirWay = [] }
}
