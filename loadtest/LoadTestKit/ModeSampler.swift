// Which part of a process's CPU time is spent in user space, by sampling it some 4,000 times in each second that it
// runs.
//
// The kernel itself splits the two by its clock's ticks, 250 a second on most machines: of a run of ten seconds in
// which a hub takes 3 µs of 18,000 messages a second in user space, that is 135 ticks, known to 9 %. A sample takes
// some µs of the one who is sampled, so only what needs it asks for it.
//
// Unsafe island: the rings are the kernel's and this program's together (perf_event_open(2), "MMAP layout"). Each is
// mapped and open as long as the sampler is there, and read by its owner only.
import CHubLoadTest
import Glibc

package final class ModeSampler {
  /// Samples for each second that a thread runs. A prime, so as not to beat with what a load does in each second.
  package static let frequency = 3989

  /// A thread's samples: 32,768 of them, more than it can collect in eight seconds.
  private struct Ring {
    static let pages = 64
    static var pageBytes: Int { sysconf(Int32(_SC_PAGESIZE)) }
    let descriptor: Int32
    let memory: UnsafeMutableRawPointer
    var tail: UInt64 = 0

    init?(thread: Int32) {
      descriptor = hub_open_cpu_clock(thread, UInt64(ModeSampler.frequency))
      guard descriptor >= 0 else { return nil }
      let bytes = (Ring.pages + 1) * Ring.pageBytes
      guard let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), memory != MAP_FAILED
      else {
        close(descriptor)
        return nil
      }
      self.memory = memory
    }

    func unmap() {
      munmap(memory, (Ring.pages + 1) * Ring.pageBytes)
      close(descriptor)
    }
  }

  private var rings: [Ring] = []
  /// Samples so far, as of the last `collect`.
  package private(set) var user = 0
  package private(set) var kernel = 0

  /// Samples the threads that the process has now. Nil where the process is gone or this one may not: who is not root
  /// needs kernel.perf_event_paranoid at 1 or less.
  package init?(pid: Int32) {
    guard let stream = opendir("/proc/\(pid)/task") else { return nil }
    defer { _ = closedir(stream) }
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let thread = Int32(name) else { continue }
      guard let ring = Ring(thread: thread) else {
        if errno == ESRCH { continue }  // it has just ended
        for ring in rings { ring.unmap() }
        rings = []
        return nil
      }
      rings.append(ring)
    }
    if rings.isEmpty { return nil }
  }

  deinit { for ring in rings { ring.unmap() } }

  /// Counts what has come. What a ring has no room for until then is lost, in user space as in the kernel.
  package func collect() {
    for index in rings.indices { collect(&rings[index]) }
  }

  private func collect(_ ring: inout Ring) {
    let page = ring.memory.assumingMemoryBound(to: perf_event_mmap_page.self)
    let (data, size) = (ring.memory + Ring.pageBytes, UInt64(Ring.pages * Ring.pageBytes))
    let head = hub_ring_head(page)
    while ring.tail < head {
      // Records are of whole words, so a header lies in one piece.
      let header = data.load(fromByteOffset: Int(ring.tail % size), as: perf_event_header.self)
      if header.type == PERF_RECORD_SAMPLE.rawValue {
        switch Int32(header.misc) & PERF_RECORD_MISC_CPUMODE_MASK {
        case PERF_RECORD_MISC_USER: user += 1
        case PERF_RECORD_MISC_KERNEL: kernel += 1
        case _: break
        }
      }
      ring.tail += UInt64(header.size)
    }
    hub_set_ring_tail(page, ring.tail)
  }
}
