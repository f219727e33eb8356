import HubBytes
import HubHTTP
import HubTestSupport
import Testing

@Suite struct QueryTests {
  private func query(_ text: String) -> Query { Query(ArraySlice(text.utf8)) }

  @Test("Values are found by name and decoded") func values() throws {
    let query = query("a=1&b=x%20y+z&&c&=nameless&a=2&d=e=f&%61b=3")
    #expect(try query.string("a") == "1")
    #expect(try query.string("b") == "x y z")
    #expect(try query.string("c")?.isEmpty == true)
    #expect(try query.string("d") == "e=f")
    #expect(try query.string("ab") == "3")
    #expect(try query.string("aa") == nil)
    #expect(try query.string("A") == nil)
    #expect(try query.items().map(\.name) == ["a", "b", "c", "", "a", "d", "ab"])
  }

  @Test("A list of pairs has a limit, which is looked at before any of them is decoded") func manyItems() throws {
    let limit = HTTPLimits.parameters
    let all = Array(repeating: "a=1", count: limit).joined(separator: "&")
    #expect(try query("&&\(all)&").items().count == limit)
    #expect(throws: HTTPError.tooManyParameters(limit: limit)) { try query("a=%&\(all)").items() }
    #expect(try query("\(all)&b=2").string("b") == "2", "one of them is found among any number")
  }

  @Test("An empty query has nothing") func empty() throws {
    #expect(query("").isEmpty)
    #expect(try query("").string("a") == nil)
    #expect(try query("").items().isEmpty)
  }

  @Test(
    "Broken percent-encoding is an error of the value that has it",
    arguments: ["a=%", "a=%4", "a=%4g", "a=%zz", "a=%ff"])
  func malformed(text: String) throws {
    #expect(throws: HTTPError.malformedPercentEncoding) { try query(text).string("a") }
    #expect(try query(text + "&b=1").string("b") == "1")
  }

  @Test("A text of other characters may have 256 bytes, one of ASCII's and one among all pairs any number")
  func longText() throws {
    let other = String(repeating: "é", count: 128)
    #expect(try query("a=\(other)").string("a") == other)
    #expect(throws: HTTPError.textTooLong(limit: 256)) { try query("a=\(other)x").string("a") }
    #expect(throws: HTTPError.textTooLong(limit: 256)) { try query("a=\(combiningMarks(bytes: 200_000))").string("a") }
    let plain = String(repeating: "e", count: 5000)
    #expect(try query("a=\(plain)").string("a") == plain)
    #expect(try query("a=\(other)x").items().first?.value.isSpelled(other + "x") == true)
  }

  @Test("Bytes that are not text can be had as bytes") func bytes() throws {
    #expect(try query("a=%ff%00").bytes("a") == [0xFF, 0])
  }

  @Test("Every text comes back from its percent-encoding") func roundTrip() throws {
    var random = SplitMix64(seed: 3)
    for _ in 0..<500 {
      let text = String(
        String.UnicodeScalarView(
          (0..<8).map { _ in
            Unicode.Scalar(UInt32.random(in: 0..<0xD800, using: &random)) ?? "a"
          }))
      let encoded = text.utf8.map { "%" + (String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)) }.joined()
      #expect(try query("x=\(encoded)").string("x") == text)
    }
  }
}

@Suite struct HeaderFieldsTests {
  private func fields(_ lines: String) throws -> HeaderFields {
    try #require(try parse("GET / HTTP/1.1\r\nHost: x\r\n\(lines)\r\n")).0.fields
  }

  @Test("Names match in any case, and values lose the white space around them") func lookup() throws {
    let fields = try fields("X-Thing:\t some value \t\r\nEmpty:\r\n")
    #expect(fields.string("x-thing") == "some value")
    #expect(fields.string("empty")?.isEmpty == true)
    #expect(fields.string("x-thin") == nil)
  }

  @Test("A field that must be single shows when it is not") func single() throws {
    let fields = try fields("A: 1\r\nB: 2\r\na: 3\r\n")
    #expect(fields.single("a") == .repeated)
    #expect(fields.single("b") == .value(ArraySlice("2".utf8)))
    #expect(fields.single("c") == .absent)
  }

  @Test("Lists go over all fields of a name") func lists() throws {
    let fields = try fields("L: a, ,b\r\nOther: x\r\nL:\r\nl: c\t,D\r\n")
    #expect(fields.elements("l").map { String(decoding: $0, as: UTF8.self) } == ["a", "b", "c", "D"])
    #expect(fields.contains("l", token: "d"))
    #expect(!fields.contains("l", token: "a, "))
    #expect(!fields.contains("l", token: "x"))
  }

  @Test("Token bytes are those of RFC 9110 §5.6.2") func tokens() {
    let expected = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
    for byte in UInt8.min...UInt8.max { #expect(ASCII.isTokenByte(byte) == expected.contains(byte)) }
  }

  @Test("Decimal numbers saturate and take nothing but digits") func decimals() {
    #expect(ASCII.decimal(ArraySlice("9223372036854775807".utf8)) == .max)
    #expect(ASCII.decimal(ArraySlice("9223372036854775806".utf8)) == .max - 1)
    #expect(ASCII.decimal(ArraySlice("92233720368547758070000".utf8)) == .max)
    #expect(ASCII.decimal(ArraySlice("007".utf8)) == 7)
    #expect(ASCII.decimal([]) == nil)
    #expect(ASCII.decimal(ArraySlice("1 ".utf8)) == nil)
  }
}
