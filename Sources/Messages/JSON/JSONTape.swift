// A message as a flat list of tokens, in memory that is reused for the next one.
//
// One pass checks all of the text by RFC 8259 and appends a token for every value and member name; decoders then walk
// the tokens and read few bytes again. It follows simdjson's tape (G. Langdale, D. Lemire, "Parsing Gigabytes of JSON
// per Second", 2019) without its vectors: messages here are about 200 bytes. Nothing is allocated once the tape has
// grown to the largest message so far, and it can't grow beyond MessageLimits.
import HubBytes

/// One value or member name.
struct JSONToken {
  enum Kind: UInt8 {
    case null, `false`, `true`, number, array, object
    /// Text in the message.
    case string
    /// Text that was spelled with escapes, unescaped in the tape's own bytes.
    case unescaped
  }

  var kind: Kind
  /// The key of a member name.
  var key = JSONKey.unknown
  /// The index of the token behind this value and its content.
  var next: UInt16 = 0
  /// Where the value begins in the message.
  var source: UInt32
  /// Where a text's bytes begin, in the message or in the tape's bytes. Of an array or object: the index behind it.
  var start: UInt32 = 0
  /// A text's bytes. Of an array or object: its elements or members.
  var count: UInt32 = 0
  /// A number's bits as a Double.
  var bits: UInt64 = 0
}

/// Why a text is invalid, and where.
struct JSONError: Error {
  enum Reason: UInt8 {
    case encoding, truncated, syntax, number, control, escape, surrogate, trailing
    case depth, members, tokens, bytes
  }

  var reason: Reason
  /// The index of the byte at fault.
  var offset: Int

  init(_ reason: Reason, at offset: Int) {
    self.reason = reason
    self.offset = offset
  }
}

/// The tokens of one message.
@safe
struct JSONTape: ~Copyable {
  // Unsafe island: `tokens` has room for `capacity` tokens, of which [0, count) are initialised; every access goes
  // through `subscript`, `append` or `setEnd`, which check the index. JSONToken is trivial, so nothing is
  // deinitialised.
  private var tokens: UnsafeMutablePointer<JSONToken>
  private var capacity: Int
  private(set) var count = 0

  /// Texts that were spelled with escapes, unescaped.
  var text = ByteBuffer()
  let keys = JSONKeyTable()
  let limits: JSONLimits
  /// Whether an object has duplicate names. Parsing continues then, so that the error can have the message's id.
  var hasDuplicate = false
  /// Scratch memory to find duplicate names in one object.
  var names: NameSorter
  #if DEBUG
    /// Work since the tape was made, in steps of some 1.3 ns, as measured by `hub-microbench hostile`: a step of
    /// `names` is one; a value is 3 and its text's; a member of the protocol is 12, found and decoded; another name is
    /// 6 and its text's. Tests bound the sum by the bytes of messages.
    private(set) var steps = 0
  #endif

  init(limits: JSONLimits) {
    precondition(limits.tokens <= Int(UInt16.max), "a token's `next` has 16 bits")
    precondition(limits.bytes <= Int(UInt32.max))
    self.limits = limits
    names = NameSorter(capacity: limits.members)
    capacity = 128
    unsafe tokens = .allocate(capacity: capacity)
  }

  deinit { unsafe tokens.deallocate() }

  subscript(index: Int) -> JSONToken {
    @inline(__always) get {
      precondition(index >= 0 && index < count)
      return unsafe tokens[index]
    }
  }

  mutating func removeAll() {
    count = 0
    hasDuplicate = false
    text.removeAll(keepingAtMost: 16 * 1024)
  }

  /// Appends a token and returns its index.
  @inline(__always)
  mutating func append(_ token: JSONToken) throws(JSONError) -> Int {
    step(3)
    if count == capacity { try grow(at: Int(token.source)) }
    unsafe (tokens + count).initialize(to: token)
    count += 1
    return count - 1
  }

  /// Appends a value that is one token.
  @inline(__always)
  mutating func appendValue(_ kind: JSONToken.Kind, source: Int, bits: UInt64 = 0) throws(JSONError) {
    var token = JSONToken(kind: kind, source: UInt32(truncatingIfNeeded: source))
    token.next = UInt16(truncatingIfNeeded: count + 1)
    token.bits = bits
    _ = try append(token)
  }

  /// Appends a text: a value, or a member's name.
  @inline(__always)
  mutating func appendText(
    _ kind: JSONToken.Kind, source: Int, start: Int, count length: Int, key: JSONKey = .unknown
  ) throws(JSONError) {
    var token = JSONToken(kind: kind, source: UInt32(truncatingIfNeeded: source))
    token.key = key
    token.next = UInt16(truncatingIfNeeded: count + 1)
    token.start = UInt32(truncatingIfNeeded: start)
    token.count = UInt32(truncatingIfNeeded: length)
    _ = try append(token)
  }

  /// Sets the number of parts of an array or object and where its text ends; all tokens since belong to it.
  @inline(__always)
  mutating func close(_ index: Int, parts: Int, end: Int) {
    precondition(index >= 0 && index < count)
    unsafe tokens[index].start = UInt32(truncatingIfNeeded: end)
    unsafe tokens[index].count = UInt32(truncatingIfNeeded: parts)
    unsafe tokens[index].next = UInt16(truncatingIfNeeded: count)
  }

  /// Sets the key of a text that is a member's name.
  @inline(__always)
  mutating func name(_ index: Int, key: JSONKey) {
    precondition(index >= 0 && index < count)
    unsafe tokens[index].key = key
  }

  /// Counts work, for tests.
  @inline(__always)
  mutating func step(_ count: Int) {
    #if DEBUG
      steps += count
    #endif
  }

  private mutating func grow(at offset: Int) throws(JSONError) {
    guard capacity < limits.tokens else { throw JSONError(.tokens, at: offset) }
    let larger = min(capacity * 2, limits.tokens)
    let moved = UnsafeMutablePointer<JSONToken>.allocate(capacity: larger)
    unsafe moved.moveInitialize(from: tokens, count: count)
    unsafe tokens.deallocate()
    unsafe tokens = moved
    capacity = larger
  }
}

/// The limits of one kind of message.
struct JSONLimits {
  var bytes: Int
  var depth: Int
  var members: Int
  var tokens: Int

  /// From a client to the hub.
  static let client = JSONLimits(
    bytes: MessageLimits.bytes, depth: MessageLimits.depth, members: MessageLimits.members,
    tokens: MessageLimits.tokens)
  /// From the hub to a client: every answer to a message within the limits is within these.
  static let server = JSONLimits(
    bytes: MessageLimits.serverBytes, depth: MessageLimits.depth, members: MessageLimits.serverMembers,
    tokens: MessageLimits.serverTokens)
}
