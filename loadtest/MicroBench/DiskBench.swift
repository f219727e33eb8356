// What a disk itself takes to make a write stable: the journal's ack can't come sooner.
//
//   hub-microbench disk DIR [BYTES]      500 times: append so many bytes (100,000 without), fdatasync
import HubBytes
import HubJournal
import HubSystem

struct DiskBench {
  private static let writes = 500

  let directory: String
  let bytes: Int

  func run() throws {
    let files = try DiskFiles(beside: directory)
    let name = "disk-bench"
    let file = try files.open(name)
    defer { remove(name, files) }
    var buffer = ByteBuffer()
    for index in 0..<bytes { buffer.append(UInt8(truncatingIfNeeded: index &* 31)) }
    var times: [Int64] = []
    for _ in 0..<Self.writes {
      let began = ClockReading.read().uptimeNanoseconds
      try buffer.withBytes { (bytes) throws(SystemError) in try file.append(bytes) }
      try file.synchronize()
      times.append(ClockReading.read().uptimeNanoseconds - began)
    }
    times.sort()
    let texts = [("p50", 0.5), ("p99", 0.99), ("most", 1)].map { name, part in
      "\(name) \(Double(times[Int(Double(times.count - 1) * part)] / 10_000) / 100) ms"
    }
    print("write of \(bytes) bytes and fdatasync: \(texts.joined(separator: ", "))")
  }

  private func remove(_ name: String, _ files: DiskFiles) {
    do throws(SystemError) { try files.remove(name) } catch { print("left behind: \(directory)/\(name): \(error)") }
  }
}
