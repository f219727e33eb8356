import HubClientLoop
// `--token-file`: tokens that an operator, or a job, replaces while the program runs.
import HubCommandLine

/// A file with a token a line, for each client of the program one, in their order.
struct TokenFile: Sendable {
  let path: String

  /// The tokens that are in it now; at least so many.
  func read(atLeast count: Int = 1) throws(CommandError) -> [String] {
    let lines = try readText(path).split(whereSeparator: \.isNewline)
    let tokens = lines.map { $0.filter { !$0.isWhitespace } }.filter { !$0.isEmpty }
    guard tokens.count >= count else {
      throw .failed("\(path) has \(tokens.count) tokens, and \(count) are needed: one a line, for each driver one")
    }
    return tokens
  }

  /// The token of a client, counted from 0, as the file has it now.
  func token(_ client: Int) -> TokenAnswer {
    do throws(CommandError) {
      return .token(try read(atLeast: client + 1)[client])
    } catch {
      ConnectionReport.say("\(error)")
      return .none
    }
  }
}
