// A fix in place in a turn's list of inputs: as a value each step would copy 320 bytes.
//
// Why it is right: the list is borrowed while its inputs are handled, and a `FixInPlace` exists only during the call
// that it is passed to.
import HubMessages

@safe
struct FixInPlace {
  private let pointer: UnsafePointer<FixInput>

  @inline(__always)
  init(_ pointer: UnsafePointer<FixInput>) { unsafe self.pointer = unsafe pointer }

  /// A copy.
  var input: FixInput { unsafe pointer.pointee }
  var session: SessionRef {
    @inline(__always) get { unsafe pointer.pointee.session }
  }
  var messageID: MessageID {
    @inline(__always) get { unsafe pointer.pointee.message.messageID }
  }
  /// The sender's clock when it sent.
  var sent: Timestamp {
    @inline(__always) get { unsafe pointer.pointee.message.timestamp }
  }
  var received: Moment {
    @inline(__always) get { unsafe pointer.pointee.received }
  }
  var fix: Fix {
    @inline(__always) get { unsafe pointer.pointee.message.update.fix }
  }
  var tripID: Identifier? {
    @inline(__always) get { unsafe pointer.pointee.message.update.tripID }
  }
  /// False when the session's token does not name the trip.
  var tripIsGranted: Bool {
    @inline(__always) get { unsafe pointer.pointee.tripIsGranted }
  }
}
