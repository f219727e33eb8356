// The progress of a hub's webhooks and streams, from the files beside its journal, and requests that are left there:
// for operators, also while the hub runs.
public import HubJournal
import HubSystem

/// How far one webhook or stream is.
public struct StoredDelivery: Sendable, Equatable {
  public let name: String
  /// False after a 410.
  public let isEnabled: Bool
  /// All events before this position are delivered or given up, except on channels behind the cursor.
  public let position: JournalPosition
  /// The number of a webhook's channels behind the cursor.
  public let channelsBehind: Int
  /// Lines of dead letters that are kept.
  public let deadLetters: Int

  /// What is stored of each webhook and stream of the hub with the journal in `directory`, by name, and the names of
  /// those whose file is damaged.
  public static func all(
    journal directory: String
  ) throws(JournalError) -> (readable: [StoredDelivery], damaged: [String]) {
    let files = try DiskFiles(beside: directory + "/" + DeliveryCommand.folder)
    do throws(SystemError) {
      var found: (readable: [StoredDelivery], damaged: [String]) = ([], [])
      for file in try files.names().sorted() where file.hasSuffix(ProgressFile.suffix) {
        let stem = String(file.dropLast(ProgressFile.suffix.count))
        guard let progress = ProgressFile.parse(String(decoding: try files.read(file), as: UTF8.self))?.progress else {
          found.damaged.append(DeliveryKind.name(inStem: stem))
          continue
        }
        found.readable.append(
          StoredDelivery(
            name: DeliveryKind.name(inStem: stem), isEnabled: progress.isEnabled, position: progress.cursor,
            channelsBehind: progress.lanes.count { $0.position < progress.cursor },
            deadLetters: try DeadLetterFile.lines(files, stem).count))
      }
      return found
    } catch {
      throw .system(error, file: files.path)
    }
  }

  /// The lines of dead letters of a webhook or stream, oldest first: time, id, channel, reason. Nil where nothing of
  /// that name is stored.
  public static func deadLetters(of name: String, journal directory: String) throws(JournalError) -> [String]? {
    let files = try DiskFiles(beside: directory + "/" + DeliveryCommand.folder)
    do throws(SystemError) {
      guard try isKnown(name, in: files) else { return nil }
      var lines: [Substring] = []
      for kind in DeliveryKind.allCases { lines += try DeadLetterFile.lines(files, kind.stem(name)) }
      return lines.map(String.init)
    } catch {
      throw .system(error, file: files.path)
    }
  }

  /// Leaves a request for the webhook or stream `name` of the hub with the journal in `directory`. `text` is one that
  /// `DeliveryCommand` reads. False where nothing of that name is stored there.
  public static func leave(_ text: String, for name: String, journal directory: String) throws(JournalError) -> Bool {
    let files = try DiskFiles(beside: directory + "/" + DeliveryCommand.folder)
    do throws(SystemError) {
      guard try isKnown(name, in: files) else { return false }
      try files.replace(DeliveryCommand.file(name), by: Array(text.utf8))
      return true
    } catch {
      throw .system(error, file: files.path)
    }
  }

  private static func isKnown(_ name: String, in files: DiskFiles) throws(SystemError) -> Bool {
    let known = DeliveryKind.allCases.map { $0.stem(name) + ProgressFile.suffix } + [name + WebhookDefinition.suffix]
    for file in known where try files.about(file) != nil { return true }
    return false
  }
}
