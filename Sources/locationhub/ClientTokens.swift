// `--token-file`: tokens that are replaced while the program runs.
import HubClientLoop
import HubCommandLine

/// A file with a token a line, one for each client of the program, in order.
struct TokenFile: Sendable {
  let path: String

  /// The present tokens; throws with fewer than `count`.
  func read(atLeast count: Int = 1) throws(CommandError) -> [String] {
    let lines = try readText(path).split(whereSeparator: \.isNewline)
    let tokens = lines.map { $0.filter { !$0.isWhitespace } }.filter { !$0.isEmpty }
    guard tokens.count >= count else {
      throw .failed("\(path) has \(tokens.count) tokens, and \(count) are needed: one a line, for each driver one")
    }
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
