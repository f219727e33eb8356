// Appends groups to the newest segment: one write and one fdatasync each, and none behind a group that is not known to
// be on stable storage. Blocks; only the journal's thread uses it.
import Glibc
import HubSystem

/// The end of a journal, to which groups are appended.
public struct JournalWriter: ~Copyable {
  private let files: any JournalFiles
  private let limits: JournalLimits
  private let crc = CRC32C()
  /// The number of the next group.
  public private(set) var next: UInt64
  private var segment: (any JournalFile)?
  private var segmentName = ""
  /// The newest segment's seed.
  private var seed: UInt32 = 0
  private var bytes: [UInt8] = []
  /// A write or sync has failed for another reason than lack of room (`JournalError.stopped`).
  private var hasStopped = false
  /// A loss was accepted, and nothing was written since (LossMark.swift).
  private var hasLossMark: Bool

  /// Continues behind group `next - 1`, in `segment` if one ends there.
  init(
    files: any JournalFiles, limits: JournalLimits, next: UInt64, segment: String?, hasLossMark: Bool
  ) throws(JournalError) {
    limits.validate()
    self.hasLossMark = hasLossMark
    self.files = files
    self.limits = limits
    self.next = next
    guard let segment else { return }
    segmentName = segment
    let header: FileHeader?
    do throws(SystemError) {
      header = try files.openForReading(segment).flatMap { (file) throws(SystemError) in try FileHeader(of: file) }
      self.segment = try files.open(segment)
    } catch {
      throw .system(error, file: segment)
    }
    guard let header else { throw .damaged(Damage(kind: .header, file: segment, offset: 0, group: next)) }
    seed = header.seed
  }

  /// Begins a new segment with the next group: the newest one is full, and is not written again.
  public mutating func sealSegment() { segment = nil }

  /// Writes one group and returns its number when it is on stable storage. `created` is in ms since 1970, for a new
  /// segment's header.
  ///
  /// After `full` and `gone` the same payload may be tried again: nothing of it is stored. After any other error the
  /// writer always throws `stopped`.
  public mutating func append(_ payload: UnsafeRawBufferPointer, created: Int64) throws(JournalError) -> UInt64 {
    guard !hasStopped else { throw .stopped }
    precondition(payload.count <= limits.groupBytes, "the caller makes no group over the limit")
    try checkPaths()
    let file = try fileForGroup(of: payload.count, created: created)
    bytes.removeAll(keepingCapacity: true)
    unsafe GroupHeader.encode(next, payload, crc, seed: seed, into: &bytes)
    try store(bytes, in: file)
    if hasLossMark { removeLossMark() }
    let number = next
    next += 1
    return number
  }

  /// Throws `gone` if the next start would not find what is written. Called before each group, so that no group is
  /// acked that a start would not find; costs two short system calls, little beside an fdatasync.
  public func checkPaths() throws(JournalError) {
    guard files.isAtPath else { throw .gone(path: files.path) }
    guard segment?.isLinked ?? true else { throw .gone(path: "\(files.path)/\(segmentName)") }
  }

  /// Free bytes on the disk; nil where unknown.
  func freeBytes() -> UInt64? { files.freeBytes() }

  private mutating func removeLossMark() {
    do throws(SystemError) {
      try files.remove(LossMark.name)
      hasLossMark = false
    } catch {
      return  // the next group tries again; a restart before begins another epoch, which is harmless
    }
  }

  /// The newest segment, or a new one if there is none or the group does not fit.
  private mutating func fileForGroup(of size: Int, created: Int64) throws(JournalError) -> any JournalFile {
    if let segment {
      let isEmpty = segment.size <= FileHeader.size
      if isEmpty || segment.size + GroupHeader.size + size <= limits.segmentBytes { return segment }
    }
    let header = FileHeader(kind: .segment, group: next, created: created)
    segmentName = header.name
    segment = nil
    let file: any JournalFile
    do throws(SystemError) {
      file = try files.open(header.name)
      // Left by an earlier attempt that found no room on the disk.
      if file.size > 0 { try file.truncate(to: 0) }
    } catch {
      throw failure(error, takesBack: true)
    }
    try store(header.encoded(crc), in: file)
    do throws(SystemError) {
      try files.synchronize()
    } catch {
      throw failure(error, takesBack: false)
    }
    segment = file
    seed = header.seed
    return file
  }

  private mutating func store(_ bytes: [UInt8], in file: any JournalFile) throws(JournalError) {
    let size = file.size
    do throws(SystemError) {
      try unsafe bytes.withBytes { (bytes) throws(SystemError) in try unsafe file.append(bytes) }
    } catch {
      throw failure(error, takesBack: takeBack(file, to: size))
    }
    do throws(SystemError) {
      try file.synchronize()
    } catch {
      // Never retried: the kernel may have dropped unwritten pages and marked them as clean.
      throw failure(error, takesBack: false)
    }
  }

  private func takeBack(_ file: any JournalFile, to size: Int) -> Bool {
    do throws(SystemError) {
      try file.truncate(to: size)
      return true
    } catch {
      return false
    }
  }

  /// A full disk, quota or file (`ulimit -f`) is temporary if the partial write could be removed, and so is a lack of
  /// descriptors or memory; everything else is permanent.
  private mutating func failure(_ error: SystemError, takesBack: Bool) -> JournalError {
    if takesBack, [ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM].contains(error.errno) {
      return .full(error, file: "\(files.path)/\(segmentName)")
    }
    hasStopped = true
    return .system(error, file: segmentName)
  }
}
