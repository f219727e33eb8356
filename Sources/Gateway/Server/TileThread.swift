// The thread that reads images of the map: a loop never waits for a disk.
import HubRuntime
import HubSystem
import HubTiles

/// For the thread's own use.
struct TileDesk {
  var reader: TileReader
  /// When it last said in the log that an image cannot be read (uptime, ns); nil where it never did.
  var complained: Int64?
}

final class TileThread: Sendable {
  /// Runs on the thread; posts its own answer.
  typealias Question = @Sendable (inout TileDesk) -> Void

  private let pack: TilePack
  private let questions: JobQueue<Question>
  /// Of images on their way.
  let memory: MemoryBudget

  init(_ pack: TilePack, _ limits: Limits) {
    self.pack = pack
    questions = JobQueue(capacity: limits.tileQuestions)
    memory = MemoryBudget(bytes: limits.tileBytes)
  }

  /// False where too many wait already.
  func ask(_ question: @escaping Question) -> Bool { questions.append(question) }

  /// Begins to read. Nobody waits for its end, after `close`: a disk that hangs would have the hub hang as well.
  func start() throws(SystemError) {
    _ = try startThread(name: "tiles") { [self] in
      var desk = TileDesk(reader: TileReader(pack))
      while let question = questions.next() { question(&desk) }
    }
  }

  /// What waits is not begun.
  func close() { questions.close() }
}
