// Why a load test came to nothing.

package enum LoadTestError: Error, CustomStringConvertible {
  /// It was asked for wrongly.
  case usage(String)
  /// It was tried and failed.
  case failed(String)

  package var description: String {
    switch self {
    case .usage(let text), .failed(let text): text
    }
  }
}
