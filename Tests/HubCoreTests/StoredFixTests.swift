// Records of fixes: what comes back of what went in, and whose they are.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct StoredFixTests {
  private func stored(_ fix: Fix, _ disposition: StoredFix.Disposition, _ position: Position?) -> StoredFix? {
    var bytes = [UInt8](repeating: 0xAA, count: StoredFix.size)
    bytes.withUnsafeMutableBytes { StoredFix.write(fix, disposition, position, into: $0) }
    return bytes.withUnsafeBytes { StoredFix($0) }
  }

  private func record(
    _ driver: String, trip: String? = nil, times: [Int64], progress: TripProgress? = nil
  ) -> [UInt8] {
    var fixes = ByteBuffer()
    var bytes = ByteBuffer()
    for time in times {
      fixes.append(atMost: StoredFix.size) {
        StoredFix.write(
          Fix(coordinate: at(52.5, 13.4), timestamp: Timestamp(milliseconds: time)), .history, nil, into: $0)
        return StoredFix.size
      }
    }
    RecordWriter.write(
      fixes: fixes, driverID: id(driver), tripID: trip.map(id), received: time(77), tracking: StoredTracking(),
      progress: progress, published: nil, into: &bytes)
    return bytes.array()
  }

  @Test("A fix comes back within the stated resolutions, and a published position exactly")
  func roundTrip() throws {
    var random = SplitMix64(seed: 11)
    for _ in 0..<5000 {
      func some(_ range: Range<Double>) -> Double? {
        Bool.random(using: &random) ? Double.random(in: range, using: &random) : nil
      }
      let place = at(Double.random(in: -90...90, using: &random), Double.random(in: -180...180, using: &random))
      let fix = Fix(
        coordinate: place, timestamp: time(Int64.random(in: 0...253_402_300_799_999, using: &random)),
        accuracy: some(0..<5000), heading: some(0..<360), speed: some(0..<100), altitude: some(-500..<9000),
        headingAccuracy: some(0..<180), speedAccuracy: some(0..<50),
        source: FixSource.allCases.randomElement(using: &random), batteryLevel: some(0..<1))
      let position = Position(
        coordinate: place.published, speed: some(0..<100).map { TrackMath.rounded($0, to: 100) },
        heading: some(0..<359).map { TrackMath.rounded($0, to: 100) },
        accuracy: TrackMath.rounded(Double.random(in: 0..<900, using: &random), to: 100), confidence: .medium,
        timestamp: fix.timestamp)
      let back = try #require(stored(fix, .live, position))
      let published = try #require(back.position)
      #expect(published.coordinate == position.coordinate && published.speed == position.speed)
      #expect(published.heading == position.heading && published.accuracy == position.accuracy)
      #expect(published.confidence == .medium && back.disposition == .live)
      let measured = back.measured
      #expect(measured.timestamp == fix.timestamp && measured.source == fix.source)
      #expect(abs(measured.coordinate.latitude - place.latitude) <= 0.5e-7 + 1e-14)
      #expect(abs(measured.coordinate.longitude - place.longitude) <= 0.5e-7 + 1e-13)
      for (was, comes, resolution) in [
        (fix.accuracy, measured.accuracy, 0.001), (fix.speed, measured.speed, 0.001),
        (fix.heading, measured.heading, 1e-7), (fix.altitude, measured.altitude, 0.001),
        (fix.headingAccuracy, measured.headingAccuracy, 0.01), (fix.speedAccuracy, measured.speedAccuracy, 0.01),
        (fix.batteryLevel, measured.batteryLevel, 0.005),
      ] {
        #expect((was == nil) == (comes == nil))
        if let was, let comes { #expect(abs(was - comes) <= resolution / 2 + 1e-9) }
      }
    }
  }

  @Test("What no record has room for is stored as the largest that it has, and history has no position")
  func extremes() throws {
    let fix = Fix(
      coordinate: at(-90, 180), timestamp: time(0), accuracy: 1e300, heading: 359.999_999_99, speed: 1e12,
      altitude: -1e300, headingAccuracy: .infinity, speedAccuracy: 1e9, source: .cached, batteryLevel: 1)
    let back = try #require(stored(fix, .history, nil))
    #expect(back.position == nil && back.measured.coordinate == fix.coordinate)
    #expect(back.measured.accuracy == Double(UInt32.max - 1) / 1000 && back.measured.batteryLevel == 1)
    #expect(back.measured.altitude == Double(Int32.min + 1) / 1000 && back.measured.headingAccuracy == 655.34)
  }

  @Test("A record is read as a whole, and cut or changed anywhere it is refused or says something else")
  func records() throws {
    var progress = TripProgress()
    progress.fixes = 12
    let bytes = record("d-1", trip: "t", times: [3, 5, 8], progress: progress)
    try bytes.withUnsafeBytes { (raw: UnsafeRawBufferPointer) in
      let read = try FixesRecord(raw)
      #expect(read.driverID == id("d-1") && read.tripID == id("t") && read.received == time(77))
      #expect(read.count == 3 && (0..<3).map { read[$0].measured.timestamp.milliseconds } == [3, 5, 8])
      #expect(read.progress == progress)
    }
    #expect(bytes.count <= 3 * 64 + 160, "about 56 bytes a fix, and what stands once")
    var random = SplitMix64(seed: 4)
    for cut in 0..<bytes.count {
      var damaged = bytes
      damaged[cut] ^= UInt8.random(in: 1...255, using: &random)
      for candidate in [Array(bytes[..<cut]), damaged] {
        candidate.withUnsafeBytes {
          do throws(RecordError) { _ = try FixesRecord($0) } catch { #expect(error.offset <= bytes.count) }
        }
      }
    }
  }

  @Test("What a record takes for a fix is one, whatever its bytes are")
  func validity() {
    var random = SplitMix64(seed: 9)
    let good = Array(record("d", times: [3]).suffix(StoredFix.size))
    var valid = 0
    for _ in 0..<20_000 {
      var bytes = good
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        bytes[Int.random(in: 0..<StoredFix.size, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      let (isValid, isRead) = bytes.withUnsafeBytes { (StoredFix.isValid($0), StoredFix($0) != nil) }
      if isValid != isRead { Issue.record("\(bytes): \(isValid), but \(isRead)") }
      if isValid { valid += 1 }
    }
    #expect(valid > 5000 && valid < 19_000)
  }

  @Test("The times of a driver among those asked for are found, each once, ascending; another driver's are not")
  func times() {
    var found: [Int64] = []
    let bytes = record("d", times: [5, 3, 8, 5, 13])
    bytes.withUnsafeBytes {
      #expect(FixesRecord.times(ofDriver: id("d"), in: $0, within: [1, 3, 5, 9, 13], into: &found))
      #expect(FixesRecord.times(ofDriver: id("e"), in: $0, within: [8], into: &found))
    }
    #expect(found == [3, 5, 13])
    [UInt8](repeating: 1, count: 20).withUnsafeBytes {
      #expect(!FixesRecord.times(ofDriver: id("d"), in: $0, within: [3], into: &found))
    }
  }

  // MARK: Keys

  @Test("Keys are FNV-1a over a letter and the id: these values are on disks and never change")
  func keys() {
    #expect(DurableKeys.fixes(ofDriver: id("d")) == fnv("fd") && DurableKeys.trip(id("trip-7")) == fnv("ttrip-7"))
    #expect(DurableKeys.trip(id("a")) == 0x08C8_2F07_B56A_AFA6 && DurableKeys.fixes(ofDriver: id("a")) != fnv("ta"))
  }

  private func fnv(_ text: String) -> UInt64 {
    var hash: UInt64 = 14_695_981_039_346_656_037
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211 }
    return hash
  }

  @Test("Each record of a group that has an owner is named, with the byte where it begins")
  func index() throws {
    let bench = try DurableBench()
    bench.turn([bench.move(.ops, "o", "T", .requested), bench.move(.driver, "D", "T", .accepted)])
    let group = bench.submitted.flatMap { $0 } + record("D", trip: "T", times: [1, 2])
    var trips = 0
    var fixes: [Int] = []
    var others = 0
    group.withUnsafeBytes { bytes in
      DurableKeys.forEach(in: bytes) { key, offset in
        let kind = bytes[offset + 4]
        if key == DurableKeys.trip(id("T")) {
          trips += 1
          #expect(kind == RecordKind.trip.rawValue || kind == RecordKind.tripUpdate.rawValue)
        } else if key == DurableKeys.fixes(ofDriver: id("D")) {
          fixes.append(offset)
        } else {
          others += 1
        }
      }
      var records = 0
      var reader = RecordReader(bytes)
      while true {
        do throws(RecordError) { guard try DurableRecord.next(from: &reader) != nil else { break } } catch {
          Issue.record(error)
          break
        }
        records += 1
      }
      #expect(trips + 2 == records, "all but the epoch and the fixes are the trip's")
    }
    #expect(fixes == [group.count - record("D", trip: "T", times: [1, 2]).count] && others == 0)
    // Bytes that are none end it.
    for length in 0..<40 {
      Array(group.prefix(length)).withUnsafeBytes { bytes in
        DurableKeys.forEach(in: bytes) { _, offset in #expect(offset < length) }
      }
    }
  }
}
