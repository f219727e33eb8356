// The thread that reads images of the map: a loop never waits for a disk.
import HubSystem
import HubTiles

final class TileThread: Sendable {
  /// Runs on the thread; posts its own answer.
  typealias Question = @Sendable (inout TileReader) -> Void

  private let pack: TilePack
  private let questions: JobQueue<Question>

  /// `questions` may wait.
  init(_ pack: TilePack, questions: Int) {
    self.pack = pack
    self.questions = JobQueue(capacity: questions)
  }

  /// False where too many wait already.
  func ask(_ question: @escaping Question) -> Bool { questions.append(question) }

  /// Starts it; it ends after `close`.
  func start() throws(SystemError) -> Joinable {
    Joinable(
      try startThread(name: "tiles") { [self] in
        var reader = TileReader(pack)
        while let question = questions.next() { question(&reader) }
      })
  }

  /// What waits is not begun.
  func close() { questions.close() }
}
