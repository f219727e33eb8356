// Recovery of an earlier run's files, and their assignment to a driver.
import HubMessages

extension FixQueue {
  /// A file that was found.
  private struct Found {
    let segment: Segment
    let entries: [(UInt64, FixRecord)]
  }

  /// Reads all files. Unreadable parts are reported in `damage`; throws where the folder, or a file, cannot be read
  /// just now.
  func recover() throws(FileFailure) {
    var reports: [String] = []
    var found: [Found] = []
    let all = try files.names()
    for name in all where name.hasSuffix(".draft") { remove(name, &reports) }
    let names = all.filter { $0.hasSuffix(".queue") && FixQueue.number(of: $0) != nil }.sorted()
    for name in names {
      guard let first = FixQueue.number(of: name), first <= FixQueue.maximumNumber else {
        reports.append("\(name): no queue has so many entries")
        continue
      }
      do throws(FileFailure) {
        if let file = try read(name, first, isLast: name == names.last, &reports) { found.append(file) }
      } catch {
        if error.isPassing { throw error }
        reports.append("\(name): \(error)")
        // The file stays: no new entry may get a number that it may hold, and no new file its name.
        next = max(next, first + FixQueue.maximumEntriesOfSegment)
      }
    }
    damage = reports.isEmpty ? nil : reports.joined(separator: "; ")
    markedThrough = confirmedThrough
    next = max(next, max(confirmedThrough, found.map(\.segment.last).max() ?? 0) + 1)
    for file in found {
      segments.append(file.segment)
      for (number, record) in file.entries where number > confirmedThrough {
        switch record {
        case .move(_, let id): moves.append(Move(number: number, id: id))
        case .fix: fixes += 1
        }
      }
    }
    deleteConfirmed()
    rewind()
  }

  private static func number(of name: String) -> UInt64? { UInt64(name.dropLast(6), radix: 16) }

  private func remove(_ name: String, _ reports: inout [String]) {
    do throws(FileFailure) { try files.remove(name) } catch { reports.append("\(name): \(error)") }
  }

  /// Reads one file; nil where it has no entry.
  private func read(
    _ name: String, _ first: UInt64, isLast: Bool, _ reports: inout [String]
  ) throws(FileFailure) -> Found? {
    var size = try files.size(name)
    if size > FixQueue.maximumSegmentBytes {
      reports.append("\(name): \(size) bytes are more than a file of a queue has")
      size = FixQueue.maximumSegmentBytes
      try files.truncate(name, to: size)
    }
    let bytes = try files.read(name, from: 0, count: size)
    let content = FixQueue.records(in: bytes)
    let head = SegmentHead(bytes)
    confirmedThrough = max(confirmedThrough, content.mark)
    dropped = max(dropped, content.dropped, head?.dropped ?? 0)
    // A torn last record is no damage, and is cut off.
    let isTorn = isLast && StoredRecord.isCutOff(bytes, at: content.intactThrough)
    let damaged = content.unreadable - (isTorn ? bytes.count - content.intactThrough : 0)
    var isWhole = head != nil && damaged == 0
    guard let last = content.entries.map(\.0).max() else {
      if head == nil || damaged > 0 && content.mark == 0 { reports.append("\(name): nothing in it is whole") }
      if isLast, dropped > 0, isWhole { emptyFile = name } else { remove(name, &reports) }
      return nil
    }
    if head == nil { reports.append("\(name): its head is damaged: whose it is cannot be read") }
    if damaged > 0 { reports.append("\(name): \(damaged) bytes are unreadable") }
    if isTorn, isWhole {
      do throws(FileFailure) { try files.truncate(name, to: content.intactThrough) } catch {
        reports.append("\(name): \(error)")
        isWhole = false
      }
    }
    return Found(
      segment: Segment(
        first: first, last: last,
        // Nothing is appended to a segment with damage in it.
        bytes: isWhole ? content.intactThrough : max(size, FixQueue.segmentBytes),
        fixes: content.entries.count { $0.1.isFix },
        owner: head.map { Owner($0.owner) } ?? .unknown),
      entries: content.entries)
  }

  // MARK: The driver of the entries

  /// A hub has identified the driver of this connection. Entries of another driver, or of one that damage has made
  /// unknown, are not sent as this one's: they are dropped, counted, and reported in `damage`. Entries kept before any
  /// hub answered are this driver's.
  func belongs(to id: Identifier) {
    guard owner != id, !isErased else { return }
    let (fixesBefore, movesBefore) = (dropped, moves.count)
    var others: Set<String> = []
    for other in dropUnsaved(notOf: id) { others.insert("\(other)") }
    for index in unsaved.indices { unsaved[index].owner = id }
    for index in segments.indices.reversed() {
      switch segments[index].owner {
      case .nobody: continue
      case .driver(let other) where other == id: continue
      case .driver(let other): others.insert("\(other)")
      case .unknown: others.insert("an unknown driver")
      }
      giveUp(segment: index, keepingMoves: false)
    }
    if segments.isEmpty, unsaved.isEmpty {
      confirmedThrough = next - 1
      rewind()
    }
    if !others.isEmpty {
      let names = others.sorted().joined(separator: ", ")
      report(
        "\(dropped - fixesBefore) fixes and \(movesBefore - moves.count) moves of \(names) are not \(id)'s to send")
    }
    owner = id
    for index in segments.indices where segments[index].owner == .nobody {
      segments[index].owner = .driver(id)
      segments[index].isOwnerStored = false
    }
    sync()
  }

  // MARK: Between two runs of one client

  /// Writes what the disk takes, and releases the folder to other clients.
  func close() {
    guard isOpen, !isErased else { return }
    sync()
    files.unlock()
    isOpen = false
  }

  /// Locks the folder again after `close`, and reads its present content. Gives the error, if any; then new entries are
  /// kept in memory.
  @discardableResult
  func reopen() -> FileFailure? {
    guard !isOpen, !isErased else { return nil }
    let (kept, before) = (unsaved, damage)
    do throws(FileFailure) {
      try files.lock()
    } catch {
      failure = error
      return error
    }
    (segments, unsaved, moves, fixes, owner, emptyFile) = ([], [], [], 0, nil, nil)
    (confirmedThrough, markedThrough, next, oldestFix, readFailure) = (0, 0, 1, nil, nil)
    do throws(FileFailure) {
      try recover()
    } catch {
      files.unlock()
      failure = error
      (unsaved, next) = (kept, (kept.last?.number ?? 0) + 1)
      fixes = kept.count { $0.record.isFix }
      moves = kept.compactMap { entry in
        if case .move(_, let id) = entry.record { Move(number: entry.number, id: id) } else { nil }
      }
      return error
    }
    isOpen = true
    damage = damage ?? before
    for entry in kept { _ = append(entry.record, of: entry.owner) }
    return nil
  }
}
