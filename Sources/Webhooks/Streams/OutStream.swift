// One running stream: its queue, its reader of the journal, its connection, and its stored progress.
import HubJournal
import HubMessages
import HubSystem
import HubTransport

final class OutStream {
  let endpoint: StreamEndpoint
  var queue: StreamQueue
  let reader: StreamReader
  let sink: any StreamSink
  var figures: StreamFigures
  private let file: ProgressFile
  let deadLetters: DeadLetterFile
  private var storedProgress: DeliveryProgress
  /// The number of answers at the last `store`.
  private var storedAnswers: UInt64 = 0
  private var isStored = true
  private var isSynchronized = true
  private var missedGroups: UInt64 = 0
  let peer: TLSPeer?
  var connection = ConnectionID.none
  /// Addresses still to try, and the running look-up, by its number.
  var untried: ArraySlice<SocketAddress> = []
  /// The address that it connects or is connected to, and when that began (uptime, ns).
  var address: SocketAddress?
  var dialled = Int64.min
  var addressOrder = AddressOrder()
  var lookup: UInt64?
  var isConnected = false
  /// No connection is begun before this uptime; the last wait, in nanoseconds.
  var connectAt = Int64.min
  var backOff: Int64 = 0
  /// Consecutive connections that ended without a stored event.
  var failuresInRow = 0
  /// Since when something else than an answer to events is due from the server (uptime, ns): a connection, its
  /// greeting, an answer to positions, or the rest of an answer.
  var waitsSince: Int64?
  /// The journal has no more for now.
  var isAtEnd = false
  var isRefused = false
  /// It sends nothing, since the journal or its own files could not be read. That is not stored: a stream of its name
  /// that is opened later continues.
  var isStopped = false
  /// Unsent positions.
  var positions: PositionTable

  init(
    _ endpoint: StreamEndpoint, _ sink: any StreamSink, _ file: ProgressFile, _ progress: DeliveryProgress,
    _ tail: JournalTail, _ deadLetters: DeadLetterFile, figures: StreamFigures?
  ) {
    self.endpoint = endpoint
    self.sink = sink
    self.file = file
    self.deadLetters = deadLetters
    storedProgress = progress
    queue = StreamQueue(sink.mode, giveUpAfterSeconds: endpoint.giveUpAfterSeconds, from: progress)
    reader = StreamReader(endpoint.filter, tail, epoch: file.epoch, start: progress.cursor)
    self.figures = figures ?? StreamFigures(name: endpoint.name)
    positions = PositionTable(leftOut: figures?.positionsLeftOut ?? 0)
    self.figures.positionsSent = endpoint.hasPositions ? figures?.positionsSent ?? 0 : nil
    peer = endpoint.url.isSecure ? TLSPeer(endpoint.tls, name: endpoint.url.url.host) : nil
  }

  /// When the next address is tried (uptime, ns); nil where it is connected, or has no other.
  var connectDeadline: Int64? {
    connection != .none && !isConnected && !untried.isEmpty ? dialled + AddressOrder.connectTime : nil
  }

  /// Since when what has been due longest from the server is due (uptime, ns). Other things that it says do not change
  /// that, since one answer may get lost among others.
  var owedSince: Int64? { [waitsSince, queue.unansweredSince].compactMap(\.self).min() }

  /// Fills the window; true if the turn's share was read before the journal's end. Counts missing groups.
  func read(through last: UInt64, _ now: Moment) throws(JournalError) -> Bool {
    defer {
      figures.lost += reader.missedGroups - missedGroups
      missedGroups = reader.missedGroups
    }
    reader.beginTurn()
    while queue.hasRoom, !isAtEnd {
      guard let (message, published) = try reader.next(through: last, isAtEnd: &isAtEnd) else {
        queue.scanned(through: reader.end)
        return !isAtEnd
      }
      queue.append(message, published: published, now)
    }
    return false
  }

  /// Stores the progress after an answer. Progress without an event is stored by `synchronize`.
  func store() throws(SystemError) {
    let answers = figures.stored + figures.dead + figures.refused
    guard answers != storedAnswers || queue.isEnabled != storedProgress.isEnabled || !isStored else { return }
    storedAnswers = answers
    try write()
  }

  private func write() throws(SystemError) {
    let progress = queue.progress
    guard progress != storedProgress || !isStored else { return }
    let isAppended = isStored
    isStored = false
    var isWritten = false
    if isAppended {
      isWritten = try file.append(
        cursor: progress.cursor, isEnabled: progress.isEnabled, progress.changedLanes(since: storedProgress))
    }
    if !isWritten { try file.rewrite(progress) }
    (isStored, isSynchronized, storedProgress) = (true, !isWritten, progress)
  }

  /// Syncs the stored progress.
  func synchronize() throws(SystemError) {
    try write()
    guard !isSynchronized else { return }
    try file.synchronize()
    isSynchronized = true
  }

  /// The present figures. `leftOut`: positions that no stream saw.
  func currentFigures(_ now: Moment, leftOut: UInt64) -> StreamFigures {
    var figures = figures
    figures.underWay = queue.underWay
    figures.positionsLeftOut = positions.leftOut + leftOut
    figures.isEnabled = queue.isEnabled && !isStopped
    figures.isUp = !isStopped && !isRefused && (sink.isConnectedOnDemand ? failuresInRow == 0 : sink.isReady)
    figures.oldestMilliseconds = queue.oldest.map { max(0, now.timestamp.milliseconds - $0.milliseconds) } ?? 0
    return figures
  }
}
