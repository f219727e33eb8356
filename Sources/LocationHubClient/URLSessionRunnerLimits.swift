// What a client on Apple systems hands to the system at once.
#if canImport(Darwin)
  extension URLSessionRunner {
    /// Messages handed to URLSession that it has not sent. At it the session's own queue, which has limits, fills up.
    static let maximumUnsent = 16
  }
#endif
