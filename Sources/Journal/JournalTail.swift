// Follows a journal beside its writer: group after group, from any group on, across segments that end, are deleted
// meanwhile, or are damaged. Each group comes with its position, to read it again.
import HubSystem

/// The position of a group.
public struct GroupPosition: Sendable, Hashable {
  public let number: UInt64
  /// The first group of its segment, and its offset in the segment.
  let segment: UInt64
  let offset: Int
}

/// A journal's directory, open for reading forwards. For one thread at a time.
public final class JournalTail {
  private let files: any JournalFiles
  private let limits: JournalLimits
  private var cursor: GroupCursor?
  /// The cursor is on the way to group `next`.
  private var isOpen = false
  private var segment: UInt64 = 0
  /// The position of the next group, where it was read before.
  private var known: GroupPosition?
  /// The number of the next group.
  public private(set) var next: UInt64
  /// Unreadable groups, of deleted or damaged segments.
  public private(set) var missedGroups: UInt64 = 0
  /// Groups counted in `missedGroups` that are damaged: retention did not delete them.
  public private(set) var damagedGroups: UInt64 = 0
  /// Groups from `next` on are damaged.
  private var isAtDamage = false

  /// Begins at group `next`.
  public convenience init(directory: String, limits: JournalLimits, next: UInt64) throws(JournalError) {
    self.init(files: try DiskFiles(beside: directory), limits: limits, next: next)
  }

  init(files: any JournalFiles, limits: JournalLimits, next: UInt64) {
    self.files = files
    self.limits = limits
    self.next = next
  }

  /// Gives the next group, or the first readable one behind it, to `body`, whose payload is valid for the call; false
  /// where there is none up to group `last`, which must be on stable storage. Costs a read for some hundred small
  /// groups; beginning within a segment costs a walk over its groups before, unless it begins at a `GroupPosition`.
  public func read(
    through last: UInt64, _ body: (GroupPosition, UnsafeRawBufferPointer) -> Void
  ) throws(JournalError) -> Bool {
    while next <= last {
      if !isOpen, try !open(holding: next) { return false }
      let found = try unsafe inFile(FileHeader.name(.segment, segment)) { () throws(SystemError) in
        unsafe try cursor?.next()
      }
      guard let group = unsafe found else {
        if try skipDamage(through: last) { continue }
        guard try openFollowing(through: last) else { return false }
        continue
      }
      let number = unsafe group.header.number
      guard number >= next else { continue }
      note(missedBefore: number)
      next = number + 1
      unsafe body(GroupPosition(number: number, segment: segment, offset: group.offset), group.payload)
      return true
    }
    return false
  }

  /// Moves to the group with this number. Forwards within a segment the groups before are not read again.
  public func seek(to number: UInt64) {
    guard number != next else { return }
    begin(at: number, nil)
  }

  /// Moves to a group that was read before.
  public func seek(to group: GroupPosition) {
    guard group.number != next else { return }
    begin(at: group.number, group)
  }

  private func begin(at number: UInt64, _ group: GroupPosition?) {
    (next, known, isAtDamage, isOpen) = (number, group, false, false)
  }

  /// The first group of the newest segment that was begun at or before `time` (ms since 1970), or else of the oldest:
  /// what was recorded after `time` is there or behind it. 0 without segments. Costs a small read for each segment.
  public func firstGroup(notAfter time: Int64) throws(JournalError) -> UInt64 {
    var first: UInt64?
    for segment in SegmentName.all(.segment, in: try files.allNames()) {
      let created = try inFile(segment.name) { () throws(SystemError) -> Int64? in
        guard let file = try files.openForReading(segment.name) else { return nil }
        return try FileHeader(of: file)?.created
      }
      guard let created else { continue }
      if first != nil, created > time { break }
      first = segment.first
    }
    return first ?? 0
  }

  /// Gives the payload of a group that was read before, valid for the call; nil if the journal has it no more.
  public func withGroup<R>(
    at position: GroupPosition, _ body: (UnsafeRawBufferPointer) -> R
  ) throws(JournalError) -> R? {
    try inFile(FileHeader.name(.segment, position.segment)) { () throws(SystemError) -> R? in
      guard let file = try files.openForReading(FileHeader.name(.segment, position.segment)),
        let seed = try FileHeader(of: file)?.seed
      else { return nil }
      var bytes: [UInt8] = []
      guard try file.read(at: position.offset, count: GroupHeader.size, into: &bytes) == GroupHeader.size else {
        return nil
      }
      let length = unsafe bytes.withUnsafeBytes { unsafe GroupHeader($0, at: 0).length }
      guard length <= limits.groupBytes else { return nil }
      _ = try file.read(at: position.offset, count: GroupHeader.size + length, into: &bytes)
      return unsafe bytes.withUnsafeBytes { bytes in
        guard
          let group = unsafe GroupHeader.payload(
            in: bytes, at: 0, maximum: limits.groupBytes, CRC32C(), seed: seed),
          unsafe group.header.number == position.number
        else { return nil }
        return unsafe body(group.payload)
      }
    }
  }

  /// Opens the segment that has a group, or the first one behind it.
  private func open(holding number: UInt64) throws(JournalError) -> Bool {
    if let group = known, try open(group.segment, at: group) { return true }
    let segments = SegmentName.all(.segment, in: try files.allNames())
    guard let index = segments.lastIndex(where: { $0.first <= number }) ?? segments.indices.first else { return false }
    isOpen = segments[index].first == segment && (cursor?.number ?? .max) <= number
    if isOpen { return true }
    return try open(segments[index].first)
  }

  /// Moves over damaged groups up to `last` in the open segment; false where it has no intact one behind them.
  private func skipDamage(through last: UInt64) throws(JournalError) -> Bool {
    try inFile(FileHeader.name(.segment, segment)) { () throws(SystemError) -> Bool in
      guard try cursor?.hasMore() == true else { return false }
      isAtDamage = true
      return try cursor?.skipDamage(through: last) == true
    }
  }

  private func openFollowing(through last: UInt64) throws(JournalError) -> Bool {
    let segments = SegmentName.all(.segment, in: try files.allNames())
    guard let following = segments.first(where: { $0.first > segment }), following.first <= last else { return false }
    return try open(following.first)
  }

  /// Opens a segment at its first group, or at one further on.
  private func open(_ first: UInt64, at group: GroupPosition? = nil) throws(JournalError) -> Bool {
    let name = FileHeader.name(.segment, first)
    guard let file = try inFile(name, { () throws(SystemError) in try files.openForReading(name) }) else {
      return false
    }
    cursor = GroupCursor(
      file, first: group?.number ?? first, at: group?.offset ?? FileHeader.size, limits: limits)
    (segment, known, isOpen) = (first, nil, true)
    return true
  }

  private func note(missedBefore number: UInt64) {
    missedGroups += number - next
    if isAtDamage { damagedGroups += number - next }
    isAtDamage = false
  }
}
