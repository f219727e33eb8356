// The forms that tokens are made of: JSON, patterns.
import Foundation
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubTokens

@Suite struct FormTests {
  @Test(
    "JSON is read by the letter of RFC 8259",
    arguments: [
      (#" {"a" : [1, -2.5e1, true, false, null, "x"]} "#, true), (#""\u0041\n\ud83d\ude00""#, true), ("[]", true),
      (#"{"a":1,"a":2}"#, false), (#"{"a":1,"\u0061":2}"#, false), ("[1,]", false), ("[01]", false), ("[+1]", false),
      ("[1e999]", false), ("{\"a\"}", false), ("[\"\u{1}\"]", false), (#"["\x"]"#, false), (#"["\ud83d"]"#, false),
      (#"["\ude00"]"#, false), ("tru", false), ("nullx", false), ("", false), ("[1] 2", false), ("\u{FEFF}[]", false),
      ("[[[[[[[[1]]]]]]]]", true), ("[[[[[[[[[1]]]]]]]]]", false),
    ])
  func json(text: String, isGood: Bool) {
    #expect((JSONValue(parsing: text.utf8) != nil) == isGood, "\(text)")
  }

  @Test("bytes that are no UTF-8 are no JSON, and escapes are the characters they stand for")
  func text() {
    #expect(JSONValue(parsing: [0x22, 0xC0, 0xAF, 0x22]) == nil)
    #expect(JSONValue(parsing: #""\ud83d\ude00\/é""#.utf8) == .string("😀/é"))
  }

  @Test("a pattern matches its id, or all ids with its beginning")
  func patterns() throws {
    let rows: [(String, String, Bool)] = [
      ("T1", "T1", true), ("T1", "T10", false), ("T1*", "T10", true), ("T1*", "T1", true), ("T1*", "T", false),
      ("*", "x", true), ("a-*", "b-1", false),
    ]
    for (pattern, id, matches) in rows {
      #expect(try #require(NamePattern(pattern)).matches(Identifier(id)!) == matches, "\(pattern) \(id)")
    }
    for bad in ["", "a*b", "**", "a b", String(repeating: "a", count: 65)] { #expect(NamePattern(bad) == nil) }
    let pattern = try #require(ChannelPattern("driver:D*"))
    #expect(pattern.matches(.driver(Identifier("D1")!)) && !pattern.matches(.trip(Identifier("D1")!)))
    #expect(!pattern.matches(.fleet))
    #expect(pattern.description == "driver:D*")
  }

  @Test("grants open their trips and channels and no others")
  func grants() {
    let grants = Grants(
      trips: [NamePattern("T1")!], channels: [ChannelPattern("trip:z-*")!, ChannelPattern("fence:*")!])
    let id = { (text: String) in Identifier(text)! }
    #expect(grants.names(trip: id("T1")) && !grants.names(trip: id("z-1")))
    #expect(grants.opens(.trip(id("T1"))) && grants.opens(.trip(id("z-1"))) && grants.opens(.fence(id("f"))))
    #expect(!grants.opens(.trip(id("T2"))) && !grants.opens(.driver(id("T1"))) && !grants.opens(.fleet))
  }

  @Test("A long name of other characters is passed over, in a time that grows with its length alone")
  func longNames() throws {
    let name = String(repeating: "é", count: 33)
    let long = combiningMarks(bytes: 200_000)
    let text = #"{"\#(name)":1,"\#(long)":{"\#(long)":2},"\#(long)":3,"é":4,"\#(String(repeating: "e", count: 66))":5}"#
    let seconds = try processorSeconds { () throws in
      let members = try #require(JSONValue(parsing: text.utf8)?.members)
      #expect(members.count == 2 && members["é"]?.number == 4)
    }
    #expect(seconds < 30, "minutes, were it the square")
    #expect(JSONValue(parsing: #"{"é":1,"é":2}"#.utf8) == nil)
  }
}
