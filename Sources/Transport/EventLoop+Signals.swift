// Signals as events of a loop: the loop polls a signalfd like any other descriptor.

public import HubSystem

extension EventLoop {
  /// Calls `handler` on this loop's thread, in the turn that reads it, for each of `signals` that comes; replaces an
  /// earlier watch. The signals are blocked for this thread and those it starts later (see `blockSignals`).
  public func watchSignals(_ signals: [Int32], _ handler: @escaping (Int32) -> Void) throws(SystemError) {
    try blockSignals(signals)
    let watch = try SignalWatch(signals, handler)
    try poller.add(watch.raw, token: Token.signals, .readable)
    self.signals = watch
  }
}
