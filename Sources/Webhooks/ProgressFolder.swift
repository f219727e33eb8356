// The folder beside a journal in which webhooks and streams store their progress.
import Glibc
public import HubJournal
public import HubRuntime
import HubSystem

/// The journal and the folder of webhooks and streams.
public struct WebhookSource: Sendable {
  let journal: JournalConfiguration
  let commit: GroupCommit
  /// The epoch of event ids where progress is new: digits and letters.
  let epoch: String
  /// The journal's last group when the hub started.
  let recovered: UInt64
  /// A part of the journal was lost at this start.
  let hasLost: Bool

  public init(journal: JournalConfiguration, commit: GroupCommit, epoch: String, recovered: UInt64, hasLost: Bool) {
    self.journal = journal
    self.commit = commit
    self.epoch = epoch
    self.recovered = recovered
    self.hasLost = hasLost
  }
}

/// What events are delivered to. A webhook and a stream of one name have separate files, since positions in them mean
/// different things: one that takes the other's name begins as new, and each continues where it was when it has the
/// name again.
enum DeliveryKind: CaseIterable {
  case webhook, stream

  /// What the names of its files begin with. No name has a full stop (`WebhookEndpoint.isName`).
  func stem(_ name: String) -> String {
    switch self {
    case .webhook: name
    case .stream: name + Self.streamSuffix
    }
  }

  /// The name that is in a stem.
  static func name(inStem stem: String) -> String {
    stem.hasSuffix(streamSuffix) ? String(stem.dropLast(streamSuffix.count)) : stem
  }

  private static let streamSuffix = ".stream"
}

final class ProgressFolder {
  private let source: WebhookSource
  private let log: Log
  private let files: DiskFiles
  /// Files that were opened since the hub's start.
  private var opened: Set<String> = []

  init(_ source: WebhookSource, _ log: Log) throws(JournalError) {
    self.source = source
    self.log = log
    files = try DiskFiles(path: source.journal.directory + "/" + DeliveryCommand.folder)
  }

  /// The progress of the webhook or stream of this name; a new one begins behind group `newest`. Carries out `request`,
  /// or else one that an operator has left, and gives it.
  func open(
    _ kind: DeliveryKind, _ name: String, _ newest: UInt64, _ request: DeliveryCommand? = nil
  ) throws(JournalError) -> (file: ProgressFile, progress: DeliveryProgress, done: DeliveryCommand?) {
    let (file, requestName) = (kind.stem(name) + ProgressFile.suffix, DeliveryCommand.file(name))
    let left = request == nil ? readRequest(requestName) : nil
    let request = request ?? left.flatMap { DeliveryCommand($0) }
    var extent = ProgressFile.Extent(
      recovered: source.recovered, newest: newest, isFirst: !opened.contains(file), hasLost: source.hasLost)
    if case .replay = request { extent.start.group = try tail(from: 0).firstGroup(notAfter: .min) }
    do throws(SystemError) {
      guard let found = try ProgressFile.open(files, file, epoch: source.epoch, extent, request) else {
        log(
          .error, "webhook_progress_unreadable",
          [
            "file": file,
            "hint": "locationhub webhooks replay begins at an event; without the file it begins with what happens next",
          ])
        throw SystemError(call: "read", errno: EBADMSG)
      }
      for finding in found.findings { note(finding, name) }
      if let left {
        try files.remove(requestName)
        log(.info, "webhook_request", ["webhook": name, "request": left])
      }
      opened.insert(file)
      return (found.file, found.progress, request)
    } catch {
      throw .system(error, file: file)
    }
  }

  /// What an operator has left for the webhook or stream; nil where that is nothing, or can't be read.
  private func readRequest(_ name: String) -> String? {
    do throws(SystemError) {
      return try files.about(name) == nil ? nil : String(decoding: try files.read(name), as: UTF8.self)
    } catch {
      log(
        .error, "webhook_request_unreadable",
        ["file": name, "error": "\(error)", "hint": "give it to the hub's user, and send SIGHUP"])
      return nil
    }
  }

  private func note(_ finding: ProgressFile.Finding, _ name: String) {
    switch finding {
    case .beyondTheJournal(let position):
      log(
        .error, "webhook_beyond_journal",
        [
          "webhook": name, "at": "\(position.group)_\(position.record)",
          "hint": "the journal is older than the folder webhooks: it continues with what came since this start",
        ])
    case .foreignEvent(let id):
      log(
        .error, "webhook_request_refused",
        ["webhook": name, "id": "\(id)", "hint": "this hub's journal has no such event: ask the hub that sent it"])
    }
  }

  func deadLetters(_ kind: DeliveryKind, _ name: String) -> DeadLetterFile {
    DeadLetterFile(files, kind.stem(name))
  }

  /// The lines of a webhook's dead letters, oldest first.
  func deadLetterLines(_ name: String) throws(SystemError) -> [Substring] { try DeadLetterFile.lines(files, name) }

  // MARK: Webhooks that were set over HTTP

  /// The stored definitions; unreadable ones are logged and left alone.
  func definitions() throws(JournalError) -> [String: WebhookDefinition] {
    var found: [String: WebhookDefinition] = [:]
    do throws(SystemError) {
      for file in try files.names() where file.hasSuffix(WebhookDefinition.suffix) {
        let name = String(file.dropLast(WebhookDefinition.suffix.count))
        if let definition = WebhookDefinition(name: name, file: try files.read(file)) {
          found[name] = definition
        } else {
          log(.error, "webhook_unreadable", ["file": file, "hint": "set the webhook again, or remove the file"])
        }
      }
    } catch {
      throw .system(error, file: files.path)
    }
    return found
  }

  /// Returns once it is stored.
  func store(_ definition: WebhookDefinition) throws(SystemError) {
    try files.replace(definition.name + WebhookDefinition.suffix, by: definition.file)
  }

  /// Removes the definition of a webhook that was set over HTTP: on return, it will not reappear.
  func forget(_ name: String) throws(SystemError) { try remove([name + WebhookDefinition.suffix]) }

  /// Removes such a webhook's other files. What a crash leaves is unused until a new one of its name continues with it.
  func remove(_ name: String) throws(SystemError) {
    try remove([name + ProgressFile.suffix, DeliveryCommand.file(name)] + DeadLetterFile.files(name))
  }

  /// Removes files; one that is gone already, as by an earlier try whose sync failed, is passed over.
  private func remove(_ names: [String]) throws(SystemError) {
    for file in names where try files.about(file) != nil { try files.remove(file) }
    try files.synchronize()
  }

  /// A reader of the journal from a group on.
  func tail(from group: UInt64) throws(JournalError) -> JournalTail {
    try JournalTail(directory: source.journal.directory, limits: source.journal.limits, next: group)
  }
}
