// The progress of a webhook or stream on disk: a file of lines beside the journal, each with its checksum; a turn
// appends one. It survives a kill -9 entirely; it is synced once a second.
//
//     SUM locationhub-webhook 1 EPOCH         the first line: the epoch of the ids
//     SUM GROUP RECORD on|off [+CHANNEL GROUP RECORD FAILURES FIRST-TRY]… [-CHANNEL]…
//
// A line has the cursor, whether the webhook or stream is enabled, and changed channels behind the cursor (of a stream:
// ahead of it, or refused). A torn end is ignored. When the lines have grown enough, the state is written to a new file
// that replaces this one.
import HubJournal
import HubMessages
import HubSystem

final class ProgressFile {
  /// The suffix of its name.
  static let suffix = ".progress"
  private static let header = "locationhub-webhook 1"
  private let files: any JournalFiles
  private let name: String
  private var file: (any JournalFile)?
  /// Distinguishes ids of this journal from others'.
  let epoch: String
  private var size = 0
  private var nextRewrite = 0

  private init(_ files: any JournalFiles, _ name: String, epoch: String) {
    self.files = files
    self.name = name
    self.epoch = epoch
  }

  /// The journal whose positions are stored.
  struct Extent {
    /// Its last group when the hub started.
    var recovered: UInt64
    var newest: UInt64
    /// The file is opened for the first time since that start: no position in it is behind `recovered`.
    var isFirst = true
    /// Records were lost at that start: numbers behind `recovered` are given again.
    var hasLost = false
    /// For a replay: where the journal begins; retention has deleted what was before.
    var start = JournalPosition(group: 0, record: 0)

    /// The highest group number that a position in the file may have: one above the last group.
    fileprivate var end: UInt64 { (isFirst ? recovered : newest) + 1 }
  }

  /// What an operator has to know of a file that was opened.
  enum Finding: Equatable {
    /// The stored position was beyond the journal, which is an older copy or has lost something: delivery continues
    /// behind what the journal had when the hub started, with new ids.
    case beyondTheJournal(JournalPosition)
    /// The request is for an event of another hub's journal, or of this one's before it lost something.
    case foreignEvent(EventID)
  }

  /// A file that was opened.
  struct Opened {
    let file: ProgressFile
    let progress: DeliveryProgress
    var findings: [Finding] = []
  }

  /// Continues what is stored under `name`, or begins behind the newest group where nothing is. `epoch` is for new ids.
  /// Carries out `request`. Nil, and nothing is changed, where what is stored can't be read, and `request` does not say
  /// where to begin.
  static func open(
    _ files: any JournalFiles, _ name: String, epoch: String, _ journal: Extent, _ request: DeliveryCommand?
  ) throws(SystemError) -> Opened? {
    var (epoch, request) = (epoch, request)
    var progress = DeliveryProgress(cursor: JournalPosition(group: journal.newest + 1, record: 0))
    var findings: [Finding] = []
    if try files.about(name) != nil {
      if let stored = parse(String(decoding: try files.read(name), as: UTF8.self)) {
        progress = stored.progress
        let isBeyond = progress.cursor.group > journal.end
        if isBeyond { findings.append(.beyondTheJournal(progress.cursor)) }
        if isBeyond || journal.hasLost && journal.isFirst {
          progress.forget(behind: JournalPosition(group: journal.recovered + 1, record: 0))
        } else {
          epoch = stored.epoch
        }
      } else if case .replay(let id) = request {
        // The epoch of their ids is lost with the file, so the events come with new ids.
        request = .replayFrom(max(id.position, journal.start))
      } else {
        return nil
      }
    }
    switch request {
    case .enable: progress.isEnabled = true
    case .replay(let id) where id.epoch == epoch: progress.setBack(to: max(id.position, journal.start))
    case .replay(let id): findings.append(.foreignEvent(id))
    case .replayFrom(let position): progress.setBack(to: position)
    case .replayEvents(let events):
      progress.isEnabled = true
      for event in events { progress.setBack(event) }
    case nil: break
    }
    let file = ProgressFile(files, name, epoch: epoch)
    try file.rewrite(progress)
    return Opened(file: file, progress: progress, findings: findings)
  }

  /// Appends changes: the channels' lanes, nil for finished ones. False where it is time to `rewrite`.
  func append(
    cursor: JournalPosition, isEnabled: Bool, _ lanes: [(Channel, DeliveryProgress.Lane?)]
  ) throws(SystemError) -> Bool {
    guard let file, size < nextRewrite else { return false }
    let line = Self.line(cursor, isEnabled, lanes)
    let bytes = Array(line.utf8)
    do throws(SystemError) {
      let span = unsafe bytes.span.bytes
      try unsafe span.withUnsafeBytes { (bytes) throws(SystemError) in unsafe try file.append(bytes) }
    } catch {
      self.file = nil  // a partial line may be there, which ends the reading
      throw error
    }
    size += bytes.count
    return true
  }

  /// Writes the complete state to a new file.
  func rewrite(_ progress: DeliveryProgress) throws(SystemError) {
    file = nil
    let text =
      Self.summed("\(Self.header) \(epoch)")
      + Self.line(progress.cursor, progress.isEnabled, progress.lanes.map { ($0.channel, $0) })
    let bytes = Array(text.utf8)
    file = try files.replace(name, by: bytes)
    size = bytes.count
    nextRewrite = max(Self.rewriteBytes, 4 * size)
  }

  func synchronize() throws(SystemError) { try file?.synchronize() }

  // MARK: Lines

  private typealias Change = (
    cursor: JournalPosition, isEnabled: Bool, lanes: [(Channel, DeliveryProgress.Lane?)]
  )

  private static func line(
    _ cursor: JournalPosition, _ isEnabled: Bool, _ lanes: [(Channel, DeliveryProgress.Lane?)]
  ) -> String {
    var text = "\(cursor.group) \(cursor.record) \(isEnabled ? "on" : "off")"
    for (channel, lane) in lanes {
      guard let lane else {
        text += " -\(channel)"
        continue
      }
      let first = lane.firstTry.map { "\($0.milliseconds)" } ?? "none"
      text += " +\(channel) \(lane.position.group) \(lane.position.record) \(lane.failures) \(first)"
    }
    return summed(text)
  }

  private static func summed(_ text: String) -> String { "\(sum(text)) \(text)\n" }

  private static func sum(_ text: some StringProtocol) -> String {
    let bytes = Array(text.utf8)
    return String(unsafe bytes.withUnsafeBytes { unsafe CRC32C()($0) }, radix: 16)
  }

  /// Nil where the first two lines are invalid.
  static func parse(_ text: String) -> (epoch: String, progress: DeliveryProgress)? {
    var epoch: String?
    var newest: Change?
    var lanes: [Channel: DeliveryProgress.Lane] = [:]
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      guard let space = line.firstIndex(of: " ") else { break }
      let content = line[line.index(after: space)...]
      guard line[..<space] == sum(content) else { break }
      if epoch == nil {
        guard content.hasPrefix(header + " ") else { return nil }
        epoch = String(content.dropFirst(header.count + 1))
      } else {
        guard let change = change(content) else { break }
        for (channel, lane) in change.lanes { lanes[channel] = lane }
        newest = change
      }
    }
    guard let epoch, let newest, EventID.isEpoch(epoch) else { return nil }
    return (epoch, DeliveryProgress(cursor: newest.cursor, lanes: Array(lanes.values), isEnabled: newest.isEnabled))
  }

  /// What a line changes; nil where it is invalid.
  private static func change(_ line: Substring) -> Change? {
    var words = line.split(separator: " ")[...]
    guard let cursor = position(&words), let state = words.popFirst() else { return nil }
    var lanes: [(Channel, DeliveryProgress.Lane?)] = []
    while let word = words.popFirst() {
      guard let channel = Channel(String(word.dropFirst())) else { return nil }
      guard word.hasPrefix("+") else {
        lanes.append((channel, nil))
        continue
      }
      guard let position = position(&words), let failures = words.popFirst().flatMap({ Int($0) }),
        let first = words.popFirst()
      else { return nil }
      let lane = DeliveryProgress.Lane(
        channel: channel, position: position, failures: failures,
        firstTry: Int64(first).map { Timestamp(milliseconds: $0) })
      lanes.append((channel, lane))
    }
    return (cursor, state == "on", lanes)
  }

  private static func position(_ words: inout ArraySlice<Substring>) -> JournalPosition? {
    guard let group = words.popFirst().flatMap({ UInt64($0) }), let record = words.popFirst().flatMap({ UInt32($0) })
    else { return nil }
    return JournalPosition(group: group, record: record)
  }
}
