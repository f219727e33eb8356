// What a client on Linux takes of memory: it has one connection.
#if !canImport(Darwin)
  import HubTransport

  extension LoopRunner {
    /// Calls that wait for the client's thread. At it `send` says `full`, and what waits for an answer fails
    /// with `full`.
    static let maximumWork = 16_384
    /// What must not be lost has this much room more: an end for each reader of a feed, waiting or in the tables, a
    /// token, starts and stops. At it `stop` waits for room.
    static let maximumRequiredWork = 32_768

    static var loopLimits: EventLoopLimits {
      var limits = EventLoopLimits()
      limits.maximumConnections = 16
      limits.readBufferBytes = 16 * 1024
      limits.eventsPerTurn = 16
      limits.arenaKeepBytes = 64 * 1024
      return limits
    }
  }

  extension LoopRequest {
    /// Bytes of an answer's body. Past it the question fails.
    static let answerBytes = 64 * 1024
  }
#endif
