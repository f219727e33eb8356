// Replies of the engine: vectors, every split point, limits, random bytes.
import HubBackplane
import HubBytes
import HubTestSupport
import Testing

/// What a reader makes of bytes that come in these pieces.
private func read(_ pieces: [[UInt8]], _ limits: BackplaneLimits = BackplaneLimits()) throws(RESPError) -> [RESPValue] {
  var reader = RESPReader(limits)
  var replies: [RESPValue] = []
  for piece in pieces {
    var buffer = ByteBuffer()
    buffer.append(piece)
    try buffer.withBytes { (bytes) throws(RESPError) in try reader.read(bytes, into: &replies) }
  }
  return replies
}

private func read(_ text: String, _ limits: BackplaneLimits = BackplaneLimits()) throws(RESPError) -> [RESPValue] {
  try read([Array(text.utf8)], limits)
}

private func bulk(_ text: String) -> RESPValue { .bulk(Array(text.utf8)) }

@Suite struct RESPTests {
  /// From the protocol's specification.
  static let vectors: [(String, [RESPValue])] = [
    ("+OK\r\n", [.status("OK")]),
    ("-ERR unknown command 'asdf'\r\n", [.error("ERR unknown command 'asdf'")]),
    (":0\r\n:1000\r\n:-7\r\n:+5\r\n", [.number(0), .number(1000), .number(-7), .number(5)]),
    ("$5\r\nhello\r\n", [bulk("hello")]),
    ("$0\r\n\r\n", [bulk("")]),
    ("$-1\r\n", [.null]),
    ("*-1\r\n", [.null]),
    ("*0\r\n", [.array([])]),
    ("*2\r\n$5\r\nhello\r\n$5\r\nworld\r\n", [.array([bulk("hello"), bulk("world")])]),
    ("*3\r\n:1\r\n:2\r\n:3\r\n", [.array([.number(1), .number(2), .number(3)])]),
    (
      "*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n+Hello\r\n-World\r\n",
      [.array([.array([.number(1), .number(2), .number(3)]), .array([.status("Hello"), .error("World")])])]
    ),
    ("*3\r\n$5\r\nhello\r\n$-1\r\n$5\r\nworld\r\n", [.array([bulk("hello"), .null, bulk("world")])]),
    ("*2\r\n*0\r\n*1\r\n*0\r\n", [.array([.array([]), .array([.array([])])])]),
    ("$2\r\n\r\n\r\n+a\r\n", [bulk("\r\n"), .status("a")]),
    ("+\r\n-\r\n", [.status(""), .error("")]),
  ]

  @Test("The replies of the specification are read, whole and cut at every byte")
  func everySplit() throws {
    for (text, expected) in RESPTests.vectors {
      let bytes = Array(text.utf8)
      #expect(try read([bytes]) == expected, "\(text)")
      for cut in 0...bytes.count {
        #expect(try read([Array(bytes[..<cut]), Array(bytes[cut...])]) == expected, "\(text) cut at \(cut)")
      }
      #expect(try read(bytes.map { [$0] }) == expected)
    }
  }

  @Test("Pipelined replies are delivered in order")
  func pipelined() throws {
    let all = RESPTests.vectors.map(\.0).joined()
    #expect(try read(all) == RESPTests.vectors.flatMap(\.1))
  }

  @Test("What is no reply is refused with what is wrong")
  func refused() {
    let cases: [(String, RESPError)] = [
      ("OK\r\n", .type(UInt8(ascii: "O"))), (":1.5\r\n", .number("1.5")), (":\r\n", .number("")),
      ("$x\r\n", .number("x")), ("$-2\r\n", .length(-2)), ("*-3\r\n", .length(-3)), ("+OK\n", .ending),
      ("+OK\rx", .ending), ("$1\r\nab\r\n", .ending), ("$1\r\na\rb", .ending),
      (":9223372036854775808\r\n", .number("9223372036854775808")),
    ]
    for (text, error) in cases { #expect(throws: error, "\(text)") { try read(text) } }
  }

  @Test("Every limit is reached, before anything is kept for what is announced")
  func limits() throws {
    var limits = BackplaneLimits()
    (limits.lineBytes, limits.bulkBytes, limits.valuesPerReply, limits.replyBytes, limits.replyDepth) = (
      8, 16, 6, 50, 2
    )
    #expect(try read("+12345678\r\n", limits) == [.status("12345678")])
    #expect(throws: RESPError.lineTooLong) { try read("+123456789\r\n", limits) }
    #expect(try read("$16\r\n1234567890123456\r\n", limits).count == 1)
    #expect(throws: RESPError.bulkTooLong(17)) { try read("$17\r\n", limits) }
    #expect(throws: RESPError.tooManyValues) { try read("*7\r\n", limits) }
    #expect(throws: RESPError.tooManyValues) {
      try read("*2\r\n*3\r\n:1\r\n:1\r\n:1\r\n*3\r\n:1\r\n:1\r\n:1\r\n", limits)
    }
    #expect(throws: RESPError.tooDeep) { try read("*1\r\n*1\r\n*1\r\n:1\r\n", limits) }
    #expect(throws: RESPError.replyTooLong) {
      try read("*3\r\n$16\r\n1234567890123456\r\n$16\r\n1234567890123456\r\n$16\r\n1", limits)
    }
    // The limits are of one reply, not of the connection.
    #expect(try read(String(repeating: "*2\r\n:1\r\n:2\r\n", count: 50), limits).count == 50)
  }

  @Test("Random bytes and damaged replies are read alike however they are cut, and never crash")
  func random() {
    var random = SplitMix64(seed: 7)
    let seeds = RESPTests.vectors.map { Array($0.0.utf8) }
    for _ in 0..<3000 {
      var bytes = seeds[Int(random.next() % UInt64(seeds.count))] + seeds[Int(random.next() % UInt64(seeds.count))]
      for _ in 0..<(random.next() % 3) { bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(random.next() & 0xFF) }
      let cut = Int(random.next() % UInt64(bytes.count + 1))
      let whole = Result { () throws(RESPError) in try read([bytes]) }
      let pieces = Result { () throws(RESPError) in try read([Array(bytes[..<cut]), Array(bytes[cut...])]) }
      #expect(whole == pieces)
    }
  }
}
