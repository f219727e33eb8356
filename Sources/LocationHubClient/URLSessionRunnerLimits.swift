// Limits of what a client on Apple systems hands to the system at once.
#if canImport(Darwin)
  extension URLSessionRunner {
    /// Unsent messages in URLSession. At it the session's own queue fills, which has limits.
    static let maximumUnsent = 16
  }
#endif
