// Base64 in each of its forms, against Foundation's.
import Foundation
import HubBytes
import HubTestSupport
import Testing

@Suite struct Base64Tests {
  @Test("each form agrees with Foundation's on 2,000 random texts, and has one spelling of each")
  func agrees() {
    var random = SplitMix64(seed: 4648)
    for length in 0..<2000 {
      let bytes = (0..<length % 67).map { _ in UInt8.random(in: 0...255, using: &random) }
      let padded = Data(bytes).base64EncodedString()
      let unpadded = padded.replacing("=", with: "")
      let url = unpadded.replacing("+", with: "-").replacing("/", with: "_")
      for (form, text) in [(Base64.padded, padded), (.unpadded, unpadded), (.url, url)] {
        #expect(form.encode(bytes) == Array(text.utf8))
        #expect(form.decode(text.utf8) == bytes)
        #expect(form.decode((text + "=").utf8) == nil)
      }
      if padded != unpadded { #expect(Base64.padded.decode(unpadded.utf8) == nil) }
    }
  }

  @Test("what no encoding has is none")
  func refused() {
    for bad in ["A", "AB=", "AA==", "AB", "AAB", "A+AA", "A/AA", "AA A", "AAAAA"] {
      #expect(Base64.url.decode(bad.utf8) == nil, "\(bad)")
    }
    for bad in ["A", "AA", "AA=", "AA===", "AAA", "AAA==", "A=A=", "=AAA", "====", "AB==", "AAB=", "A-AA", "AA==AA=="] {
      #expect(Base64.padded.decode(bad.utf8) == nil, "\(bad)")
    }
  }
}
