// The state that every send and every event uses, in memory of its own instead of in properties of the class. Swift
// checks accesses to a class's properties at run time (swift_beginAccess): measured over 1,000 connections, that made a
// send cost 65 ns instead of 9, and setting a timer 100 instead of 6.
//
// Why it is right without these checks: a loop belongs to one thread, and no callback is made while one of these parts
// is being changed (callbacks come from the turn's own functions, between complete operations; `Recorder` in the tests
// checks that). The accessors of different parts use different memory. Only the arena is lent to the owner, for one
// statement; `send` within that statement would read it while it is being changed, so don't write into the arena and
// send in one expression.

import Glibc
public import HubBytes
public import HubSystem

/// The hot parts of a loop.
@usableFromInline
@safe
struct LoopState: ~Copyable {
  @usableFromInline var now: ClockReading
  /// The newest reading of the monotonic clock, `now` or later.
  var latestUptime: Int64
  /// Not retained: see `EventLoop.delegate`.
  unowned var delegate: (any EventLoopDelegate)?
  var poller: Poller
  /// Nil where each connection's sends are a system call of their own.
  var sendRing: SendRing?
  var pace: TurnPace
  /// For a loop with assistants (EventLoop+Assists): held by the thread that runs its turns, and by none while it
  /// sleeps.
  var turnLock: UnsafeMutablePointer<pthread_mutex_t>?
  /// `run` has begun and not ended.
  var isRunning = false
  /// Another thread runs this turn.
  var isAssisted = false
  /// When the present sleep times out (uptime, ns).
  var wakesAt = Int64.max
  /// The next sleep is not ended by the waker before this time (uptime, ns); 0: it is (`EventLoop.gather`).
  var gathersUntil: Int64 = 0
  var loopTimerAt: Int64?
  var acceptRetryAt: Int64?
  // Notices that wait for the end of operations, so that no callback comes from within a send or close.
  /// Whether there are any: checked four times a turn.
  var hasNotices = false
  var doomedNotices: [ConnectionID] = []
  var drainedNotices: [ConnectionID] = []
  var overflowedNotices: [ConnectionID] = []
  var slab = ConnectionSlab()
  var tls = TLSTable()
  var wheel: TimerWheel
  @usableFromInline var arena = ByteBuffer()
  /// This turn's sends; a connection's are linked by index.
  var segments = TurnList<EventLoop.Segment>()
  /// Slots with something to flush.
  var dirty = TurnList<UInt32>()
  /// Connections whose timers are due in this turn.
  var dueTimers = TurnList<ConnectionID>()
  var counters = EventLoopCounters()
  /// Work of this turn besides the bytes read (`EventLoop.spend`).
  var spentBytes = 0
}

extension EventLoop {
  /// The outgoing bytes of this turn. Append a frame, then `send` its range to any number of connections. Ranges are
  /// valid until `turnEnded`, before which the arena is emptied.
  @inlinable public var arena: ByteBuffer {
    _read { yield unsafe state.pointee.arena }
    _modify { yield unsafe &state.pointee.arena }
  }

  /// Both clocks as they were when this turn's events were fetched.
  public internal(set) var now: ClockReading {
    @inlinable get { unsafe state.pointee.now }
    set { unsafe state.pointee.now = newValue }
  }

  /// The loop's counters.
  public internal(set) var counters: EventLoopCounters {
    _read { yield unsafe state.pointee.counters }
    _modify { yield unsafe &state.pointee.counters }
  }

  @inline(__always)
  var slab: ConnectionSlab {
    _read { yield unsafe state.pointee.slab }
    _modify { yield unsafe &state.pointee.slab }
  }

  @inline(__always)
  var wheel: TimerWheel {
    _read { yield unsafe state.pointee.wheel }
    _modify { yield unsafe &state.pointee.wheel }
  }

  /// The receiver of callbacks. Not retained, and must outlive the last turn: `unowned`, because a weak reference would
  /// slow down every retain of an object that is retained for each event.
  public var delegate: (any EventLoopDelegate)? {
    get { unsafe state.pointee.delegate }
    set { unsafe state.pointee.delegate = newValue }
  }

  @inline(__always)
  var poller: Poller {
    _read { yield unsafe state.pointee.poller }
    _modify { yield unsafe &state.pointee.poller }
  }

  @inline(__always)
  var segments: TurnList<Segment> {
    _read { yield unsafe state.pointee.segments }
    _modify { yield unsafe &state.pointee.segments }
  }

  @inline(__always)
  var dirty: TurnList<UInt32> {
    _read { yield unsafe state.pointee.dirty }
    _modify { yield unsafe &state.pointee.dirty }
  }

  @inline(__always)
  var dueTimers: TurnList<ConnectionID> {
    _read { yield unsafe state.pointee.dueTimers }
    _modify { yield unsafe &state.pointee.dueTimers }
  }

  @inline(__always)
  var loopTimerAt: Int64? {
    _read { yield unsafe state.pointee.loopTimerAt }
    _modify { yield unsafe &state.pointee.loopTimerAt }
  }

  @inline(__always)
  var acceptRetryAt: Int64? {
    _read { yield unsafe state.pointee.acceptRetryAt }
    _modify { yield unsafe &state.pointee.acceptRetryAt }
  }

  @inline(__always)
  var doomedNotices: [ConnectionID] {
    _read { yield unsafe state.pointee.doomedNotices }
    _modify { yield unsafe &state.pointee.doomedNotices }
  }

  @inline(__always)
  var drainedNotices: [ConnectionID] {
    _read { yield unsafe state.pointee.drainedNotices }
    _modify { yield unsafe &state.pointee.drainedNotices }
  }

  @inline(__always)
  var overflowedNotices: [ConnectionID] {
    _read { yield unsafe state.pointee.overflowedNotices }
    _modify { yield unsafe &state.pointee.overflowedNotices }
  }
}
