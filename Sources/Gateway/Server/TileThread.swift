// The thread that reads images of the map: a loop never waits for a disk.
import HubRuntime
import HubSystem
import HubTiles

/// The worker thread's own state.
struct TileWorker {
  var reader: TileReader
  /// When it last logged that an image cannot be read (uptime, ns); nil for never.
  var warned: Int64?
}

final class TileThread: Sendable {
  /// Runs on the thread; posts its own answer.
  typealias Question = @Sendable (inout TileWorker) -> Void

  private let pack: TilePack
  private let questions: JobQueue<Question>
  /// Memory of unsent images.
  let memory: MemoryBudget

  init(_ pack: TilePack, _ limits: Limits) {
    self.pack = pack
    questions = JobQueue(capacity: limits.tileQuestions)
    memory = MemoryBudget(bytes: limits.tileBytes)
  }

  /// False at the limit of waiting questions.
  func ask(_ question: @escaping Question) -> Bool { questions.append(question) }

  /// Starts the thread. `close` does not wait for its end, since a hanging disk would hang the hub as well.
  func start() throws(SystemError) {
    _ = try startThread(name: "tiles") { [self] in
      var worker = TileWorker(reader: TileReader(pack))
      while let question = questions.next() { question(&worker) }
    }
  }

  /// Ends the thread; waiting questions are dropped.
  func close() { questions.close() }
}
