// What an earlier run of the app has left: found, and given to the driver that it belongs to.
import HubMessages

extension FixQueue {
  /// A file that was found.
  private struct Found {
    var segment: Segment
    let entries: [(UInt64, FixRecord)]
    /// The entries from this number on are the segment's owner's, in the files before it, too.
    let ownedFrom: UInt64?
  }

  /// Reads all files. What cannot be read is named in `damage`; only a folder that cannot be read is an error.
  func recover() throws(FileFailure) {
    var reports: [String] = []
    var found: [Found] = []
    let all = try files.names()
    for name in all where name.hasSuffix(".draft") { remove(name, &reports) }
    let names = all.filter { $0.hasSuffix(".queue") && FixQueue.number(of: $0) != nil }.sorted()
    for name in names {
      do throws(FileFailure) {
        if let file = try read(name, isLast: name == names.last, &reports) { found.append(file) }
      } catch {
        reports.append("\(name): \(error)")
        // Whatever it holds, no other entry gets its number, and no other file its name.
        next = max(next, (FixQueue.number(of: name) ?? 0) + FixQueue.maximumEntriesOfSegment)
      }
    }
    damage = reports.isEmpty ? nil : reports.joined(separator: "; ")
    marked = arrived
    next = max(next, max(arrived, found.map(\.segment.last).max() ?? 0) + 1)
    for index in found.indices {
      guard let owner = found[index].segment.owner, let from = found[index].ownedFrom else { continue }
      for before in found.indices[..<index] where found[before].segment.owner == nil {
        if found[before].segment.last >= from { found[before].segment.owner = owner }
      }
    }
    for file in found {
      segments.append(file.segment)
      for (number, record) in file.entries where number > arrived {
        if record.isFix { fixes += 1 } else { moves.append(number) }
      }
    }
    deleteArrived()
    rewind()
  }

  private static func number(of name: String) -> UInt64? { UInt64(name.dropLast(6), radix: 16) }

  private func remove(_ name: String, _ reports: inout [String]) {
    do throws(FileFailure) { try files.remove(name) } catch { reports.append("\(name): \(error)") }
  }

  /// One file; nil where it has no entry.
  private func read(_ name: String, isLast: Bool, _ reports: inout [String]) throws(FileFailure) -> Found? {
    let size = try files.size(name)
    let bytes = try files.read(name, from: 0, count: min(size, FixQueue.maximumBytes))
    let content = FixQueue.records(in: bytes)
    if bytes.starts(with: FixQueue.magic), bytes.count >= FixQueue.headBytes {
      dropped = max(dropped, bytes[8..<16].reversed().reduce(0) { $0 << 8 | UInt64($1) })
    }
    arrived = max(arrived, content.mark)
    dropped = max(dropped, content.dropped)
    guard let first = FixQueue.number(of: name), let last = content.entries.map(\.0).max() else {
      if content.unreadable > 0, content.mark == 0 { reports.append("\(name): nothing in it is whole") }
      if isLast, dropped > 0, content.unreadable == 0 { emptyFile = name } else { remove(name, &reports) }
      return nil
    }
    // What a cut left of the very last record is no damage, and is cut off.
    let isTorn = isLast && content.wholeThrough < size && content.wholeThrough + content.unreadable == size
    // Nothing is written any more into a segment that has damage within.
    var end = content.unreadable == 0 ? content.wholeThrough : max(size, FixQueue.segmentBytes)
    if isTorn {
      do throws(FileFailure) {
        try files.truncate(name, to: content.wholeThrough)
        end = content.wholeThrough
      } catch { reports.append("\(name): \(error)") }
    } else if content.unreadable > 0 {
      reports.append("\(name): \(content.unreadable) bytes are unreadable")
    }
    let fixes = content.entries.count { $0.1.isFix }
    return Found(
      segment: Segment(first: first, last: last, bytes: end, fixes: fixes, owner: content.owner?.id),
      entries: content.entries, ownedFrom: content.owner?.from)
  }

  // MARK: Whose it is

  /// A hub has said whose connection this is. What was kept for another driver is not sent as this one's: it goes,
  /// counted, and `damage` names it. What was kept while no hub had said anything is this driver's.
  func belongs(to id: Identifier) {
    guard owner != id, !isErased else { return }
    let (fixesBefore, movesBefore) = (dropped, moves.count)
    var others: Set<String> = []
    if let owner, !unsaved.isEmpty {
      others.insert("\(owner)")
      dropUnsaved()
    }
    for index in segments.indices.reversed() {
      guard let other = segments[index].owner, other != id else { continue }
      others.insert("\(other)")
      giveUp(segment: index, keepingMoves: false)
    }
    if segments.isEmpty, unsaved.isEmpty {
      arrived = next - 1
      rewind()
    }
    if !others.isEmpty {
      let names = others.sorted().joined(separator: ", ")
      let text =
        "\(dropped - fixesBefore) fixes and \(movesBefore - moves.count) moves of \(names) are not \(id)'s to send"
      damage = damage.map { "\($0); \(text)" } ?? text
    }
    if let first = segments.first(where: { $0.owner == nil }) { unownedFrom = max(first.first, arrived + 1) }
    for index in segments.indices { segments[index].owner = id }
    owner = id
    sync()
  }
}
