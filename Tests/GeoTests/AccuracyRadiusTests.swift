// The constant between an accuracy and a standard deviation, held against its formula.
import Foundation
import HubGeo
import Testing

@Suite struct AccuracyRadiusTests {
  @Test("68 of 100 values of a circular normal distribution are within it")
  func formula() {
    #expect(abs(AccuracyRadius.sigmas - (-2 * log(0.32)).squareRoot()) < 5e-5)
  }
}
