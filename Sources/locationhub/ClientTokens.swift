// `--token-file`: tokens that are replaced while the program runs.
import HubClientLoop
import HubCommandLine
import HubSystem
import Synchronization

/// A file with a token a line, one for each client of the program, in order.
///
/// Thousands of clients ask at once, at the start and after a hub's end: the file is read again only where it was
/// written since.
final class TokenFile: Sendable {
  let path: String
  private let last = Mutex<(version: FileVersion, tokens: [String])?>(nil)

  init(path: String) { self.path = path }

  /// The present tokens; throws with fewer than `count`.
  func read(atLeast count: Int = 1) throws(CommandError) -> [String] {
    let tokens = try read()
    guard tokens.count >= count else {
      throw .failed("\(path) has \(tokens.count) tokens, and \(count) are needed: one a line, for each driver one")
    }
    return tokens
  }

  private func read() throws(CommandError) -> [String] {
    let version: FileVersion
    // Before the content: if that changes meanwhile, the next call reads again.
    do throws(SystemError) { version = try FileVersion(path) } catch {
      throw .failed("cannot read \(path): \(error)")
    }
    if let tokens = last.withLock({ $0?.version == version ? $0?.tokens : nil }) { return tokens }
    let lines = try readText(path).split(whereSeparator: \.isNewline)
    let tokens = lines.map { $0.filter { !$0.isWhitespace } }.filter { !$0.isEmpty }
    last.withLock { $0 = (version, tokens) }
    return tokens
  }

  /// The present token of a client, counted from 0.
  func token(_ client: Int) -> TokenAnswer {
    do throws(CommandError) {
      return .token(try read(atLeast: client + 1)[client])
    } catch {
      ConnectionReport.say("\(error)")
      return .none
    }
  }
}
