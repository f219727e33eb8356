import Foundation
import HubGeo
import HubTestSupport
import Testing

@Suite struct PolylineTests {
  @Test("Google's own example is encoded and decoded")
  func google() throws {
    let points = [at(38.5, -120.2), at(40.7, -120.95), at(43.252, -126.453)]
    #expect(Polyline.encode(points) == "_p~iF~ps|U_ulLnnqC_mqNvxq`@")
    #expect(try Polyline.decode("_p~iF~ps|U_ulLnnqC_mqNvxq`@", limit: 3) == points)
    #expect(try Polyline.decode("", limit: 0).isEmpty && Polyline.encode([]) == "")
  }

  @Test("Decoding what was encoded gives the places to half a unit, at every precision")
  func roundTrip() throws {
    var random = SplitMix64(seed: 12)
    for precision in 0...7 {
      let points = (0..<300).map { _ in random.coordinate() }
      let text = Polyline.encode(points, precision: precision)
      let decoded = try Polyline.decode(text, precision: precision, limit: 300)
      let tolerance = 0.5 * pow(10, -Double(precision)) + 1e-12
      #expect(decoded.count == 300)
      for (a, b) in zip(points, decoded) {
        #expect(abs(a.latitude - b.latitude) <= tolerance && abs(a.longitude - b.longitude) <= tolerance)
      }
      #expect(Polyline.encode(decoded, precision: precision) == text)
    }
  }

  @Test("Garbage is refused with its offset")
  func garbage() {
    #expect(throws: PolylineError.truncated(at: 1)) { try Polyline.decode("_", limit: 9) }
    #expect(throws: PolylineError.truncated(at: 5)) { try Polyline.decode("_p~iF", limit: 9) }
    #expect(throws: PolylineError.invalidByte(0x20, at: 2)) { try Polyline.decode("_p ~", limit: 9) }
    #expect(throws: PolylineError.invalidByte(0xC3, at: 0)) { try Polyline.decode("é", limit: 9) }
    #expect(throws: PolylineError.numberTooLong(at: 7)) { try Polyline.decode("~~~~~~~~~~~~", limit: 9) }
    #expect(throws: PolylineError.outOfRange(at: 0)) { try Polyline.decode("~~~~~~??", limit: 9) }
    #expect(throws: PolylineError.tooManyPoints(limit: 2)) { try Polyline.decode("??????", limit: 2) }
  }

  @Test("Random bytes never do worse than throw")
  func random() {
    var random = SplitMix64(seed: 13)
    for _ in 0..<20_000 {
      let range: ClosedRange<UInt8> = Bool.random(using: &random) ? 60...127 : 0...255
      let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in UInt8.random(in: range, using: &random) }
      do {
        let points = try Polyline.decode(utf8: bytes, limit: 12)
        #expect(points.count <= 12)
      } catch {
        #expect(!bytes.isEmpty)
      }
    }
  }

  private struct Case: Decodable {
    var points: [[Double]]
    var precision: Int
    var encoded: String
    var decoded: [[Double]]?
  }

  @Test("Vectors of other libraries")
  func vectors() throws {
    guard let text = Vectors.text("polyline.json") else { return }
    for vector in try JSONDecoder().decode([Case].self, from: Data(text.utf8)) {
      let points = vector.points.map { at($0[0], $0[1]) }
      let encoded = vector.encoded
      #expect(Polyline.encode(points, precision: vector.precision) == encoded)
      let decoded = try Polyline.decode(encoded, precision: vector.precision, limit: 10)
      #expect(Polyline.encode(decoded, precision: vector.precision) == encoded)
      if let wanted = vector.decoded { #expect(decoded == wanted.map { at($0[0], $0[1]) }) }
    }
  }
}
